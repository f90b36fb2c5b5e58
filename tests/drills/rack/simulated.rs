//! Writes on phones of the double while its adb server goes away and comes back, and the program is
//! killed. The phones live in the double, so it goes on: only its ports close, with all
//! connections.

use super::{RackOptions, options, restart, serve, show, wait_until_gone, wait_until_running};
use crate::drills::crash::audit::AuditBooks;
use crate::drills::crash::audit::rack::ActJournals;
use crate::drills::crash::load::{Load, Plan, Wish};
use crate::harness::double::Double;
use crate::harness::program::binary;
use kit::PhoneAct;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::sleep;
use toolwarrant_base::random::SplitMix;

const PHONES: usize = 64;

const PAUSE: Duration = Duration::from_millis(300);

const SWALLOWING: usize = 12;

struct SimulatedRack {
    double: Double,
    codes: Vec<String>,
    home: Arc<TempDir>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill rack --simulated 1800"]
async fn no_kill_before_phones_of_the_double_loses_or_repeats_a_write() {
    let RackOptions { simulated, seed, .. } = options();
    let (writes, rack) = (simulated.unwrap_or(1_800), SimulatedRack::start().await);
    let (flags, ids) = (rack.configure(), rack.codes.iter().map(|code| id(code)).collect::<Vec<_>>());
    let (plan_flags, wish) = (flags.clone(), { move |number| wish(&ids, seed, number) });
    let plan =
        Plan { seed, flags: plan_flags, life: 500..8_000, patience: Duration::MAX, reads: false, wish: Box::new(wish) };
    let mut load = Load::of(plan).await;
    load.allow_every(PAUSE);
    let (mut random, mut closed, mut kills) = (SplitMix(seed), 0, 0);
    let end_of_load = async {
        let mut is_swallowing = false;
        while load.count_acknowledged() < writes {
            load.kill().await;
            kills += 1;
            if load.count_acknowledged() * 2 >= writes && !std::mem::replace(&mut is_swallowing, true) {
                rack.swallow().await;
            }
        }
    };
    let closing = async {
        loop {
            sleep(Duration::from_millis(2_000 + random.below(20_000))).await;
            rack.close(true).await;
            closed += 1;
            sleep(Duration::from_millis(random.below(4_000))).await;
            rack.close(false).await;
        }
    };
    tokio::select! {
        () = end_of_load => {}
        () = closing => {}
    }
    rack.close(false).await;
    let (told, load) = load.settle().await;
    let (books, figures) = AuditBooks::compare_on_rack(&load.data, &told, &rack.read_journals(), &HashSet::new());
    show([("times that the adb server went away", closed), ("ended by kill -9", kills)]);
    show([("calls answered", told.len() as u64)]);
    show(figures);
    let slowest = rack.measure_returns(&flags).await;
    show([("milliseconds until all phones run after a return of the server", slowest.as_millis() as u64)]);
    assert!(load.unended == 0 && books.violations.is_empty(), "{:#?}", books.violations);
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
}

impl SimulatedRack {
    async fn start() -> Self {
        let home = Arc::new(TempDir::new().expect("a temporary folder"));
        let journal = home.path().join("journal.jsonl");
        let double = Double::start(PHONES as u32, &["--journal", journal.to_str().expect("UTF-8")]).await;
        let codes = double.codes().await;
        let rack = Self { double, codes, home };
        rack.close(false).await;
        rack
    }

    fn configure(&self) -> Vec<String> {
        let (adb, control) = (self.double.adb(), &self.double.greeting["control"]);
        let act = binary().with_file_name("armcloud-double").display().to_string();
        let only = json!(self.codes);
        let mut config = format!("[platform.rack]\nkind = \"adb\"\nserver = \"{adb}\"\nonly = {only}\n");
        config += "power-seconds = 20\nproxy-seconds = 10\n";
        for action in ["start", "stop", "status", "set-proxy", "clear-proxy"] {
            let words = format!("[\"{act}\", \"act\", \"--control\", {control}, \"{action}\", \"{{serial}}\"]");
            let _ = writeln!(config, "{action} = {words}");
        }
        let file = self.home.path().join("cloudphone.toml");
        fs::write(&file, config).expect("written");
        // No other test binds this address, so the port stays free while the program is down.
        let echo = TcpListener::bind("127.77.0.2:0").and_then(|free| free.local_addr()).expect("a free port");
        let flags = format!("--config {} --echo-listen {echo} --echo-url http://{echo}", file.display());
        flags.split(' ').map(str::to_owned).collect()
    }

    async fn close(&self, is_closed: bool) {
        let times = json!({"restart_ms": 500, "online_ms": 500, "power_ms": 500, "task_ms": 200,
            "refuse_connections": is_closed});
        self.double.switch(None, &times).await;
    }

    /// Expects that the readings of these phones were proven meanwhile.
    async fn swallow(&self) {
        for code in &self.codes[..SWALLOWING] {
            let effect = json!({"effect": {"value": "never", "endpoint": "restart"}});
            self.double.switch(Some(code), &effect).await;
        }
    }

    fn read_journals(&self) -> ActJournals {
        let text = fs::read_to_string(self.home.path().join("journal.jsonl")).expect("a journal");
        let mut journals: ActJournals = self.codes.iter().map(|code| (id(code), Vec::new())).collect();
        for line in text.lines().filter(|line| line.contains("\"kind\":\"did\"")) {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let (at, pad) = (line["at"].as_i64().expect("a time"), line["pad"].as_str().expect("a pad"));
            let acts = [PhoneAct::Restart, PhoneAct::Start].map(|act| (at, act));
            journals.get_mut(&id(pad)).expect("a phone").extend(acts);
        }
        journals
    }

    /// Returns the longest time from its return until all phones run.
    async fn measure_returns(&self, flags: &[String]) -> Duration {
        for code in &self.codes {
            self.double.post(&format!("pads/{code}/act/start")).await.expect("it is on");
        }
        let (program, ids) = (serve(&self.home, flags, PHONES).await, self.codes.iter().map(|code| id(code)));
        let (ids, mut slowest) = (ids.collect::<Vec<_>>(), Duration::ZERO);
        for _ in 0..5 {
            self.close(true).await;
            wait_until_gone(&program, &ids).await;
            self.close(false).await;
            slowest = slowest.max(wait_until_running(&program, PHONES).await);
        }
        slowest
    }
}

fn id(code: &str) -> String {
    format!("rack-{}", code.to_lowercase())
}

/// Switches one phone in four on and off; the others restart and get proxies, each of which has a
/// port of its own.
fn wish(ids: &[String], seed: u64, number: u64) -> Wish {
    let (device, repeated) = Wish::share(number);
    // Only three numbers in four are devices.
    let at = (device - device / 4) as usize % ids.len();
    let (id, mut random) = (&ids[at], SplitMix(seed ^ repeated << 32));
    let (tool, mut arguments) = match (at % 4, random.below(8)) {
        (3, chance) => ("set_power", json!({"action": if chance % 2 == 0 { "boot" } else { "shutdown" }})),
        (_, 0) => ("clear_proxy", json!({})),
        (_, 1..=3) => ("set_proxy", json!({"scheme": "socks5", "host": "203.0.113.7", "port": 1_024 + repeated})),
        _ => ("set_power", restart(id)),
    };
    arguments["device_id"] = json!(id);
    Wish::with_key(tool, id.clone(), Some(format!("wish-{repeated}")), arguments)
}
