//! Scenarios of an agent: each is played against a server, and its transcript is a snapshot.
//!
//! A scenario is data (`scenarios`). `play` makes its calls. `follow` derives a call from an answer
//! as an agent would. `transcript` records the requests and answers, and `checks` finds misleading
//! texts. Start at [`Scenario`].

mod checks;
mod follow;
mod play;
mod scenarios;
mod transcript;

use checks::complaints;
use play::play;
use scenarios::all;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A scenario: the steps of one agent with one key.
#[derive(Clone, Copy)]
struct Scenario {
    /// The name, a sentence.
    name: &'static str,
    /// The permissions of the key.
    permissions: &'static [&'static str],
    /// The number of phones. The first ones play the parts of the cast. A small number keeps the
    /// lists in answers short.
    phones: u32,
    /// The budget of the key's application. `initialize` and `tools/list` are charged to it too.
    requests_per_minute: u32,
    steps: &'static [Step],
}

/// A step of the agent, or a change of its environment.
#[derive(Clone, Copy)]
enum Step {
    /// Calls a tool with these arguments, which are JSON. A value `"$member"` stands for the latest
    /// member of that name in an answer.
    Call(&'static str, &'static str),
    /// Repeats the latest `Call`.
    Again,
    /// Follows the advice of the last answer.
    Follow,
    /// Follows the advice of each answer until one is terminal.
    Await,
    /// Lets seconds pass.
    Pass(u64),
    /// Another application writes until the server accepts no more tasks.
    Fill,
    /// The platform becomes unreachable.
    Cut,
    /// The platform becomes reachable again.
    Mend,
}

/// Stores `text` as a snapshot under `tests/snapshots/reader`.
fn keep(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../snapshots/reader", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[tokio::test]
async fn an_agent_reads_what_the_transcripts_show() {
    let mut instructions = BTreeMap::new();
    for scenario in all() {
        let told = play(&scenario).await;
        keep(scenario.name, &told.render());
        let key = format!("the_instructions_of_a_key_with_{}", scenario.permissions.join("_"));
        let first = instructions.entry(key).or_insert_with(|| told.instructions.clone());
        assert_eq!(*first, told.instructions, "{}", scenario.name);
    }
    for (name, text) in &instructions {
        keep(name, text);
    }
    let kept =
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/snapshots/reader")).expect("a folder");
    let kept = kept.flatten().filter_map(|file| file.file_name().to_str()?.strip_suffix(".snap").map(str::to_owned));
    let names = all().into_iter().map(|scenario| scenario.name.to_owned()).chain(instructions.into_keys());
    let (kept, names): (BTreeSet<_>, BTreeSet<_>) = (kept.collect(), names.collect());
    let strangers: Vec<_> = kept.difference(&names).collect();
    assert!(strangers.is_empty(), "of no scenario: {strangers:?}");
}

#[tokio::test]
async fn no_answer_misleads_who_does_what_it_says() {
    let mut found = Vec::new();
    for scenario in all() {
        found.extend(
            complaints(&play(&scenario).await).iter().map(|complaint| format!("{}: {complaint}", scenario.name)),
        );
    }
    assert!(found.is_empty(), "{} answers mislead:\n{}", found.len(), found.join("\n"));
}
