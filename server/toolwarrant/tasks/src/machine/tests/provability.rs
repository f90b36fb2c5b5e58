//! The rows of the decision table in which the probe cannot prove both directions.

use super::*;

const SETTLED: [u64; 3] = [15, 18, 21];
const END: u64 = DEADLINE as u64;

/// With the second from which each holds.
type Over = &'static [(u64, Provability)];

const BLIND: Provability = Provability::Nothing("it has no eyes");

fn provability(over: Over, now: u64) -> Facts {
    let provability =
        over.iter().rev().find(|(from, _)| *from <= now).map_or(Provability::Both, |(_, provability)| *provability);
    Facts { provability, ..Facts::default() }
}

fn live(policy: TaskPolicy, facts: impl Fn(u64) -> Facts, events: &[(u64, Event)]) -> (Task, Vec<Entry>, Vec<Effect>) {
    let (mut entries, mut effects) = (Vec::new(), Vec::new());
    let mut task = Task::new(policy, at(0));
    for (seconds, event) in events {
        let step = step(task, event.clone(), at(*seconds), facts(*seconds));
        task = step.task;
        entries.extend(step.entries);
        effects.extend(step.effect);
    }
    (task, entries, effects)
}

fn observation(task: &Task) -> String {
    task.evidence().expect("an end").observed.as_str().to_owned()
}

/// The name, the provable directions, the answer, the readings, the end, and a part of the
/// evidence.
type ProvabilityRow = (&'static str, Over, fn() -> Sent, Vec<(u64, Event)>, Option<TaskStatus>, &'static str);

const BOTH: Over = &[];
const PRESENCE: Over = &[(0, Provability::Presence)];
const ABSENCE: Over = &[(0, Provability::Absence)];
const NOTHING: Over = &[(0, BLIND)];
const WITHDRAWN: Over = &[(0, Provability::Both), (18, Provability::Presence)];
const SHOWN: Over = &[(0, Provability::Presence), (18, Provability::Both)];
const VANISHED: Over = &[(0, Provability::Both), (18, BLIND)];
const FOUND: Over = &[(0, BLIND), (18, Provability::Both)];

fn each(verdicts: &[(u64, Verdict)]) -> Vec<(u64, Event)> {
    verdicts.iter().map(|(at, verdict)| (*at, reading(*verdict))).collect()
}

fn due(seconds: u64) -> Vec<(u64, Event)> {
    vec![(seconds, Event::Due)]
}

fn ok() -> Sent {
    Sent::Ok
}

fn rows_of_one_kind() -> Vec<ProvabilityRow> {
    use Verdict::{Absent, Present, Undecidable, Unreadable};
    let [first, second, third] = SETTLED;
    vec![
        ("undecidable, ok", BOTH, ok, each(&[(1, Undecidable)]), Some(TaskStatus::SuccessUnverified), "a"),
        ("undecidable, err", BOTH, err, each(&[(1, Undecidable)]), Some(TaskStatus::Failed), "a"),
        ("undecidable, none", BOTH, none, each(&[(1, Undecidable)]), None, ""),
        ("undecidable, none, to the end", BOTH, none, each(&[(END, Undecidable)]), Some(TaskStatus::Timeout), "a"),
        (
            "nothing, ok",
            NOTHING,
            ok,
            vec![],
            Some(TaskStatus::SuccessUnverified),
            "nothing can be checked: it has no eyes",
        ),
        ("nothing, err", NOTHING, err, vec![], Some(TaskStatus::Failed), "nothing can be checked: it has no eyes"),
        ("nothing, none", NOTHING, none, vec![], None, ""),
        ("nothing, none, to the end", NOTHING, none, due(END), Some(TaskStatus::Timeout), "it has no eyes"),
        ("presence, ok, present", PRESENCE, ok, each(&[(1, Present)]), Some(TaskStatus::Success), "a"),
        ("presence, ok, absent", PRESENCE, ok, each(&[(first, Absent), (second, Absent), (third, Absent)]), None, ""),
        (
            "presence, ok, absent to the end",
            PRESENCE,
            ok,
            each(&[(first, Absent), (second, Absent), (END, Absent)]),
            Some(TaskStatus::Timeout),
            "a; here, that proves no absence",
        ),
        ("presence, err, absent once", PRESENCE, err, each(&[(first, Absent)]), None, ""),
        (
            "presence, err, absent",
            PRESENCE,
            err,
            each(&[(first, Absent), (second, Absent)]),
            Some(TaskStatus::Failed),
            "a",
        ),
        ("presence, none, absent: no repeat", PRESENCE, none, each(&[(30, Absent), (40, Absent)]), None, ""),
        ("presence, none, absent to the end", PRESENCE, none, each(&[(END, Absent)]), Some(TaskStatus::Timeout), "a"),
        (
            "absence, ok, absent",
            ABSENCE,
            ok,
            each(&[(first, Absent), (second, Absent)]),
            Some(TaskStatus::FailedSilent),
            "a",
        ),
        ("absence, ok, present early", ABSENCE, ok, each(&[(1, Present), (4, Present), (9, Present)]), None, ""),
        ("absence, ok, present once", ABSENCE, ok, each(&[(first, Present), (second, Unreadable)]), None, ""),
        (
            "absence, ok, present",
            ABSENCE,
            ok,
            each(&[(first, Present), (second, Unreadable), (third, Present)]),
            Some(TaskStatus::SuccessUnverified),
            "a; here, that proves no success",
        ),
        (
            "absence, ok, unreadable to the end",
            ABSENCE,
            ok,
            each(&[(first, Unreadable), (second, Unreadable), (END, Unreadable)]),
            Some(TaskStatus::Timeout),
            "a",
        ),
        (
            "absence, err, present",
            ABSENCE,
            err,
            each(&[(first, Present), (second, Present)]),
            Some(TaskStatus::Failed),
            "a",
        ),
        ("absence, none, present", ABSENCE, none, each(&[(first, Present), (second, Present)]), None, ""),
        ("absence, none, present to the end", ABSENCE, none, each(&[(END, Present)]), Some(TaskStatus::Timeout), "a"),
    ]
}

