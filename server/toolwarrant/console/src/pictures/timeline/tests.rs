//! Pictures of tasks that the machine has driven, as numbers.

use super::*;
use std::fmt::Write;
use toolwarrant_tasks::history::TaskHistory;
use toolwarrant_tasks::machine::{Event, Facts, RecordedEvent, Sent, Step, TimelineEntry, step};
use toolwarrant_tasks::store::{LedgerRow, TimelineEvent};
use toolwarrant_tasks::task::{Probe, Reading, Task, TaskId, TaskPolicy, Verdict};

/// 2026-11-22T12:00:00Z.
const START: u64 = 1_795_348_800_000;

const BEFORE: [(u64, Event); 1] = [(20, Event::Due)];

fn at(millis: u64) -> Timestamp {
    Timestamp(START + millis)
}

fn policy(has_probe: bool) -> TaskPolicy {
    let probe = has_probe.then(|| Probe { name: "exit_address".to_owned(), baseline: true });
    TaskPolicy { probe, idempotent: true, settle_seconds: 15, deadline_seconds: 60 }
}

/// Returns the title of the picture and the history after these events.
fn show(mut task: Task, events: &[(u64, Event)]) -> (String, TaskHistory) {
    let event = |at, phase, what| TimelineEvent { at, phase, what };
    let mut timeline = vec![event(at(0), "ready", TimelineEntry::Sentence("accepted".to_owned()))];
    let mut ledger = Vec::new();
    for (millis, happening) in events {
        let now = at(*millis);
        let Step { task: next, entries, .. } = step(task.clone(), happening.clone(), now, &Facts::default);
        let kept = |task: &Task| Task { wake_at: None, reading: None, obstacle: None, ..task.clone() };
        if kept(&next) != kept(&task) {
            let noted = RecordedEvent { event: happening.clone(), obstacle: None, unreadable: None, resend: None };
            timeline.push(event(now, next.phase.as_str(), TimelineEntry::Event(noted)));
        }
        let id = TaskId::new(at(0), [0; 10]);
        let row = |kind| LedgerRow { number: 1, id, application: "shop".to_owned(), kind, at: now };
        ledger.extend(entries.iter().filter_map(|entry| entry.kind()).map(row));
        task = next;
    }
    let title = format!("task_1 {}", task.outward_status().as_str());
    (title, TaskHistory::of(&task, timeline, &ledger))
}

fn read(millis: u64, verdict: Verdict) -> (u64, Event) {
    (millis, Event::Probed(Reading { verdict, expected: "b".into(), observed: "a".into() }, at(millis - 30)))
}

fn answer_at(millis: u64, sent: Sent) -> Vec<(u64, Event)> {
    let baseline = Event::Baseline(Some("a".to_owned()));
    [BEFORE.to_vec(), vec![(60, baseline), (millis, Event::Sent(sent))]].concat()
}

fn describe(picture: &Timeline) -> String {
    let Timeline { title, lanes, width, events, bars, marks, folds, moments, ticks: _, steps } = picture;
    let mut out = format!("{title}, {width} wide\nevents {events:?}\n");
    for TimelineBar { lane, begin, end, kind } in bars {
        let _ = writeln!(out, "{begin:4} to {end}  {kind}, {}", lanes[*lane]);
    }
    for TimelineFold { begin, end, length } in folds {
        let _ = writeln!(out, "{begin:4} to {end}  folded {length}");
    }
    for TimelineMark { lane, place, kind, text } in marks {
        let _ = writeln!(out, "{place:4}  {text}, {kind}, {}", lanes[*lane]);
    }
    for TimelineMoment { place, kind, after } in moments {
        let _ = writeln!(out, "{place:4}  {kind} {after}");
    }
    for TimelineStep { number, at, lane, what, .. } in steps {
        let number = number.map_or(String::new(), |number| format!("{number}."));
        let _ = writeln!(out, "{number:3} {} {lane}: {what}", &at.to_string()[11..23]);
    }
    out
}

