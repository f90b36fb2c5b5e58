//! The decision table, row by row.

use super::super::task::{Probe, TaskPolicy};
use super::*;
use toolwarrant_base::json;
use toolwarrant_core::tasks::UpstreamReport;

mod provability;
mod random_events;
mod states;
mod takeover;
mod waits;

const SETTLE: u32 = 10;
const DEADLINE: u32 = 60;

fn policy(probe: Option<Probe>, idempotent: bool) -> TaskPolicy {
    TaskPolicy { probe, idempotent, settle_seconds: SETTLE, deadline_seconds: DEADLINE }
}

fn probe(baseline: bool) -> Option<Probe> {
    Some(Probe { name: "counter".into(), baseline })
}

fn none() -> Sent {
    Sent::NoAnswer("reset".into())
}

fn unsure() -> Sent {
    Sent::Unsure("status -4".into())
}

fn err() -> Sent {
    Sent::Err("jam".into())
}

fn refusal(precedes_act: bool) -> Sent {
    Sent::Refused(Refusal { code: 429, why: "too many".into(), precedes_act, is_busy: false })
}

fn busy() -> Sent {
    Sent::Refused(Refusal { code: 429, why: "too many".into(), precedes_act: false, is_busy: true })
}

fn not_sent() -> Sent {
    Sent::NotSent("refused".into())
}

fn at(seconds: u64) -> Timestamp {
    Timestamp(seconds * 1000)
}

fn reading(verdict: Verdict) -> Event {
    Event::Probed(Reading { verdict, expected: "b".into(), observed: "a".into() }, Timestamp::default())
}

fn step(task: Task, mut event: Event, now: Timestamp, facts: Facts) -> Step {
    if let Event::Probed(_, begun) = &mut event {
        *begun = now;
    }
    super::step(task, event, now, &|| facts)
}

fn run(policy: TaskPolicy, facts: Facts, events: &[(u64, Event)]) -> (Task, Vec<Entry>, Vec<Effect>) {
    let (mut entries, mut effects) = (Vec::new(), Vec::new());
    let mut task = Task::new(policy, at(0));
    for (seconds, event) in events {
        let step = step(task, event.clone(), at(*seconds), facts);
        task = step.task;
        entries.extend(step.entries);
        effects.extend(step.effect);
    }
    (task, entries, effects)
}

struct Row {
    name: &'static str,
    policy: TaskPolicy,
    sent: Sent,
    then: Vec<(u64, Event)>,
    ends: Option<TaskStatus>,
}

fn decision_table() -> Vec<Row> {
    use Verdict::{Absent, Present, Unreadable};
    let sighted = || policy(probe(false), true);
    let once = || policy(probe(false), false);
    let blind = || policy(None, false);
    let row = |name, policy, sent, then: &[(u64, Event)], ends| Row { name, policy, sent, then: then.to_vec(), ends };
    vec![
        row("ok, present", sighted(), Sent::Ok, &[(1, reading(Present))], Some(TaskStatus::Success)),
        row("err, present", sighted(), err(), &[(1, reading(Present))], Some(TaskStatus::Success)),
        row("none, present", sighted(), none(), &[(1, reading(Present))], Some(TaskStatus::Success)),
        row("ok, blind", blind(), Sent::Ok, &[], Some(TaskStatus::SuccessUnverified)),
        row("ok, absent before it settles", sighted(), Sent::Ok, &[(1, reading(Absent)), (9, reading(Absent))], None),
        row("ok, absent once", sighted(), Sent::Ok, &[(10, reading(Absent))], None),
        row(
            "ok, absent twice",
            sighted(),
            Sent::Ok,
            &[(10, reading(Absent)), (13, reading(Absent))],
            Some(TaskStatus::FailedSilent),
        ),
        row(
            "ok, absent, then late",
            sighted(),
            Sent::Ok,
            &[(10, reading(Absent)), (13, reading(Present))],
            Some(TaskStatus::Success),
        ),
        row(
            "ok, unreadable",
            sighted(),
            Sent::Ok,
            &[(10, reading(Unreadable)), (60, reading(Unreadable))],
            Some(TaskStatus::Timeout),
        ),
        row(
            "ok, too few readings",
            sighted(),
            Sent::Ok,
            &[(20, reading(Unreadable)), (60, reading(Absent))],
            Some(TaskStatus::Timeout),
        ),
        row(
            "ok, one last reading",
            sighted(),
            Sent::Ok,
            &[(50, reading(Absent)), (99, reading(Absent))],
            Some(TaskStatus::FailedSilent),
        ),
        row("err, blind", blind(), err(), &[], Some(TaskStatus::Failed)),
        row("err, absent", sighted(), err(), &[(9, reading(Absent)), (10, reading(Absent))], Some(TaskStatus::Failed)),
        row("err, unreadable once", sighted(), err(), &[(10, reading(Unreadable))], None),
        row(
            "err, unreadable twice",
            sighted(),
            err(),
            &[(10, reading(Unreadable)), (13, reading(Unreadable))],
            Some(TaskStatus::Failed),
        ),
        row("none, absent", once(), none(), &[(30, reading(Absent)), (59, reading(Absent))], None),
        row(
            "none, absent at the deadline",
            once(),
            none(),
            &[(30, reading(Absent)), (60, reading(Absent))],
            Some(TaskStatus::Timeout),
        ),
        row("none, unreadable", sighted(), none(), &[(60, reading(Unreadable))], Some(TaskStatus::Timeout)),
        row("none, blind", blind(), none(), &[(60, Event::Due)], Some(TaskStatus::Timeout)),
        row("not sent, once", sighted(), not_sent(), &[], None),
        row(
            "not sent, to the end",
            sighted(),
            not_sent(),
            &[(2, Event::Due), (2, Event::Sent(not_sent())), (6, Event::Due), (6, Event::Sent(not_sent()))],
            Some(TaskStatus::Failed),
        ),
    ]
}