fn rows_that_change() -> Vec<ProvabilityRow> {
    use Verdict::{Absent, Present};
    let [first, second, third] = SETTLED;
    vec![
        ("withdrawn, ok", WITHDRAWN, ok, each(&[(first, Absent), (second, Absent), (third, Absent)]), None, ""),
        ("shown, ok", SHOWN, ok, each(&[(first, Absent), (second, Absent)]), None, ""),
        (
            "shown, ok, absent twice since",
            SHOWN,
            ok,
            each(&[(first, Absent), (second, Absent), (third, Absent)]),
            Some(TaskStatus::FailedSilent),
            "a",
        ),
        (
            "vanished, ok, while it waits",
            VANISHED,
            ok,
            [each(&[(first, Absent)]), due(second)].concat(),
            Some(TaskStatus::SuccessUnverified),
            "it says that it is done; nothing can be checked: it has no eyes",
        ),
        (
            "vanished, ok, while it is read",
            VANISHED,
            ok,
            each(&[(first, Absent), (second, Absent)]),
            Some(TaskStatus::SuccessUnverified),
            "it says that it is done; nothing can be checked: it has no eyes",
        ),
        (
            "vanished, none",
            VANISHED,
            none,
            [each(&[(first, Absent)]), due(second), due(END)].concat(),
            Some(TaskStatus::Timeout),
            "none that could be understood; nothing can be checked: it has no eyes",
        ),
        (
            "found, none, read at the end",
            FOUND,
            none,
            [due(END), each(&[(END, Present)])].concat(),
            Some(TaskStatus::Success),
            "a",
        ),
    ]
}

#[test]
fn a_reading_decides_only_in_a_direction_that_is_proven() {
    for (name, over, sent, then, ends, says) in rows_of_one_kind().into_iter().chain(rows_that_change()) {
        let events = [vec![(0, Event::Due), (0, Event::Sent(sent()))], then].concat();
        let (task, entries, effects) = live(policy(probe(false), true), |now| provability(over, now), &events);
        assert_eq!(task.status(), ends, "{name}: {task:?}");
        assert_eq!(entries.contains(&Entry::Refund), ends == Some(TaskStatus::FailedSilent), "{name}");
        assert_eq!(effects.iter().filter(|effect| matches!(effect, Effect::Send(_))).count(), 1, "{name}");
        assert!(ends.is_none() || observation(&task).contains(says), "{name}: {}", observation(&task));
        assert!(over != NOTHING || !effects.contains(&Effect::Probe), "{name}: nothing is read");
    }
}