#[test]
fn each_end_and_each_disturbance_has_its_picture() {
    use Verdict::{Absent, Present, Unreadable};
    let new = || Task::new(policy(true), at(0));
    let silent = [read(400, Absent), read(15_400, Absent), read(18_500, Absent)];
    let no_answer = || answer_at(10_060, Sent::NoAnswer("reset".into()));
    let again =
        vec![read(32_500, Absent), (32_510, Event::Due), (32_700, Event::Sent(Sent::Ok)), read(32_900, Present)];
    let reread = |restart: Event| {
        let begun = [BEFORE.to_vec(), vec![(60, Event::Baseline(Some("a".to_owned())))]].concat();
        [begun, vec![(4_000, restart), (22_000, Event::Due), read(22_100, Present)]].concat()
    };
    let waited =
        [(30_000, Event::Due), (30_040, Event::Baseline(Some("a".to_owned()))), (30_300, Event::Sent(Sent::Ok))];
    let pending = [(20_000, Event::LookedUp(Some(Some(Sent::Err("jam".into())))))];
    let cases = [
        ("success", new(), [answer_at(300, Sent::Ok), vec![read(340, Present)]].concat()),
        ("failed_silent", new(), [answer_at(300, Sent::Ok), silent.to_vec()].concat()),
        ("success_unverified", Task::new(policy(false), at(0)), vec![(0, Event::Due), (0, Event::Sent(Sent::Ok))]),
        (
            "failed",
            new(),
            [answer_at(300, Sent::Pending("7".to_owned())), pending.to_vec(), vec![read(35_100, Absent)]].concat(),
        ),
        ("timeout", new(), [no_answer(), vec![read(60_000, Unreadable)]].concat()),
        ("in_flight", new(), answer_at(300, Sent::Ok)),
        ("waited", Task::new_delayed(policy(true), at(0), at(30_000)), waited.to_vec()),
        ("sent_twice", new(), [no_answer(), again].concat()),
        ("restart", new(), reread(Event::Found)),
        ("takeover", new(), reread(Event::TakenOver)),
    ];
    for (name, task, events) in cases {
        let (title, history) = show(task, &events);
        let picture = Timeline::of(&title, Some("lamp"), &history, at(31_000)).expect("a picture");
        insta::assert_snapshot!(name, describe(&picture));
        for count in 1..history.timeline.len() {
            let (mut begun, next) = (history.clone(), history.timeline[count].at);
            begun.timeline.truncate(count);
            let picture = Timeline::of(&title, Some("lamp"), &begun, next).expect("a picture");
            assert!(picture.events.is_sorted(), "{name} {count}");
            assert!(picture.bars.iter().all(|bar| bar.begin <= bar.end), "{name} {count}");
            assert!(picture.folds.iter().all(|fold| fold.begin <= fold.end), "{name} {count}");
            let places = picture.events.iter().chain(picture.marks.iter().map(|mark| &mark.place));
            assert!({ places }.all(|place| *place <= picture.width), "{name} {count}");
        }
        if let Ok(folder) = std::env::var("PICTURES") {
            std::fs::write(format!("{folder}/{name}.svg"), picture.to_string()).expect("a folder");
        }
    }
}

#[test]
fn a_clock_that_was_set_back_and_rows_of_another_version_keep_their_order() {
    let (title, mut history) = show(Task::new(policy(true), at(0)), &answer_at(300, Sent::Ok));
    history.timeline[2].at = at(0).minus(std::time::Duration::from_secs(99));
    history.timeline[3].event = None;
    let picture = Timeline::of(&title, None, &history, at(0)).expect("a picture");
    assert!(picture.events.is_sorted_by(|one, next| one < next), "{picture:?}");
    assert!(picture.bars.iter().all(|bar| bar.begin <= bar.end), "{picture:?}");
    let numbers: Vec<_> = picture.steps.iter().filter_map(|step| step.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    history.timeline.clear();
    assert!(Timeline::of(&title, None, &history, at(0)).is_none());
}

#[test]
fn a_picture_has_no_style_and_escapes_what_others_wrote() {
    let (_, history) = show(Task::new(policy(true), at(0)), &answer_at(300, Sent::Ok));
    let picture = Timeline::of("\"><b>", Some("<script>'\"&"), &history, at(0));
    let svg = picture.expect("a picture").to_string();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
    for forbidden in ["<script", "<b>", "style", "href", " on"] {
        assert!(!svg.contains(forbidden), "{forbidden}: {svg}");
    }
}
