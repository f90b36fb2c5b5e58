//! Scenarios of an agent: each is played against a server, and its transcript is a snapshot.
//!
//! A scenario is data (`scenarios.txt`). Its server's clock moves only while an answer is held or
//! the scenario lets time pass. Server, engine and client share one thread, so every run is the
//! same.

mod transcript;

use crate::harness::writes::power;
use crate::harness::{Key, Server, TASKS_MAX, Tenant, base_tools, outcome, read, serve_simulated};
use cloudphone::phones::contract::CATALOGUE;
use cloudphone::platforms::simulator::{CAST, Sim};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use toolwarrant_core::catalogue::PermissionSet;
use transcript::Transcript;

const SCENARIOS: &str = include_str!("reader/scenarios.txt");

const AWAITED_MAX: usize = 10;

/// After this number of yields every task on the thread is idle. Each step of the engine takes a
/// few.
const TURNS: usize = 300;

struct Exchange {
    tool: String,
    arguments: Value,
    answer: Value,
}

struct Agent {
    server: Server,
    key: Key,
    other: Key,
    sim: Arc<Sim>,
    shown: Vec<String>,
    exchanges: Vec<Exchange>,
    transcript: Transcript,
}

impl Agent {
    async fn take(&mut self, step: &str) {
        match step.split_once(' ').unwrap_or((step, "")) {
            ("again", _) => {
                let Exchange { tool, arguments, .. } = self.exchanges.last().expect("a call before");
                let (tool, arguments) = (tool.clone(), arguments.clone());
                self.call(tool, arguments).await;
            }
            ("await", _) => {
                let arguments = self.fill_in(json!({"task_id": "$task_id", "wait_seconds": 25}));
                for _ in 0..AWAITED_MAX {
                    self.call("get_task".to_owned(), arguments.clone()).await;
                    if self.exchanges.last().is_some_and(|last| last.answer["terminal"] == true) {
                        return;
                    }
                }
                panic!("{AWAITED_MAX} answers later none is terminal:\n{}", self.transcript.text);
            }
            ("pass", seconds) => {
                let seconds = seconds.parse().expect("a number");
                for _ in 0..seconds {
                    self.server.clock.advance(Duration::from_secs(1));
                    settle().await;
                }
                self.transcript.note(&format!("{seconds} s pass"));
            }
            ("fill", _) => self.fill().await,
            ("cut", _) => {
                self.sim.cut();
                self.transcript.note("the platform goes away");
            }
            ("mend", _) => {
                self.sim.mend();
                self.transcript.note("the platform comes back");
            }
            (tool, arguments) => {
                let arguments = self.fill_in(serde_json::from_str(arguments).expect(step));
                self.call(tool.to_owned(), arguments).await;
            }
        }
    }

    async fn call(&mut self, tool: String, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        self.transcript.call(&tool, &arguments, self.server.clock.now());
        let request = self.server.post(&self.key).body(body);
        let calling = tokio::spawn(async move { read(request.send().await.expect("an answer")).await });
        // The loop ends: the client gives up after a minute of system time.
        while !calling.is_finished() {
            settle().await;
            if self.server.engine.poll_count() > 0 {
                self.server.clock.advance(Duration::from_secs(1));
            }
        }
        let (_, response) = calling.await.expect("no panic");
        let (kind, answer) = match response.get("error") {
            Some(error) => ("protocol error", error.clone()),
            None => outcome(&response).map_or_else(|failure| ("failure", failure), |result| ("result", result)),
        };
        settle().await;
        let told = ["message", "next_step", "notes"].map(|name| answer[name].to_string()).join(" ");
        let words = told.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let hidden = |word: &&str| {
            base_tools(&CATALOGUE).any(|tool| tool.name == *word)
                && *word != tool
                && !self.shown.contains(&(*word).to_owned())
        };
        assert_eq!(
            words.filter(hidden).collect::<Vec<_>>(),
            Vec::<&str>::new(),
            "{tool} names a tool that the key is not shown"
        );
        self.transcript.answer(kind, &answer, self.server.clock.now());
        self.exchanges.push(Exchange { tool, arguments, answer });
    }

    async fn fill(&mut self) {
        let mut taken = 0;
        for number in 1..2 * TASKS_MAX as u32 {
            taken += usize::from(self.server.call(&self.other, "set_power", power(number, "boot")).await.is_ok());
        }
        assert_eq!(taken, TASKS_MAX, "the rest are refused");
        self.transcript.note("others write until the server takes no more");
    }

    fn fill_in(&self, mut arguments: Value) -> Value {
        for value in arguments.as_object_mut().expect("an object").values_mut() {
            let Some(member) = value.as_str().and_then(|text| text.strip_prefix('$')) else { continue };
            let known = self.exchanges.iter().rev().find_map(|exchange| exchange.answer.get(member));
            *value = known.unwrap_or_else(|| panic!("no answer has a `{member}`")).clone();
        }
        arguments
    }
}

async fn play(scenario: &str) -> String {
    let (mut phones, mut requests_per_minute) = (CAST.len() as u32, 1_000);
    let (mut permissions, mut steps) = (PermissionSet::default(), Vec::new());
    for line in scenario.lines() {
        match line.split_once(' ') {
            Some(("permissions", held)) => {
                for name in held.split(' ') {
                    let known = CATALOGUE.permissions.iter().find(|permission| permission.name == name);
                    permissions = permissions.and(known.expect("a permission of the contract").grants);
                }
            }
            Some(("phones", number)) => phones = number.parse().expect("a number"),
            Some(("requests_per_minute", number)) => requests_per_minute = number.parse().expect("a number"),
            _ => steps.push(line),
        }
    }
    let others = Tenant::with(PermissionSet(u64::MAX));
    let tenants = vec![Tenant { requests_per_minute, ..Tenant::with(permissions) }, others];
    let (server, keys, sim) = serve_simulated(phones, tenants).await;
    let (key, other) = (keys[0][0].clone(), keys[1][0].clone());
    let shown = server.list(&key).await;
    let shown = shown.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect();
    let transcript = Transcript::default();
    let mut agent = Agent { server, key, other, sim, shown, exchanges: Vec::new(), transcript };
    for step in steps {
        agent.take(step).await;
    }
    agent.transcript.text
}

async fn settle() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

#[tokio::test]
async fn an_agent_reads_what_the_transcripts_show() {
    let mut names = BTreeSet::new();
    for scenario in SCENARIOS.split("\n## ").skip(1) {
        let (name, lines) = scenario.trim_end().split_once('\n').expect("steps");
        let transcript = play(lines).await;
        insta::with_settings!({ snapshot_path => "../snapshots/reader", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, transcript);
        });
        names.insert(name.to_owned());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/snapshots/reader");
    let files = fs::read_dir(folder).expect("a folder").flatten();
    let files = files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".snap").map(str::to_owned));
    assert_eq!(files.collect::<BTreeSet<_>>(), names, "each file is of a scenario");
}
