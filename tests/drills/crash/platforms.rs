//! Two platforms in one configuration: simulated phones, and pads of the double. The pads belong to
//! two accounts. The readings of one account were proven; those of the other were not, so that
//! nothing is refunded there.

use super::load::{Load, Plan, Wish};
use super::{Options, PASSWORD, audit, options};
use crate::harness::double::{Double, table};
use crate::harness::program::json_of;
use serde_json::{Map, Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant_base::random::SplitMix;

const TIMES: [&str; 4] = ["task_ms=200", "restart_ms=1000", "online_ms=500", "command_ms=20"];

pub(super) const WRITES: [&str; 2] = ["restart", "setProxy"];

pub(super) const PAUSE: Duration = Duration::from_millis(60);

/// Tasks are in every phase after the last wish.
const LIVES_AFTER: u64 = 8;

/// The first pad is the operator's, for `platform check`.
pub(super) struct Pads {
    double: Double,
    codes: Vec<String>,
    folder: TempDir,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill crash"]
async fn no_kill_and_no_reset_on_two_platforms_loses_or_repeats_anything() {
    let Options { seed, writes, .. } = options();
    let pads = Pads::start(writes, TempDir::new().expect("a temporary folder")).await;
    let spoilt = pads.spoil(seed).await;
    let mut load = Load::of(pads.plan(seed)).await;
    load.kill_after(async |data, _| pads.prove(data).await).await;
    load.allow_every(PAUSE);
    let mut kills = 1;
    while load.count_acknowledged() < writes {
        load.kill().await;
        kills += 1;
    }
    load.satisfy();
    for _ in 0..LIVES_AFTER {
        load.kill().await;
        kills += 1;
    }
    let figures = [("ended by kill -9", kills), ("pads whose platform misbehaves", spoilt)];
    audit(load, &figures, Some(&pads)).await;
}

impl Pads {
    pub(super) async fn start(wishes: u64, folder: TempDir) -> Self {
        let journal = folder.path().join("journal.jsonl");
        let mut flags = vec!["--journal", journal.to_str().expect("UTF-8")];
        flags.extend(TIMES.iter().flat_map(|time| ["--set", time]));
        let double = Double::start(u32::try_from(wishes).expect("fewer") + 64, &flags).await;
        let codes = double.codes().await;
        Self { double, codes, folder }
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.folder.path().join("journal.jsonl")
    }

    /// Returns the pad that no client writes to.
    pub(super) fn operators(&self) -> &str {
        &self.codes[0]
    }

    pub(super) fn configure(&self, text: &str) -> PathBuf {
        let shown = table("pads", &self.double, &self.folder);
        let unshown = table("blind", &self.double, &self.folder).replace("/vcpcloud/", "/vsphone/");
        let config = self.folder.path().join("cloudphone.toml");
        fs::write(&config, format!("{text}\n{shown}\n{unshown}")).expect("written");
        config
    }

    /// Puts every other group of eight wishes on pads.
    fn plan(&self, seed: u64) -> Plan {
        let config = self.configure("[platform.phone]\nkind = \"simulator\"\n");
        // No other test binds this address, so the port stays free while the program is down.
        let echo = TcpListener::bind("127.77.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let config = config.display();
        let flags = format!("--sim-devices 1000000 --config {config} --echo-listen {echo} --echo-url http://{echo}");
        let codes = self.codes.clone();
        let wish = move |number: u64| match pad(number) {
            Some(_) => wish(&codes, seed, number),
            None => Wish::new(seed, number),
        };
        let flags = flags.split(' ').map(str::to_owned).collect();
        Plan { seed, flags, life: 500..8_000, patience: Duration::MAX, reads: false, wish: Box::new(wish) }
    }

    pub(super) fn plan_with_pads_only(&self, seed: u64, patience: Duration) -> Plan {
        let (codes, flags) = (self.codes.clone(), Vec::new());
        let wish = move |number: u64| wish(&codes, seed, number / 8 * 16 + 8 + number % 8);
        Plan { seed, flags, life: 0..1, patience, reads: true, wish: Box::new(wish) }
    }

    pub(super) async fn spoil(&self, seed: u64) -> u64 {
        let mut spoilt = 0;
        // The first wish of a pad decides which endpoint gets the fault.
        for number in (0..2 * self.codes.len() as u64).filter(|number| Wish::share(*number).0 == *number) {
            let Some(pad) = pad(number).filter(|pad| *pad < self.codes.len()) else { continue };
            let faults = faults(seed, number, wish(&self.codes, seed, number).tool);
            if !faults.is_empty() {
                self.double.switch(Some(&self.codes[pad]), &Value::Object(faults)).await;
                spoilt += 1;
            }
        }
        spoilt
    }

    /// Runs the operator's check of both accounts. On one of them it writes, so that its readings
    /// count as evidence.
    pub(super) async fn prove(&self, data: &Path) {
        let code = self.operators().to_lowercase();
        let write = format!("platform check pads --write pads-{code} --proxy http://shown.example.com:8080 --yes");
        for line in [write.as_str(), "platform check blind"] {
            let said = json_of(data, line).await;
            assert_eq!(said["sound"], true, "{said:#}");
        }
    }
}

fn pad(number: u64) -> Option<usize> {
    let (device, _) = Wish::share(number);
    let place = device / 16 * 8 + device % 8 + 1;
    (device / 8 % 2 == 1).then(|| usize::try_from(place).expect("fewer"))
}

fn device(codes: &[String], pad: usize) -> String {
    let account = if pad / 8 % 8 == 7 { "blind" } else { "pads" };
    format!("{account}-{}", codes[pad].to_lowercase())
}

/// Gives every proxy a host of its own, so that the journal shows which wish set it.
fn wish(codes: &[String], seed: u64, number: u64) -> Wish {
    let pad = pad(number).expect("a pad");
    // The first pad is the operator's. The others serve again once each has had a wish.
    let pad = 1 + (pad - 1) % (codes.len() - 1);
    let device = device(codes, pad);
    let (_, repeated) = Wish::share(number);
    let mut random = SplitMix(seed ^ repeated << 32);
    let (tool, mut arguments) = match random.below(8) {
        0 => ("clear_proxy", json!({})),
        1..=3 => ("set_power", json!({"action": "restart"})),
        chance => {
            let scheme = if chance % 2 == 0 { "socks5" } else { "http" };
            let mut proxy = json!({"scheme": scheme, "host": format!("wish-{repeated}.example.com"), "port": 8080});
            // The server cannot send a request through a proxy with a password.
            if random.below(6) == 0 {
                proxy["username"] = json!("user");
                proxy["password"] = json!(PASSWORD);
            }
            ("set_proxy", proxy)
        }
    };
    arguments["device_id"] = json!(device);
    let key = (random.below(4) > 0).then(|| format!("wish-{repeated}"));
    Wish::with_key(tool, device, key, arguments)
}

fn faults(seed: u64, number: u64, tool: &str) -> Map<String, Value> {
    let mut random = SplitMix(seed ^ (number << 32) ^ 0xfa17);
    let endpoint = if tool == "set_power" { "restart" } else { "setProxy" };
    let of = |value: Value| json!({"value": value, "endpoint": endpoint});
    let once = json!({"value": true, "endpoint": endpoint, "calls": 1});
    let exchange = match random.below(20) {
        0 => Some(("reset_before_answer", once)),
        1 => Some(("reset_after_first_byte", once)),
        2 => Some(("half_body", once)),
        3 => Some(("drop_before_acting", once)),
        4 => Some(("drop_after_acting", once)),
        5 => Some(("reset_before_answer", json!({"value": true, "calls": 2}))),
        6 => Some(("lag_ms", json!(5_000))),
        _ => None,
    };
    let effect: &[(&str, Value)] = match random.below(20) {
        0..=2 => &[("effect", of(json!("never")))],
        3 => &[("task_end", of(json!(-1)))],
        4 => &[("task_end", of(json!(-4)))],
        5 => &[("task_end", of(json!(-1))), ("effect", of(json!("always")))],
        6 => &[("effect_late_ms", of(json!(1_000 + random.below(3_000))))],
        7 => &[("shell", json!("silent"))],
        _ => &[],
    };
    let named = |(name, value): (&str, Value)| (name.to_owned(), value);
    exchange.into_iter().map(named).chain(effect.iter().cloned().map(named)).collect()
}
