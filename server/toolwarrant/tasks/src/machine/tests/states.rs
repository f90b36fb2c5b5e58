//! Compares docs/states.md with the machine. People write the page. It must have a row for each
//! phase, and tables with the ends that the machine gives.

use super::*;
use toolwarrant_base::json;

const PAGE: &str = include_str!("../../../../../../docs/states.md");

/// Conditions: the words of the page, the policy and the directions that the probe can prove, and
/// the verdict of each reading.
const READINGS: [(&str, &str, &str); 8] = [
    ("the effect", "probe", "present"),
    ("its absence", "probe", "absent"),
    ("its absence; the write may be repeated", "probe, idempotent", "absent"),
    ("nothing, because each reading failed", "probe", "unreadable"),
    ("no effect, where only presence can be proven", "probe, presence", "absent"),
    ("no absence, where only absence can be proven", "probe, absence", "present"),
    ("a state that the write does not change", "probe", "undecidable"),
    ("nothing, because there is no check", "probe, nothing", "unreadable"),
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
    let in_flight = live("probe: 0 due").task;
    assert_eq!(explain_end(&in_flight), None);
    let abandoned = abandon(in_flight, at(3));
    assert!(explain_end(&abandoned.task).is_some_and(|why| why.contains("a restore ended the task")));
    let never_left = "probe, idempotent: 0 due; 0 not sent; 2 due; 2 not sent; 6 due; 6 not sent";
    let before = [
        ("each send is known to have done nothing", end(never_left)),
        ("it was too late for the first send", end("probe, idempotent: 60 due")),
        ("the target is gone before the first send", end("probe, idempotent, gone: 0 due")),
        ("a restore found it in flight", show(&abandoned.task, &abandoned.entries)),
    ];
    let before = before.map(|(condition, end)| format!("| {condition} | {end} |"));
    assert_eq!(rows("## Ends without a reading").collect::<Vec<_>>(), before);

    let after = READINGS.map(|(condition, given, read)| {
        let ends = ["ok", "err", "busy", "none", "unsure"]
            .map(|sent| end(&format!("{given}: 0 due; 0 {sent}; 30 {read}; 40 {read}; 60 {read}")));
        format!("| {condition} | {} |", ends.join(" | "))
    });
    assert_eq!(rows("## Ends after an answer").collect::<Vec<_>>(), after);
}

fn rows(heading: &str) -> impl Iterator<Item = &'static str> {
    let (_, section) = PAGE.split_once(&format!("\n{heading}\n")).expect("a heading");
    section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2)
}

fn end(row: &str) -> String {
    let Life { task, entries, .. } = live(row);
    show(&task, &entries)
}

/// Writes the phase or end of a task as the page does, with the entry of its charge.
fn show(task: &Task, entries: &[Entry]) -> String {
    let kinds: Vec<_> = entries.iter().filter_map(|entry| entry.kind()).filter(|kind| *kind != "charge").collect();
    [&[&*format!("`{}`", task.phase.as_str())], &*kinds].concat().join(", ")
}
