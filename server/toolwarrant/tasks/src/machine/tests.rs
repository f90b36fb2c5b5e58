//! The machine, event by event.

use super::super::task::{Probe, TaskPolicy};
use super::*;
use toolwarrant_base::json;

mod random_events;
mod states;
mod table;
mod takeover;

use table::{Life, live, parse_sent};

const SETTLE: u32 = 10;
const DEADLINE: u32 = 60;

fn policy(probe: Option<Probe>, idempotent: bool) -> TaskPolicy {
    TaskPolicy { probe, idempotent, settle_seconds: SETTLE, deadline_seconds: DEADLINE }
}

fn probe(baseline: bool) -> Option<Probe> {
    Some(Probe { name: "counter".into(), baseline })
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
fn a_reading_that_began_before_the_effect_had_settled_does_not_count() {
    let task = live("probe, idempotent: 0 due; 0 err").task;
    let absent = Reading { verdict: Verdict::Absent, expected: "b".into(), observed: "a".into() };
    let judged = |begun| super::step(task.clone(), Event::Probed(absent.clone(), begun), at(11), &Facts::default).task;
    assert_eq!(judged(at(9)).status(), None, "it may have shown at the tenth second");
    assert_eq!(judged(at(10)).status(), Some(TaskStatus::Failed));
}

#[test]
fn a_reading_that_ends_after_the_deadline_is_the_last() {
    let task = live("probe: 0 due; 0 ok").task;
    let unread = Reading { verdict: Verdict::Unreadable, expected: "b".into(), observed: "a".into() };
    let ended = super::step(task, Event::Probed(unread, at(59)), at(89), &Facts::default).task;
    assert_eq!((ended.status(), ended.finished_at), (Some(TaskStatus::Timeout), Some(at(89))));
}

fn times_of_readings(answer: &str, verdict: Verdict, provability: Provability) -> Vec<u64> {
    let mut task = live(&format!("probe: 0 due; 0 {answer}")).task;
    let (mut now, mut times) = (at(0), vec![]);
    while task.status().is_none() {
        times.push(now.since(at(0)).as_secs());
        let Event::Probed(read, _) = reading(verdict) else { unreachable!() };
        let facts = Facts { provability, ..Facts::default() };
        task = super::step(task, Event::Probed(read, now), now, &|| facts).task;
        now = task.wake_at.unwrap_or(now);
    }
    times
}

#[test]
fn readings_back_off_and_follow_each_other_closely_once_the_effect_has_settled() {
    assert_eq!(times_of_readings("ok", Verdict::Unreadable, Provability::Both), [0, 3, 6, 10, 13, 26, 52, 60]);
    assert_eq!(times_of_readings("ok", Verdict::Absent, Provability::Both), [0, 3, 6, 10, 13]);
    assert_eq!(times_of_readings("ok", Verdict::Absent, Provability::Presence), [0, 3, 6, 10, 60]);
    assert_eq!(times_of_readings("err", Verdict::Absent, Provability::Presence), [0, 3, 6, 10, 13]);
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
    let pending = Event::Sent(Sent::Pending(raw.to_owned()));
    let task = step(live("no probe: 0 due").task, pending, at(0), Facts::default()).task;
    assert_eq!(task.operation.as_deref(), Some(raw));
}

#[test]
fn an_event_is_the_same_after_it_was_stored() {
    let sent = ["not sent", "refused before", "ok", "pending", "none", "unsure"];
    let sent = sent.into_iter().map(|text| parse_sent(text).expect(text));
    let events = sent.flat_map(|sent| [Event::Sent(sent.clone()), Event::LookedUp(Some(Some(sent)))]);
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
