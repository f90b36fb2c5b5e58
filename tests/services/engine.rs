//! The engine at its boundary: writes go in, a scripted target answers, and the stored records show
//! how each write ended. Time moves only in the steps that a test takes.

mod world;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use toolwarrant_base::clock::Clock;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_core::tasks::WriteRefusal;
use toolwarrant_memory::Memory;
use toolwarrant_tasks::machine::{Facts, Sent};
use toolwarrant_tasks::task::Status::{Failed, FailedSilent, Success, SuccessUnverified, Timeout};
use toolwarrant_tasks::task::Verdict::{Absent, Present, Unreadable as Unread};
use toolwarrant_tasks::task::{Status, TaskId, Verdict};
use world::*;

/// A row of the decision table: a name, the policy, the outcomes of the sends, the readings by
/// second, the final status, the second of the end, and the ledger.
type EngineRow =
    (&'static str, &'static PolicyDef, &'static [fn() -> Sent], &'static [(u64, Verdict)], Status, u64, &'static str);

const TABLE: &[EngineRow] = &[
    ("any, present: ok", &SIGHTED, &[|| Sent::Ok], &[(0, Present)], Success, 0, "charge"),
    ("any, present: ok, later", &SIGHTED, &[|| Sent::Ok], &[(0, Absent), (8, Present)], Success, 10, "charge"),
    ("any, present: err", &SIGHTED, &[err], &[(0, Present)], Success, 0, "charge"),
    ("any, present: none", &SIGHTED, &[none], &[(0, Unread), (30, Present)], Success, 54, "charge"),
    ("ok, blind", &BLIND, &[|| Sent::Ok], &[], SuccessUnverified, 0, "charge"),
    ("ok, absent", &SIGHTED, &[|| Sent::Ok], &[(0, Absent)], FailedSilent, 13, "charge refund"),
    ("ok, absent, compared", &ONCE, &[|| Sent::Ok], &[(0, Absent)], FailedSilent, 13, "charge refund"),
    ("ok, unreadable", &SIGHTED, &[|| Sent::Ok], &[(0, Unread)], Timeout, 60, "charge"),
    ("ok, absent too early", &SIGHTED, &[|| Sent::Ok], &[(0, Absent), (10, Unread)], Timeout, 60, "charge"),
    ("ok, absent once", &SIGHTED, &[|| Sent::Ok], &[(0, Unread), (60, Absent)], Timeout, 60, "charge"),
    ("err, blind", &BLIND, &[err], &[], Failed, 0, "charge"),
    ("err, absent", &SIGHTED, &[err], &[(0, Absent)], Failed, 10, "charge"),
    ("err, unreadable", &SIGHTED, &[err], &[(0, Unread)], Failed, 13, "charge"),
    ("not sent", &SIGHTED, &[not_sent], &[(0, Unread)], Failed, 6, "charge reversal"),
    ("not sent, blind", &BLIND, &[not_sent], &[], Failed, 6, "charge reversal"),
    ("not sent, then ok", &SIGHTED, &[not_sent, || Sent::Ok], &[(0, Present)], Success, 2, "charge"),
    ("none, absent, must not repeat", &ONCE, &[none], &[(0, Absent)], Timeout, 60, "charge"),
    ("none, absent, repeated", &SIGHTED, &[none], &[(0, Absent)], Timeout, 60, "charge"),
    (
        "none, absent, repeated with success",
        &SIGHTED,
        &[none, || Sent::Ok],
        &[(0, Absent), (29, Present)],
        Success,
        30,
        "charge",
    ),
    ("none, unreadable", &SIGHTED, &[none], &[(0, Unread)], Timeout, 60, "charge"),
    ("none, blind", &BLIND, &[none], &[], Timeout, 60, "charge"),
];

#[tokio::test(start_paused = true)]
async fn every_row_of_the_decision_table_ends_as_it_says() {
    for (name, policy, sends, reads, status, at, ledger) in TABLE {
        let sends: Vec<_> = sends.iter().map(|sent| sent()).collect();
        let world = World::new(&sends, reads).await;
        let id = world.begin(policy).await;
        assert_eq!(
            (world.end(id).await, world.ledger().await.join(" ")),
            ((*status, *at), (*ledger).to_owned()),
            "{name}"
        );
        let record = world.record(id).await;
        assert_eq!(record.refunded_at.is_some(), *status == FailedSilent, "{name}");
        assert_eq!(record.sealed, None, "{name}: its arguments are wiped");
        assert!(record.task.evidence().is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_idempotent_is_sent_again_and_only_after_it_has_quiesced() {
    for (policy, sends) in [(&SIGHTED, 2), (&ONCE, 1), (&BLIND, 1)] {
        let world = World::new(&[none()], &[(0, Absent)]).await;
        let id = world.begin(policy).await;
        world.end(id).await;
        assert_eq!(world.sends(), sends, "{policy:?}");
        let sent = world.script.sent.lock().expect("no panic").clone();
        // The last byte may leave 5 s after the decision, arrive 12 s later, and take 10 s to show.
        assert!(sent.windows(2).all(|pair| pair[1].1.since(pair[0].1) >= Duration::from_secs(27)), "{sent:?}");
        assert!(sent.iter().all(|(sent, _)| *sent == id), "a repeat has the request id of the first");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_reading_to_compare_with_a_write_is_sent_and_its_absence_is_not_refunded() {
    for (verdict, status) in [(Absent, Timeout), (Present, Success)] {
        let world = World::with(Facts::default(), &[Sent::Ok], &[(0, verdict)], false).await;
        let id = world.begin(&ONCE).await;
        assert_eq!((world.end(id).await.0, world.sends(), world.ledger().await), (status, 1, vec!["charge"]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_refund_on_a_target_within_a_day_is_counted() {
    let world = World::new(&[Sent::Ok], &[(0, Absent)]).await;
    let repeated = || world.engine.counts().repeated_refunds.get();
    for (day, count) in [(0, 0), (0, 1), (2, 1)] {
        world.clock.advance(Duration::from_hours(24 * day));
        let id = world.begin(&ONCE).await;
        assert_eq!(world.end(id).await.0, FailedSilent);
        world.pass(1).await;
        assert_eq!(repeated(), count, "after {day} days");
    }
}

/// A case of a crash: the phase, the policy and facts of the write, the outcomes of the sends, the
/// verdict of readings from second 2 on, the number of sends, and the final status.
type Crash = (&'static str, &'static PolicyDef, Facts, Vec<Sent>, Verdict, usize, Status);

/// Crashes the process in each phase under each kind of upstream, and checks the number of sends
/// and the final status.
#[tokio::test(start_paused = true)]
async fn a_task_survives_a_crash_in_every_phase() {
    let knows = Facts { looks_up: true, ..Facts::default() };
    let dedupes = Facts { dedupes: true, ..Facts::default() };
    let hangs = || Sent::NoAnswer("hangs".into());
    let pending = || Sent::Pending("op-1".to_owned());
    let rows: &[Crash] = &[
        ("ready", &SIGHTED, Facts::default(), vec![not_sent(), Sent::Ok], Present, 2, Success),
        ("baseline", &ONCE, Facts::default(), vec![Sent::Ok], Present, 1, Success),
        ("sending", &ONCE, Facts::default(), vec![hangs(), Sent::Ok], Present, 1, Success),
        ("sending", &ONCE, Facts::default(), vec![hangs(), Sent::Ok], Absent, 1, Timeout),
        ("sending", &SIGHTED, Facts::default(), vec![hangs(), Sent::Ok], Absent, 2, Timeout),
        ("sending", &BLIND, Facts::default(), vec![hangs(), Sent::Ok], Unread, 1, Timeout),
        ("sending", &ONCE, knows, vec![hangs(), Sent::Ok], Absent, 1, FailedSilent),
        ("sending", &BLIND, knows, vec![hangs(), Sent::Ok], Unread, 1, SuccessUnverified),
        ("sending", &ONCE, dedupes, vec![hangs(), Sent::Ok], Absent, 2, FailedSilent),
        ("polling", &ONCE, Facts::default(), vec![pending()], Present, 1, Success),
        ("polling", &BLIND, Facts::default(), vec![pending()], Unread, 1, SuccessUnverified),
        ("verifying", &ONCE, Facts::default(), vec![Sent::Ok], Absent, 1, FailedSilent),
        ("verifying", &SIGHTED, Facts::default(), vec![err()], Absent, 1, Failed),
    ];
    for (phase, policy, facts, sends, verdict, times, status) in rows {
        let mut world = World::with(*facts, sends, &[(0, Unread), (2, *verdict)], *phase != "baseline").await;
        let id = world.begin(policy).await;
        world.until(id, phase).await;
        world.crash().await;
        assert_eq!((world.engine.in_flight(), world.engine.lag()), (1, Duration::ZERO));
        let name = format!("{phase} {policy:?} {facts:?} {verdict:?}");
        assert_eq!((world.end(id).await.0, world.sends()), (*status, *times), "{name}");
        assert_eq!(world.ledger().await.contains(&"refund"), *status == FailedSilent, "{name}");
        assert_eq!(world.engine.in_flight(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_forgotten_past_its_deadline_is_read_once_more_before_it_is_judged() {
    for (verdict, status) in [(Present, Success), (Unread, Timeout), (Absent, Timeout)] {
        let mut world = World::new(&[Sent::Ok], &[(0, Unread), (600, verdict)]).await;
        let id = world.begin(&SIGHTED).await;
        world.until(id, "verifying").await;
        world.runner.abort();
        world.clock.advance(Duration::from_secs(700));
        world.crash().await;
        assert_eq!(world.end(id).await.0, status);
    }
}

#[tokio::test(start_paused = true)]
async fn the_upstreams_answer_outlives_a_store_that_fails_once() {
    // The first step announces the send, and the second stores its outcome. Both steps repeat if no
    // byte left.
    for (sent, verdict, ends, ledger) in [
        (Sent::Ok, Absent, FailedSilent, "charge refund"),
        (err(), Absent, Failed, "charge"),
        (Sent::Ok, Present, Success, "charge"),
        (not_sent(), Unread, Failed, "charge reversal"),
    ] {
        for (fails, lies) in (1..=4).flat_map(|step| [(step, false), (step, true)]) {
            let clock = Clock::manual(START);
            let script = Script::new(&clock, std::slice::from_ref(&sent), &[(0, verdict)]);
            let store = Flaky { memory: Memory::default(), fails, steps: AtomicU32::new(0), lies };
            let world = World::on(Arc::new(store), clock, Arc::new(script)).await;
            let id = world.begin(&SIGHTED).await;
            let ended = (world.end(id).await.0, world.ledger().await.join(" "));
            // The failed step announced the send, so the send may have left and may still take
            // effect.
            let announces = if sent == not_sent() { fails % 2 == 1 } else { fails == 1 };
            let unknown = lies && announces && verdict != Present;
            let expected = if unknown { (Timeout, "charge") } else { (ends, ledger) };
            assert_eq!((ended.0, &*ended.1), expected, "{sent}, step {fails} fails, {lies}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_between_two_starts_holds_nothing_up() {
    for phase in ["ready", "sending", "verifying"] {
        let hangs = || Sent::NoAnswer("hangs".into());
        let sends = if phase == "ready" {
            vec![not_sent(), Sent::Ok]
        } else if phase == "sending" {
            vec![hangs()]
        } else {
            vec![Sent::Ok]
        };
        let mut world = World::new(&sends, &[(0, Unread)]).await;
        let id = world.begin(&SIGHTED).await;
        world.until(id, phase).await;
        world.runner.abort();
        let earlier = Clock::manual(START.minus(Duration::from_hours(24)));
        world.script = Arc::new(Script::new(&earlier, &[Sent::Ok], &[]));
        world.clock = earlier;
        world.crash().await;
        world.pass(200).await;
        assert!(world.record(id).await.task.status().is_some(), "{phase}: {:?}", world.record(id).await);
        let next = world.begin(&SIGHTED).await;
        let task = world.record(next).await.task;
        assert!(task.not_before <= world.clock.now().plus(Duration::from_secs(60)), "{phase}: {task:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_a_hit_until_the_end_and_then_a_new_task() {
    let world = World::new(&[Sent::Ok], &[(0, Unread), (20, Present)]).await;
    let first = world.ask(&SIGHTED, "w-1", Some("k")).await.expect("accepted");
    assert!(!first.hit && first.matches);
    let again = world.ask(&SIGHTED, "w-1", Some("k")).await.expect("a hit");
    assert_eq!((&again.task_id, again.hit, again.matches), (&first.task_id, true, true));
    let other = world.ask_as("one", &SIGHTED, "w-2", Some("k"), "{}").await.expect("a hit");
    assert_eq!((&other.task_id, other.hit, other.matches), (&first.task_id, true, false), "another target");
    let stranger = world.ask_as("two", &SIGHTED, "w-2", Some("k"), "{}").await.expect("accepted");
    assert!(!stranger.hit, "a key belongs to its application");

    let blind = world.ask(&SIGHTED, "w-3", None).await.expect("accepted");
    let repeat = world.ask(&SIGHTED, "w-3", None).await.expect("a hit");
    assert_eq!((&repeat.task_id, repeat.hit, repeat.matches), (&blind.task_id, true, true), "without a key");
    let full = world.ask(&SIGHTED, "w-4", None).await.expect_err("no room");
    assert!(matches!(full, WriteRefusal::Full), "{full:?}");
    assert!(world.ask(&SIGHTED, "w-1", Some("k")).await.expect("a hit").hit, "a hit needs no room");

    world.end(TaskId::parse(&first.task_id).expect("an id")).await;
    world.pass(1).await;
    let anew = world.ask(&SIGHTED, "w-1", Some("k")).await.expect("accepted");
    assert!(!anew.hit && anew.task_id != first.task_id);
}

#[tokio::test(start_paused = true)]
async fn of_many_first_calls_with_one_key_one_makes_a_task() {
    let world = World::new(&[Sent::Ok], &[]).await;
    let calls = (0..64).map(|_| world.ask(&SIGHTED, "w-1", Some("k")));
    let mut answers = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        answers.push(call.await.expect("accepted or a hit"));
    }
    assert_eq!(answers.iter().filter(|answer| !answer.hit).count(), 1);
    assert!(answers.iter().all(|answer| answer.task_id == answers[0].task_id));
    assert_eq!(world.engine.in_flight(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_target_has_one_write_in_flight_and_the_next_waits_until_it_has_settled() {
    let world = World::new(&[err(), Sent::Ok], &[(0, Absent), (30, Present)]).await;
    let first = world.begin(&SIGHTED).await;
    let busy = world.ask_as("two", &ONCE, "w-1", None, "other").await.expect_err("one at a time");
    let WriteRefusal::Busy { task_id, retry_after_seconds } = busy else { panic!("{busy:?}") };
    assert_eq!((task_id, retry_after_seconds), (first.to_string(), 15));
    // The end comes after 10 s. A byte that left as late as after 5 s settles until 15 s.
    assert_eq!(world.end(first).await, (Failed, 10));
    let second = world.begin(&SIGHTED).await;
    let task = world.record(second).await.task;
    assert_eq!(task.not_before.since(START).as_secs(), 15);
    assert_eq!(task.deadline_at.since(task.not_before).as_secs(), 60, "its time counts from the first possible send");
    world.end(second).await;
    let sent = world.script.sent.lock().expect("no panic")[1];
    assert_eq!((sent.0, sent.1.since(START).as_secs()), (second, 15));
}

#[tokio::test(start_paused = true)]
async fn a_task_continues_when_its_caller_is_gone() {
    let world = World::new(&[Sent::Ok], &[(0, Present)]).await;
    let mut asking = Box::pin(world.ask(&SIGHTED, "w-1", None));
    // Polls the call until it has asked the store, and drops it before the store can answer.
    let _ = tokio::time::timeout(Duration::ZERO, &mut asking).await;
    drop(asking);
    world.pass(2).await;
    let ended = world.store.in_flight(None, 10).await.expect("a store");
    assert_eq!((ended.len(), world.sends(), world.engine.in_flight()), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_hangs_or_panics_holds_no_task_up() {
    let world = World::new(&[Sent::NoAnswer("hangs".into())], &[(0, Present)]).await;
    let id = world.begin(&ONCE).await;
    assert_eq!(world.end(id).await, (Success, 15), "a send has 10 s after its last moment");
    let world = World::new(&[Sent::NoAnswer("panics".into())], &[(0, Present)]).await;
    let id = world.begin(&ONCE).await;
    assert_eq!((world.end(id).await.0, world.sends()), (Success, 1), "what a panic left open is verified");
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_is_forgotten_after_seven_days_and_its_ledger_stays() {
    let world = World::new(&[Sent::Ok], &[(0, Absent)]).await;
    let id = world.begin(&SIGHTED).await;
    let (_, at) = world.end(id).await;
    world.clock.advance(Duration::from_secs(7 * 24 * 3600 - (world.clock.now().since(START).as_secs() - at)));
    world.pass(0).await;
    assert!(world.store.task(id).await.expect("a store").is_some());
    world.clock.advance(Duration::from_secs(61));
    world.pass(0).await;
    assert!(world.store.task(id).await.expect("a store").is_none());
    assert_eq!(world.ledger().await, ["charge", "refund"]);
}