#[test]
fn an_unanswered_request_is_sent_again_only_if_its_absence_can_be_proven() {
    let events = [(0, Event::Due), (0, Event::Sent(none())), (30, reading(Verdict::Absent)), (30, Event::Due)];
    let sends = |provability| {
        let facts = Facts { provability, ..Facts::default() };
        let (.., effects) = run(policy(probe(false), true), facts, &events);
        effects.iter().filter(|effect| matches!(effect, Effect::Send(_))).count()
    };
    assert_eq!([Provability::Both, Provability::Absence, Provability::Presence, BLIND].map(sends), [2, 2, 1, 1]);
}

#[test]
fn a_failure_reported_after_an_unanswered_send_does_not_count_if_the_target_cannot_be_read() {
    let mut events = vec![(0, Event::Due), (0, Event::Sent(none())), (30, reading(Verdict::Absent))];
    events.extend([(30, Event::Due), (31, Event::Sent(err()))]);
    let over = |now| provability(&[(0, Provability::Both), (31, BLIND)], now);
    let (task, ..) = live(policy(probe(false), true), over, &events);
    assert_eq!((task.status(), task.wake_at), (None, Some(at(END))), "the first send may have done it");
    events.push((END, Event::Due));
    assert_eq!(live(policy(probe(false), true), over, &events).0.status(), Some(TaskStatus::Timeout));
}

#[test]
fn a_baseline_is_taken_only_if_it_can_prove_something() {
    let compared = || policy(probe(true), false);
    let send = Effect::Send(at(5));
    let (task, _, effects) = live(compared(), |now| provability(&[(0, BLIND)], now), &[(0, Event::Due)]);
    assert_eq!((task.phase, effects), (Phase::Sending, vec![send]));
    let events = [(0, Event::Due), (4, Event::Baseline(None))];
    let (task, entries, effects) =
        live(compared(), |now| provability(&[(0, Provability::Both), (1, BLIND)], now), &events);
    assert_eq!((task.phase, effects), (Phase::Sending, vec![Effect::Baseline, Effect::Send(at(9))]));
    assert_eq!(entries, [Entry::Charge]);
    let refused = [(0, Event::Due), (0, Event::Sent(not_sent())), (2, Event::Due), (2, Event::Sent(not_sent()))];
    let refused = [&refused[..], &[(6, Event::Due), (6, Event::Sent(not_sent()))]].concat();
    let (task, ..) = live(compared(), |now| provability(&[(0, BLIND)], now), &refused);
    assert_eq!(
        (task.status(), &*observation(&task)),
        (Some(TaskStatus::Failed), "no request ever left, so nothing was done")
    );
    let events = [(0, Event::Due), (4, Event::Baseline(None)), (7, Event::Due)];
    let (task, ..) = live(compared(), |now| provability(&[(0, Provability::Both), (5, BLIND)], now), &events);
    assert_eq!(task.phase, Phase::Sending);
}

#[test]
fn without_a_baseline_an_absence_does_not_count() {
    use Verdict::{Absent, Present};
    let judged = |later, then: &[(u64, Event)]| {
        let blind = Facts { provability: BLIND, ..Facts::default() };
        let sent = step(Task::new(policy(probe(true), true), at(0)), Event::Due, at(0), blind);
        let mut task = sent.task;
        for (seconds, event) in [(0, Event::Sent(Sent::Ok))].iter().chain(then) {
            task = step(task, event.clone(), at(*seconds), Facts { provability: later, ..Facts::default() }).task;
        }
        task
    };
    let twice = [(15, reading(Absent)), (18, reading(Absent)), (END, reading(Absent))];
    assert_eq!(judged(Provability::Both, &twice).status(), Some(TaskStatus::Timeout), "no refund");
    assert_eq!(judged(Provability::Both, &[(1, reading(Present))]).status(), Some(TaskStatus::Success));
    let task = judged(Provability::Absence, &[(1, Event::Due)]);
    assert_eq!(task.status(), Some(TaskStatus::SuccessUnverified));
    assert!(observation(&task).contains("no reading from before the send"), "{}", observation(&task));
}

#[test]
fn a_reading_is_not_a_baseline_once_something_may_have_left() {
    // A process sent it without a baseline and died. The next one sent it again to an upstream that
    // recognises it, and that refused it. By then the target can be read.
    let mut events = vec![(0, Event::Due), (3, Event::Found), (17, Event::Due), (17, Event::Sent(not_sent()))];
    events.push((19, Event::Due));
    let over = |now| Facts { dedupes: true, ..provability(&[(0, BLIND), (18, Provability::Both)], now) };
    let (task, _, effects) = live(policy(probe(true), true), over, &events);
    assert_eq!((task.phase, task.baseline), (Phase::Sending, None));
    assert!(!effects.contains(&Effect::Baseline), "it would show the effect of the first send as what was before");
}

