//! Plays a scenario on a server of its own. Its clock moves only while an answer is held or the
//! scenario lets time pass.
//!
//! The server, its engine and the client share one thread. The clock moves only when all of them
//! are idle, so every run is the same. Start at [`play`].

use super::follow::{Advice, follow, latest_value};
use super::transcript::{Answer, Event, Exchange, Origin, Transcript};
use super::{Scenario, Step};
use crate::harness::writes::power;
use crate::harness::{Key, Server, TASKS_MAX, Tenant, outcome, read, serve_simulated};
use cloudphone::phones::contract::CATALOGUE;
use cloudphone::platforms::simulator::Sim;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use toolwarrant_core::catalogue::PermissionSet;

/// The maximum of answers that one `Await` follows.
const AWAITED_MAX: usize = 10;

/// The number of yields after which every task on the thread is idle. Each step of the engine takes
/// a few.
const TURNS: usize = 300;

/// Plays a scenario.
pub(super) async fn play(scenario: &Scenario) -> Transcript {
    let Scenario { name: _, permissions, phones, requests_per_minute, steps } = *scenario;
    let granted = permissions.iter().map(|name| {
        let known = CATALOGUE.permissions.iter().find(|permission| permission.name == *name);
        known.expect("a permission of the contract").grants
    });
    let permissions = granted.fold(PermissionSet::default(), PermissionSet::and);
    let others = Tenant::with(PermissionSet(u64::MAX));
    let tenants = vec![Tenant { requests_per_minute, ..Tenant::with(permissions) }, others];
    let (server, keys, sim) = serve_simulated(phones, tenants).await;
    let (key, other) = (keys[0][0].clone(), keys[1][0].clone());
    let opened = server.rpc(&key, "initialize", json!({"protocolVersion": "2025-03-26", "capabilities": {}})).await;
    let instructions = opened["result"]["instructions"].as_str().expect("instructions").to_owned();
    let told = Transcript { tools: server.list(&key).await, instructions, events: Vec::new() };
    let mut agent = Agent { server, key, other, sim, told, scripted: None };
    for step in steps {
        agent.take(*step).await;
    }
    agent.told
}

struct Agent {
    server: Server,
    key: Key,
    /// The key of another application.
    other: Key,
    sim: Arc<Sim>,
    told: Transcript,
    /// The latest call that comes from the scenario itself.
    scripted: Option<(String, Value)>,
}

impl Agent {
    async fn take(&mut self, step: Step) {
        match step {
            Step::Call(tool, arguments) => {
                let arguments = self.fill_in(serde_json::from_str(arguments).expect("JSON"));
                self.scripted = Some((tool.to_owned(), arguments.clone()));
                self.call(Origin::Scripted, tool.to_owned(), arguments).await;
            }
            Step::Again => {
                let (tool, arguments) = self.scripted.clone().expect("a call before");
                self.call(Origin::Scripted, tool, arguments).await;
            }
            Step::Follow => drop(self.follow().await),
            Step::Await => self.await_end().await,
            Step::Pass(seconds) => self.pass(seconds).await,
            Step::Fill => self.fill().await,
            Step::Cut => {
                self.sim.cut();
                self.told.events.push(Event::Changed("the platform goes away"));
            }
            Step::Mend => {
                self.sim.mend();
                self.told.events.push(Event::Changed("the platform comes back"));
            }
        }
    }

    async fn await_end(&mut self) {
        for _ in 0..AWAITED_MAX {
            let terminal = self.told.exchanges().next_back().map(|last| &last.answer.members()["terminal"]);
            if terminal == Some(&json!(true)) || self.follow().await.is_none() {
                return;
            }
        }
        self.told.events.push(Event::Lost(format!("{AWAITED_MAX} answers later none is terminal")));
    }

    /// Follows the last answer. Returns `None` if its advice cannot be followed.
    async fn follow(&mut self) -> Option<()> {
        match follow(&self.told) {
            Ok(Advice { after, tool, arguments }) => {
                if after > 0 {
                    self.pass(after).await;
                }
                self.call(Origin::Followed, tool, arguments).await;
                Some(())
            }
            Err(why) => {
                self.told.events.push(Event::Lost(why));
                None
            }
        }
    }

    async fn call(&mut self, origin: Origin, tool: String, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let sent = self.server.clock.now();
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
        let answer = match response.get("error") {
            Some(error) => Answer::ProtocolError(error.clone()),
            None => outcome(&response).map_or_else(Answer::Failure, Answer::Result),
        };
        settle().await;
        let at = [sent, self.server.clock.now()];
        self.told.events.push(Event::Called(Exchange { origin, tool, arguments, at, answer }));
    }

    async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.server.clock.advance(Duration::from_secs(1));
            settle().await;
        }
        self.told.events.push(Event::Passed(seconds));
    }

    async fn fill(&mut self) {
        let mut taken = 0;
        for number in 1..2 * TASKS_MAX as u32 {
            taken += usize::from(self.server.call(&self.other, "set_power", power(number, "boot")).await.is_ok());
        }
        assert_eq!(taken, TASKS_MAX, "the rest are refused");
        self.told.events.push(Event::Changed("others write until the server takes no more"));
    }

    /// Replaces each `$member` in the arguments by its value.
    fn fill_in(&self, mut arguments: Value) -> Value {
        for value in arguments.as_object_mut().expect("an object").values_mut() {
            if let Some(member) = value.as_str().and_then(|text| text.strip_prefix('$')) {
                *value = latest_value(&self.told, member).unwrap_or_else(|| panic!("no answer has a `{member}`"));
            }
        }
        arguments
    }
}

/// Lets everything on this thread run until it is idle.
async fn settle() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}
