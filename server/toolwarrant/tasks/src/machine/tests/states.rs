//! Compares docs/states.md with the machine. People write the page. It must have a row for each
//! phase, and tables with the ends that the machine gives.

use super::*;
use toolwarrant_base::json;

const PAGE: &str = include_str!("../../../../../../docs/states.md");

/// Conditions: the words of the page, the directions that the probe can prove, the verdict of each
/// reading, and true for a write that may be sent again.
const READINGS: [(&str, Provability, Verdict, bool); 8] = [
    ("the effect", Provability::Both, Verdict::Present, false),
    ("its absence", Provability::Both, Verdict::Absent, false),
    ("its absence; the write may be repeated", Provability::Both, Verdict::Absent, true),
    ("nothing, because each reading failed", Provability::Both, Verdict::Unreadable, false),
    ("no effect, where only presence can be proven", Provability::Presence, Verdict::Absent, false),
    ("no absence, where only absence can be proven", Provability::Absence, Verdict::Present, false),
    ("a state that the write does not change", Provability::Both, Verdict::Undecidable, false),
    ("nothing, because there is no check", Provability::Nothing("dark"), Verdict::Unreadable, false),
];

#[test]
fn the_page_of_states_shows_each_phase() {
    // Serde's message lists the phases, so a new one cannot be missing here.
    let message = json::read::<Phase>("\"\"").expect_err("no phase").to_string();
    let phases: Vec<_> = message.split('`').skip(3).step_by(2).filter(|name| *name != "done").collect();
    assert_eq!(rows("## Phases").map(|row| row.split('`').nth(1).unwrap_or_default()).collect::<Vec<_>>(), phases);
}

#[test]
fn the_tables_of_the_page_of_states_have_the_ends_that_the_machine_gives() {
    let sent = vec![(0, Event::Due), (0, Event::Sent(not_sent())), (2, Event::Due), (2, Event::Sent(not_sent()))];
    let never_left = [sent, vec![(6, Event::Due), (6, Event::Sent(not_sent()))]].concat();
    let (in_flight, _) = run(policy(probe(false), false), Facts::default(), &[(0, Event::Due)]);
    assert_eq!(explain_end(&in_flight), None);
    let abandoned = abandon(in_flight, at(3));
    assert!(explain_end(&abandoned.task).is_some_and(|why| why.contains("a restore ended the task")));
    let before = [
        ("each send is known to have done nothing", end(Facts::default(), true, &never_left)),
        ("it was too late for the first send", end(Facts::default(), true, &[(60, Event::Due)])),
        (
            "the target is gone before the first send",
            end(Facts { gone: Some("sold"), ..Facts::default() }, true, &[(0, Event::Due)]),
        ),
        ("a restore found it in flight", show(&abandoned.task, &abandoned.entries)),
    ];
    let before = before.map(|(condition, end)| format!("| {condition} | {end} |"));
    assert_eq!(rows("## Ends without a reading").collect::<Vec<_>>(), before);

    let after = READINGS.map(|(condition, provability, verdict, idempotent)| {
        let ends = [Sent::Ok, err(), busy(), none(), unsure()].map(|sent| {
            let answered = vec![(0, Event::Due), (0, Event::Sent(sent))];
            let read = [30, 40, 60].map(|second| (second, reading(verdict)));
            end(Facts { provability, ..Facts::default() }, idempotent, &[answered, read.to_vec()].concat())
        });
        format!("| {condition} | {} |", ends.join(" | "))
    });
    assert_eq!(rows("## Ends after an answer").collect::<Vec<_>>(), after);
}

fn rows(heading: &str) -> impl Iterator<Item = &'static str> {
    let (_, section) = PAGE.split_once(&format!("\n{heading}\n")).expect("a heading");
    section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2)
}

fn end(facts: Facts, idempotent: bool, events: &[(u64, Event)]) -> String {
    let (task, entries) = run(policy(probe(false), idempotent), facts, events);
    show(&task, &entries)
}

/// Writes the phase or end of a task as the page does, with the entry of its charge.
fn show(task: &Task, entries: &[Entry]) -> String {
    let kinds: Vec<_> = entries.iter().filter_map(|entry| entry.kind()).filter(|kind| *kind != "charge").collect();
    [&[&*format!("`{}`", task.phase.as_str())], &*kinds].concat().join(", ")
}
