//! An operator that makes keys and takes them away, through the folder of any replica, while faults
//! happen. If a command has succeeded, its effect must hold from then on under each later leader.

use super::replica::Replica;
use super::{Cluster, call_any};
use crate::harness::Key;
use crate::harness::program::json_of;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolwarrant_base::random::SplitMix;

/// A replica that stands still does not answer a command.
const PATIENCE: Duration = Duration::from_secs(8);

const PAUSE: Duration = Duration::from_millis(200);

const ATTEMPTS: usize = 300;

const UNAVAILABLE: i32 = 5;

const DENIALS: [&str; 3] = ["nothing has changed", "waits to lead", "alone changes something"];

pub(super) struct Takings {
    replicas: Vec<Arc<Replica>>,
    addresses: watch::Receiver<Vec<SocketAddr>>,
    random: SplitMix,
    taken: Vec<(Key, String)>,
    denials: u64,
    /// Keys that have never been in force.
    lost: u64,
    /// The applications with one key; others were denied.
    denied: Vec<String>,
    /// In force after they were taken away.
    pub(super) returned: BTreeSet<String>,
    pub(super) revealed: Vec<String>,
}

impl Takings {
    pub(super) fn new(cluster: &Cluster, seed: u64) -> Self {
        let (replicas, addresses, random) = (cluster.replicas.clone(), cluster.load.addresses(), SplitMix(!seed));
        let (taken, denied, returned, revealed) = (Vec::new(), Vec::new(), BTreeSet::new(), Vec::new());
        Self { replicas, addresses, random, taken, denials: 0, lost: 0, denied, returned, revealed }
    }

    pub(super) async fn work(mut self, goes_on: watch::Receiver<bool>) -> Self {
        for number in 0.. {
            if !*goes_on.borrow() {
                break;
            }
            let app = format!("taken-{number}");
            self.operate_until_done(&format!("app create {app} --permission device_read")).await;
            self.operate_until_done(&format!("device assign {app} --all")).await;
            let before = self.denials;
            let made = loop {
                match self.operate(&format!("key create {app} --json")).await {
                    Some((0, said)) => {
                        break Some(Key::read(&serde_json::from_str(&said).expect("JSON")).expect("a key"));
                    }
                    Some((_, said)) if DENIALS.iter().any(|denial| said.contains(denial)) => self.denials += 1,
                    _ => break None,
                }
                sleep(PAUSE).await;
            };
            // Without an answer, it is not known if there is another key.
            let Some(key) = made else { continue };
            if self.denials > before {
                self.denied.push(app.clone());
            }
            if !self.comes_into_force(&key).await {
                self.lost += 1;
                continue;
            }
            let line = match self.random.below(3) {
                0 => format!("key revoke {}", key.id),
                1 => format!("app suspend {app}"),
                _ => format!("device unassign {app} --all"),
            };
            let said = self.operate_until_done(&line).await;
            self.look(&key, &said).await;
            self.taken.push((key, said));
        }
        self
    }

    pub(super) async fn examine(&mut self, leader: &Replica) {
        for (key, said) in self.taken.clone() {
            self.look(&key, &said).await;
        }
        for app in &self.denied {
            let shown = json_of(&leader.data, &format!("app show {app}")).await;
            if shown["keys"].as_array().is_none_or(|keys| keys.len() != 1) {
                self.revealed.push(app.clone());
            }
        }
    }

    pub(super) fn figures(&self) -> [(&'static str, u64); 5] {
        [
            ("takings away that were answered", self.taken.len() as u64),
            ("of these, did not hold", self.returned.len() as u64),
            ("keys that were made, and never in force", self.lost),
            ("keys that were denied", self.denials),
            ("applications with such a key", self.revealed.len() as u64),
        ]
    }

    async fn comes_into_force(&self, key: &Key) -> bool {
        for _ in 0..ATTEMPTS {
            if self.is_in_force(key).await {
                return true;
            }
            sleep(PAUSE).await;
        }
        false
    }

    async fn look(&mut self, key: &Key, said: &str) {
        if self.is_in_force(key).await {
            self.returned.insert(format!("{} after {said}", key.id));
        }
    }

    async fn is_in_force(&self, key: &Key) -> bool {
        let addresses = self.addresses.borrow().clone();
        for address in addresses {
            let answer = call_any(&[address], key, ("list_devices", &json!({"limit": 1}))).await;
            if answer.and_then(|(_, answer)| answer.ok()).is_some_and(|page| page["devices"] != json!([])) {
                return true;
            }
        }
        false
    }

    async fn operate(&mut self, line: &str) -> Option<(i32, String)> {
        let replica = &self.replicas[self.random.below(self.replicas.len() as u64) as usize];
        timeout(PATIENCE, replica.operate(line)).await.ok()
    }

    async fn operate_until_done(&mut self, line: &str) -> String {
        loop {
            match self.operate(line).await {
                Some((0, said)) => return format!("{line}: {said}"),
                // An attempt that got no answer has made the application.
                Some((_, said)) if said.contains("already") => return said,
                Some((code, said)) if code != UNAVAILABLE => println!("{line}: exit code {code}: {said}"),
                _ => {}
            }
            sleep(PAUSE).await;
        }
    }
}