fn unclear_answers() -> Vec<Row> {
    use Verdict::{Absent, Present, Unreadable};
    let row = |name, policy, sent, then: &[(u64, Event)], ends| Row { name, policy, sent, then: then.to_vec(), ends };
    let (sighted, blind) = (|| policy(probe(false), true), || policy(None, false));
    vec![
        row("refused, present", sighted(), refusal(false), &[(1, reading(Present))], Some(TaskStatus::Success)),
        row("refused, absent", sighted(), refusal(false), &[(10, reading(Absent))], Some(TaskStatus::Failed)),
        row("refused, absent before it settles", sighted(), refusal(false), &[(9, reading(Absent))], None),
        row("refused, blind", blind(), refusal(false), &[], Some(TaskStatus::Failed)),
        row("busy, present", sighted(), busy(), &[(1, reading(Present))], Some(TaskStatus::Success)),
        row("busy, absent", sighted(), busy(), &[(10, reading(Absent))], Some(TaskStatus::Failed)),
        row("busy, blind", blind(), busy(), &[], Some(TaskStatus::Failed)),
        row(
            "busy, unreadable",
            sighted(),
            busy(),
            &[(10, reading(Unreadable)), (12, reading(Unreadable))],
            Some(TaskStatus::Failed),
        ),
        row("unsure, present", sighted(), unsure(), &[(30, reading(Present))], Some(TaskStatus::Success)),
        row("unsure, absent", sighted(), unsure(), &[(30, reading(Absent)), (40, reading(Absent))], None),
        row("unsure, absent at the deadline", sighted(), unsure(), &[(60, reading(Absent))], Some(TaskStatus::Timeout)),
    ]
}

#[test]
fn every_row_of_the_decision_table_ends_as_it_says() {
    for Row { name, policy, sent, then, ends } in decision_table().into_iter().chain(unclear_answers()) {
        let events = [vec![(0, Event::Due), (0, Event::Sent(sent))], then].concat();
        let (task, entries, _) = run(policy, Facts::default(), &events);
        assert_eq!(task.status(), ends, "{name}: {task:?}");
        let count = |entry| entries.iter().filter(|written| **written == entry).count();
        assert_eq!(count(Entry::Charge), 1, "{name}");
        assert_eq!(count(Entry::Refund), usize::from(ends == Some(TaskStatus::FailedSilent)), "{name}");
        let is_undone = ["not sent, to the end", "busy, absent"].contains(&name);
        assert_eq!(count(Entry::ReverseCharge), usize::from(is_undone), "{name}");
    }
}

