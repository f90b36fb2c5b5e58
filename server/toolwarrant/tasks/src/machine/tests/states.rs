//! The graph of the machine, as docs/states.md shows it. `INSTA_UPDATE=always` writes that page.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# The states of a task

The engine's state machine, drawn from the machine itself: a test of `toolwarrant-tasks` writes this
page with `INSTA_UPDATE=always` and fails if it is stale. A client sees `dispatched` until one of
the five ends. A task stays in its phase if an event changes only its times or counts.
";

#[test]
fn the_page_of_states_shows_every_step_that_the_machine_can_take() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the workspace").join("docs/states.md");
    let drawn = draw(&transitions());
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        std::fs::write(&page, &drawn).expect("a page that can be written");
    }
    assert_eq!(std::fs::read_to_string(&page).expect("a page"), drawn);
}

/// The events that lead from one state to another.
type Transitions = BTreeMap<(String, String), BTreeSet<String>>;

/// Walks at random: any event in any phase, with facts that change.
fn transitions() -> Transitions {
    let (mut found, events) = (Transitions::new(), events());
    for seed in 0..20_000 {
        let mut random = SplitMix(seed);
        let probe = [None, probe(false), probe(true)][random.below(3) as usize].clone();
        let (mut task, mut now) = (Task::new(policy(probe, random.below(2) == 0), at(0)), at(0));
        while task.status().is_none() {
            let provability =
                [Provability::Both, Provability::Presence, Provability::Absence, Provability::Nothing("dark")];
            let gone = (random.below(20) == 0).then_some("gone");
            let (dedupes, looks_up) = (random.below(3) == 0, random.below(2) == 0);
            let facts = Facts { dedupes, looks_up, provability: provability[random.below(4) as usize], gone };
            let (label, event) = events[random.below(events.len() as u64) as usize].clone();
            now = now.plus(Duration::from_secs([0, 3, 12][random.below(3) as usize]));
            let from = name(task.phase);
            task = step(task, event, now, facts).task;
            if name(task.phase) != from {
                found.entry((from, name(task.phase))).or_default().insert(label.to_owned());
            }
        }
    }
    found
}

fn events() -> Vec<(&'static str, Event)> {
    let sent = [
        ("not sent", not_sent()),
        ("success reported", Sent::Ok),
        ("failure reported", err()),
        ("accepted", Sent::Pending("7".into())),
        ("no answer", none()),
    ];
    let looked_up = sent.clone().map(|(label, sent)| (label, Event::LookedUp(Some(Some(sent)))));
    let sent = sent.map(|(label, sent)| (label, Event::Sent(sent)));
    let rest = [
        ("due", Event::Due),
        ("found by a new process", Event::Found),
        ("taken over from another process", Event::TakenOver),
        ("baseline read", Event::Baseline(Some("a".to_owned()))),
        ("baseline unreadable", Event::Baseline(None)),
        ("request unknown", Event::LookedUp(Some(None))),
        ("look-up failed", Event::LookedUp(None)),
        ("effect present", reading(Verdict::Present)),
        ("effect absent", reading(Verdict::Absent)),
        ("effect unreadable", reading(Verdict::Unreadable)),
    ];
    sent.into_iter().chain(looked_up).chain(rest).collect()
}

fn name(phase: Phase) -> String {
    match phase {
        Phase::Done(status) => status.as_str().to_owned(),
        phase => format!("{phase:?}").to_lowercase(),
    }
}

fn draw(transitions: &Transitions) -> String {
    let mut page = format!("{HEAD}\n```mermaid\nstateDiagram-v2\n    [*] --> ready\n");
    for (from, to) in transitions.keys() {
        writeln!(page, "    {from} --> {to}").expect("text");
    }
    page += "```\n\n| from | to | after |\n|---|---|---|\n";
    for ((from, to), labels) in transitions {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        writeln!(page, "| {from} | {to} | {} |", labels.join(", ")).expect("text");
    }
    page
}