#[test]
fn a_request_that_the_upstream_no_longer_knows_is_verified_at_once() {
    let events = [(0, Event::Due), (1, Event::Sent(Sent::Pending("7".into()))), (4, Event::Due)];
    let lost = [&events[..], &[(5, Event::LookedUp(Some(Some(none()))))]].concat();
    let (task, _, effects) = run(policy(probe(false), false), Facts::default(), &lost);
    assert_eq!((task.phase, effects.last()), (Phase::Verifying, Some(&Effect::Probe)));
    assert_eq!((task.outcome, task.unanswered), (Some((UpstreamAnswer::None, at(5))), true));
    for known in [Some(None), Some(Some(not_sent())), Some(Some(Sent::Pending("7".into()))), None] {
        let goes_on = [&events[..], &[(5, Event::LookedUp(known))]].concat();
        assert_eq!(run(policy(probe(false), false), Facts::default(), &goes_on).0.phase, Phase::Polling);
    }
    let late = [&events[..], &[(END - 1, Event::LookedUp(None))]].concat();
    let (task, ..) = run(policy(probe(false), false), Facts::default(), &late);
    assert_eq!(task.wake_at, Some(at(END)), "it is asked at the deadline, and not again after it");
}

#[test]
fn a_reading_that_ends_after_the_deadline_is_the_last() {
    let events = [(0, Event::Due), (0, Event::Sent(Sent::Ok))];
    let (task, ..) = run(policy(probe(false), false), Facts::default(), &events);
    let unread = Reading { verdict: Verdict::Unreadable, expected: "b".into(), observed: "a".into() };
    let ended = super::super::step(task, Event::Probed(unread, at(END - 1)), at(END + 29), &Facts::default).task;
    assert_eq!((ended.status(), ended.finished_at), (Some(TaskStatus::Timeout), Some(at(END + 29))));
}

type Unsent<'a> = (bool, &'a [(u64, Event)], &'a [Entry]);

#[test]
fn on_a_target_that_is_no_longer_served_an_unsent_task_fails_at_once_and_a_sent_one_times_out() {
    let gone = |from| move |now| Facts { gone: (now >= from).then_some("its mill was removed"), ..Facts::default() };
    let unsent: [Unsent<'_>; 4] = [
        (false, &[(0, Event::Due)], &[Entry::Release(at(0))]),
        (true, &[(0, Event::Found)], &[Entry::Release(at(0))]),
        (true, &[(0, Event::Baseline(None))], &[Entry::Release(at(0))]),
        (
            false,
            &[(0, Event::Sent(not_sent())), (2, Event::Due)],
            &[Entry::Charge, Entry::ReverseCharge, Entry::Release(at(2))],
        ),
    ];
    for (baseline, then, written) in unsent {
        let known = then.last().expect("an event").0;
        let begins = if then.len() == 1 && !baseline { vec![] } else { vec![(0, Event::Due)] };
        let (mut task, mut entries) = (Task::new(policy(probe(baseline), true), at(0)), Vec::new());
        for (number, (seconds, event)) in begins.iter().chain(then).enumerate() {
            let facts = if number == 0 && !begins.is_empty() { Facts::default() } else { gone(known)(*seconds) };
            let step = step(task, event.clone(), at(*seconds), facts);
            (task, entries) = (step.task, [entries, step.entries].concat());
        }
        assert_eq!((task.status(), &*entries), (Some(TaskStatus::Failed), written), "{then:?}");
        assert_eq!(observation(&task), "no request ever left, so nothing was done; its mill was removed", "{then:?}");
    }
    for sent in [Sent::Ok, none()] {
        let unread = || reading(Verdict::Unreadable);
        let events = [(0, Event::Due), (1, Event::Sent(sent)), (15, unread()), (18, unread()), (END, unread())];
        let (task, ..) = live(policy(probe(false), true), gone(1), &events);
        assert_eq!(task.status(), Some(TaskStatus::Timeout));
    }
    let pending = [(0, Event::Due), (1, Event::Sent(Sent::Pending("7".into()))), (END, Event::LookedUp(None))];
    let unread = [&pending[..], &[(END, reading(Verdict::Unreadable))]].concat();
    assert_eq!(live(policy(probe(false), true), gone(1), &unread).0.status(), Some(TaskStatus::Timeout));
}