#[test]
fn a_baseline_is_taken_before_the_send_and_after_two_failures_the_task_is_sent_without_one() {
    let compared = || policy(probe(true), false);
    let taken = [(0, Event::Due), (1, Event::Baseline(None)), (4, Event::Due), (4, Event::Baseline(Some("a".into())))];
    let (task, entries, effects) = run(compared(), Facts::default(), &taken);
    assert_eq!((task.phase, task.baseline.as_deref()), (Phase::Sending, Some("a")));
    assert_eq!(effects, [Effect::Baseline, Effect::Baseline, Effect::Send(at(9))]);
    assert_eq!(entries, [Entry::Charge]);
    let late = [(0, Event::Due), (1, Event::Baseline(None)), (50, Event::Due)];
    let (task, entries, _) = run(compared(), Facts::default(), &late);
    assert_eq!((task.status(), entries), (Some(TaskStatus::Failed), vec![Entry::Release(at(50))]));
    let blindly = [(0, Event::Due), (1, Event::Baseline(None)), (4, Event::Due), (5, Event::Baseline(None))];
    let (task, _, effects) = run(compared(), Facts::default(), &blindly);
    assert_eq!((task.phase, task.baseline), (Phase::Sending, None));
    assert_eq!(effects, [Effect::Baseline, Effect::Baseline, Effect::Send(at(10))]);
    for (sent, verdict, ends) in [
        (Sent::Ok, Verdict::Absent, Some(TaskStatus::Timeout)),
        (Sent::Ok, Verdict::Present, Some(TaskStatus::Success)),
        (err(), Verdict::Absent, Some(TaskStatus::Failed)),
    ] {
        let again = [(5, Event::Sent(not_sent())), (7, Event::Due), (7, Event::Sent(sent))];
        let read = [(20, reading(verdict)), (23, reading(verdict)), (60, reading(verdict))];
        let (task, entries, _) = run(compared(), Facts::default(), &[&blindly[..], &again, &read].concat());
        assert_eq!(task.status(), ends);
        assert!(!entries.contains(&Entry::Refund), "{entries:?}");
    }
}

#[test]
fn a_send_that_was_in_progress_is_looked_up_repeated_or_verified_depending_on_the_upstream() {
    let found = [(0, Event::Due), (3, Event::Found), (17, Event::Due)];
    let of = |facts| run(policy(probe(false), false), facts, &found);
    assert_eq!(
        of(Facts { looks_up: true, dedupes: true, ..Facts::default() }).2,
        [Effect::Send(at(5)), Effect::LookUp]
    );
    assert_eq!(of(Facts { dedupes: true, ..Facts::default() }).2, [Effect::Send(at(5)), Effect::Send(at(22))]);
    let (task, _, effects) = of(Facts::default());
    assert_eq!((task.phase, effects), (Phase::Verifying, vec![Effect::Send(at(5)), Effect::Probe]));
    assert_eq!(task.outcome, Some((UpstreamAnswer::None, at(17))));
    let early = run(policy(None, false), Facts::default(), &found[..2]).0;
    assert_eq!(early.wake_at, Some(at(17)), "a send that may still arrive is waited for");
}

#[test]
fn evidence_says_which_refusal_came_and_if_it_came_before_the_act_and_has_the_text_of_a_failure() {
    let again = |sent: Sent| {
        let sends = [(0, sent.clone()), (2, sent.clone()), (6, sent)];
        sends.into_iter().flat_map(|(at, sent)| [(at, Event::Due), (at, Event::Sent(sent))]).collect::<Vec<_>>()
    };
    for idempotent in [false, true] {
        let (task, entries, effects) = run(policy(None, idempotent), Facts::default(), &again(refusal(true)));
        let evidence = task.evidence().expect("an end");
        let words = "refused by the platform with 429; such a refusal comes before the act, so nothing was done";
        assert_eq!((evidence.observed.as_str(), evidence.reported), (words, UpstreamReport::Failure));
        assert_eq!((effects.len(), entries.contains(&Entry::ReverseCharge)), (3, true));
        let (task, entries, effects) = run(policy(None, idempotent), Facts::default(), &again(refusal(false)));
        let evidence = task.evidence().expect("an end");
        let words = "refused by the platform with 429; it does not promise that a refusal means not done";
        assert_eq!((evidence.observed.as_str(), evidence.reported), (words, UpstreamReport::Failure));
        assert_eq!((effects.len(), entries.contains(&Entry::ReverseCharge)), (1, false));
    }
    let (task, ..) = run(policy(None, false), Facts::default(), &again(not_sent()));
    assert_eq!(task.evidence().expect("an end").observed.as_str(), "no request ever left, so nothing was done");
    let failed = [(0, Event::Due), (0, Event::Sent(err())), (10, reading(Verdict::Absent))];
    let (task, ..) = run(policy(probe(false), false), Facts::default(), &failed);
    assert_eq!(task.evidence().expect("an end").observed.as_str(), "a; the platform says: jam");
    // A refusal of an earlier send says nothing about a later one that may have left.
    let mut events = again(refusal(true))[..3].to_vec();
    events.extend([(2, Event::Sent(none())), (60, Event::Due)]);
    let (task, ..) = run(policy(None, false), Facts::default(), &events);
    assert_eq!(task.evidence().expect("an end").observed.as_str(), "none that could be understood");
}

#[test]
fn each_send_has_its_reason_in_the_timeline() {
    let of = |policy: TaskPolicy, facts: Facts, events: &[(u64, Event)]| {
        let mut task = Task::new(policy, at(0));
        let mut reasons = Vec::new();
        for (seconds, event) in events {
            let step = step(task.clone(), event.clone(), at(*seconds), facts);
            if matches!(step.effect, Some(Effect::Send(_))) {
                let resend = Resend::of(&task, step.effect);
                let noted = RecordedEvent { event: Event::Due, obstacle: None, unreadable: None, resend };
                reasons.push(TimelineEntry::Event(noted).to_string().replacen("due", "", 1));
            }
            task = step.task;
        }
        reasons
    };
    let absent = reading(Verdict::Absent);
    let sight = || policy(probe(false), true);
    let first = [(0, Event::Due), (0, Event::Sent(none())), (30, absent.clone()), (30, Event::Due)];
    let known = Facts::default();
    assert_eq!(of(sight(), known, &first), ["", "; sent again, because no answer came and no effect was read"]);
    let unsent = [(0, Event::Due), (0, Event::Sent(not_sent())), (2, Event::Due)];
    assert_eq!(of(sight(), known, &unsent), ["", "; sent again, because nothing was done before"]);
    let dedupes = Facts { dedupes: true, ..known };
    let found = [(0, Event::Due), (3, Event::Found), (17, Event::Due)];
    let repeated = "; sent again, because the upstream recognises a repeated request";
    assert_eq!(of(sight(), dedupes, &found), ["", repeated]);
    let given_up = [(0, Event::Due), (0, Event::Sent(unsure())), (30, absent), (30, Event::Due), (33, Event::Due)];
    assert_eq!(of(sight(), known, &given_up), [""]);
}

#[test]
fn a_new_process_does_not_start_a_task_before_its_target_has_settled() {
    let task = Task::new_delayed(policy(None, false), at(100), at(700));
    let found = step(task.clone(), Event::Found, at(110), Facts::default()).task;
    assert_eq!((found.wake_at, found.deadline_at), (Some(at(700)), at(760)));
    let found = step(task, Event::Found, at(10), Facts::default()).task;
    assert_eq!((found.wake_at, found.deadline_at), (Some(at(610)), at(670)));
    let at_once = Task::new(policy(None, false), at(900));
    assert_eq!(step(at_once, Event::Found, at(10), Facts::default()).task.wake_at, Some(at(70)));
}

#[test]
fn a_send_of_a_dead_process_may_have_left_even_if_the_repeated_request_is_refused() {
    let facts = Facts { dedupes: true, ..Facts::default() };
    let mut events = vec![(0, Event::Due), (3, Event::Found), (17, Event::Due), (17, Event::Sent(not_sent()))];
    events.extend([(19, Event::Due), (19, Event::Sent(not_sent())), (23, Event::Due), (23, Event::Sent(not_sent()))]);
    let (task, entries, _) = run(policy(probe(false), false), facts, &events);
    assert!(!entries.contains(&Entry::ReverseCharge), "the first send may have left, and its charge is taken back");
    assert_ne!(task.status(), Some(TaskStatus::Failed), "the first send may have worked, and nobody has looked");
}

#[test]
fn a_reading_that_began_before_the_effect_had_settled_does_not_count() {
    let (task, ..) = run(policy(probe(false), true), Facts::default(), &[(0, Event::Due), (0, Event::Sent(err()))]);
    let absent = Reading { verdict: Verdict::Absent, expected: "b".into(), observed: "a".into() };
    let judged = |begun| super::step(task.clone(), Event::Probed(absent.clone(), begun), at(11), &Facts::default).task;
    assert_eq!(judged(at(9)).status(), None, "it may have shown at the tenth second");
    assert_eq!(judged(at(10)).status(), Some(TaskStatus::Failed));
}

#[test]
fn a_line_of_a_timeline_is_one_line_without_terminal_sequences() {
    let raw = "7\u{1b}[31m\n8";
    let refused = Sent::Refused(Refusal { code: 429, why: raw.into(), precedes_act: false, is_busy: false });
    let answers = [Sent::Err(raw.into()), Sent::Pending(raw.into()), Sent::NoAnswer(raw.into())];
    let sent = answers.into_iter().chain([Sent::NotSent(raw.into()), Sent::Unsure(raw.into()), refused]);
    let sent: Vec<Sent> = sent.collect();
    let read = Reading { verdict: Verdict::Absent, expected: raw.into(), observed: raw.into() };
    let mut events = vec![Event::Baseline(Some(raw.to_owned())), Event::Probed(read, at(0))];
    events.extend(sent.iter().cloned().map(Event::Sent));
    events.extend(sent.into_iter().map(|sent| Event::LookedUp(Some(Some(sent)))));
    for event in events {
        let line = event.to_string();
        assert!(line.contains("7 8") && !line.contains(char::is_control) && !line.contains("[31m"), "{line:?}");
    }
    let (task, ..) =
        run(policy(None, false), Facts::default(), &[(0, Event::Due), (0, Event::Sent(Sent::Pending(raw.to_owned())))]);
    assert_eq!(task.operation.as_deref(), Some(raw));
}

#[test]
fn the_end_of_a_task_is_explained_by_the_row_of_the_table_that_decided_it() {
    let known = Facts::default();
    let sent = |sent: Sent| vec![(0, Event::Due), (0, Event::Sent(sent))];
    let then = |sent: Sent, verdict: Verdict| {
        let mut events = vec![(0, Event::Due), (0, Event::Sent(sent))];
        events.extend([10, 20, 60].map(|at| (at, reading(verdict))));
        events
    };
    let cases = [
        (probe(false), then(Sent::Ok, Verdict::Present), "a reading of the target showed the effect"),
        (
            None,
            sent(Sent::Ok),
            "the platform reported success, and nothing could verify it: this operation has no check",
        ),
        (
            probe(false),
            then(Sent::Ok, Verdict::Absent),
            "2 readings after the settling time showed that the effect is absent; the charge is refunded",
        ),
        (
            probe(false),
            then(Sent::Err("no".into()), Verdict::Absent),
            "reported a failure, and no reading showed the effect",
        ),
        (None, sent(Sent::Err("no".into())), "reported a failure, and no reading could contradict it"),
        (
            probe(false),
            then(busy(), Verdict::Absent),
            "was busy and refused the request with 429, and a reading showed that nothing was done",
        ),
        (
            probe(false),
            then(none(), Verdict::Unreadable),
            "did not answer in a way that could be understood, and the readings did not",
        ),
        (None, [sent(none()), vec![(60, Event::Due)]].concat(), "the deadline passed while the outcome was unknown"),
        (None, vec![(60, Event::Due)], "nothing was sent before it was too late"),
        (
            probe(true),
            vec![(0, Event::Due), (60, Event::Baseline(None)), (60, Event::Due)],
            "the target could not be read before",
        ),
    ];
    for (probe, events, expected) in cases {
        let (task, ..) = run(policy(probe, false), known, &events);
        let said = explain_end(&task).unwrap_or_default();
        assert!(said.contains(expected), "{events:?}: {said}");
    }
    let in_flight = Task::new(policy(None, false), at(0));
    assert_eq!(explain_end(&in_flight), None);
    let restored = explain_end(&abandon(in_flight, at(3)).task).unwrap_or_default();
    assert!(restored.contains("a restore ended the task"), "{restored}");
}

#[test]
fn an_event_is_the_same_after_it_was_stored() {
    let refused = Refusal { code: 429, why: "slow down".into(), precedes_act: true, is_busy: false };
    let sent =
        [Sent::NotSent("x".into()), Sent::Refused(refused), Sent::Ok, Sent::Pending("7".to_owned()), none(), unsure()];
    let events = sent.into_iter().flat_map(|sent| [Event::Sent(sent.clone()), Event::LookedUp(Some(Some(sent)))]);
    let rest =
        [Event::Due, Event::Found, Event::Baseline(None), Event::Baseline(Some("a".to_owned())), Event::LookedUp(None)];
    let rest = rest.into_iter().chain([Event::TakenOver, Event::LookedUp(Some(None)), reading(Verdict::Absent)]);
    for event in events.chain(rest) {
        let noted =
            RecordedEvent { event, obstacle: Some("o".to_owned()), unreadable: None, resend: Some(Resend::NoEffect) };
        let stored = serde_json::to_string(&noted).unwrap();
        assert_eq!(json::read::<RecordedEvent>(&stored).unwrap(), noted, "{stored}");
    }
}
