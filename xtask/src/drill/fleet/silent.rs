//! Phones behind adb servers, some of which never answer: the age of what is shown of the others,
//! the lists of clients, the calls to the server, and memory.
//!
//! A program whose phones all answer, and one with few phones, get the same requests in turn, so
//! that the influence of the machine is visible in all.

use super::double;
use super::rig::{FAR, Rig, call};
use crate::serving::{self, quantile};
use anyhow::{Result, anyhow, ensure};
use driver::{DoubleProcess, Instance, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The programs: the name, the phones, and those of them that are silent.
const SIDES: [(&str, u32, usize); 3] = [("all-answer", 200, 0), ("some-silent", 200, 50), ("few", 20, 0)];

/// Greatest age of what is shown, in seconds.
const AGE: u64 = 60;

/// Limit for the 99th percentile of lists with silent phones, relative to the one without.
const RATIO: f64 = 1.2;

/// Time between the starts of two programs. Each lists its phones every 30 s, which costs the
/// double much, so they are not to do it at the same time.
const APART: Duration = Duration::from_secs(10);

/// Longest time from a start until all phones that answer run.
const KNOWN_WITHIN: Duration = Duration::from_mins(2);

/// Lists at one program before the next one's turn, and the time from one list to the next.
const BLOCK: usize = 20;
const PACE: Duration = Duration::from_millis(20);

/// The kinds of services that the adb server is asked for.
const SERVICES: [&str; 5] = ["shell", "transport", "devices-l", "features", "reconnect"];

/// A program, its adb server, and its figures.
struct AdbSide {
    name: &'static str,
    /// The number of phones that answer.
    answering: usize,
    program: Instance,
    double: DoubleProcess,
    key: KeyPair,
    /// Milliseconds for each list.
    took: Vec<f64>,
    /// Greatest age in seconds, as the program itself says.
    age: u64,
    /// The fewest phones that a list shows as running. A phone whose last answer is older than a
    /// minute is shown as unknown.
    fewest: usize,
    /// Resident memory in KiB, after each block.
    memory: Vec<f64>,
}

/// Measures it. Returns the limits that were missed.
pub(super) async fn measure(rig: &Rig) -> Result<Vec<String>> {
    let mut sides = Vec::new();
    for (name, phones, silent) in SIDES {
        sides.push(AdbSide::start(rig, name, phones, silent).await?);
        sleep(APART).await;
    }
    let (began, mut before) = (Instant::now(), Vec::new());
    for side in &sides {
        before.push(double::lines(&side.double).await?);
    }
    while began.elapsed() < rig.seconds {
        for side in &mut sides {
            side.ask().await?;
        }
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("\nphones behind adb servers, {minutes:.1} min; {} phones are silent at `{}`", SIDES[1].2, SIDES[1].0);
    println!("server        lists  p50 ms  p99 ms  age s  running  calls/min  MiB usual   most");
    for (side, before) in sides.iter_mut().zip(before) {
        side.took.sort_by(f64::total_cmp);
        side.memory.sort_by(f64::total_cmp);
        let mut calls = BTreeMap::<&str, f64>::new();
        for line in side.double.journal(before).await?.iter().filter(|line| line["kind"] == "adb") {
            let service = line["service"].as_str().unwrap_or_default();
            let kind = SERVICES.into_iter().find(|kind| service.contains(kind)).unwrap_or("other");
            *calls.entry(kind).or_default() += 1.0 / minutes;
        }
        let AdbSide { name, took, age, fewest, memory, .. } = side;
        let [half, slow] = [0.5, 0.99].map(|share| quantile(took, share));
        let [usual, most] = [0.5, 0.999].map(|share| quantile(memory, share) / 1024.0);
        let (lists, all) = (took.len(), calls.values().sum::<f64>());
        println!("{name:12} {lists:6} {half:7.2} {slow:7.2} {age:6} {fewest:8} {all:10.0} {usual:10.1} {most:6.1}");
        println!("             calls a minute: {calls:.0?}");
    }
    let faults = sides.iter().flat_map(AdbSide::faults).collect::<Vec<_>>();
    let [ratio, memory] = [ratio(&sides), (sides[0].usual() - sides[2].usual()) / f64::from(SIDES[0].1 - SIDES[2].1)];
    println!("p99 with silent phones, relative to the one without: {ratio:.2}; memory: {memory:.1} KiB per phone");
    let slow = (ratio > FAR * RATIO).then(|| format!("lists took {ratio:.2} times as long; {RATIO} are allowed"));
    Ok(faults.into_iter().chain(slow).collect())
}

/// Returns the 99th percentile of lists with silent phones, relative to the one without.
fn ratio(sides: &[AdbSide]) -> f64 {
    quantile(&sides[1].took, 0.99) / quantile(&sides[0].took, 0.99)
}

impl AdbSide {
    /// Starts a program with its adb server, and waits until it knows its phones.
    async fn start(rig: &Rig, name: &'static str, phones: u32, silent: usize) -> Result<Self> {
        let double = double::start(&rig.double, phones, &[]).await?;
        let codes = double.codes().await?;
        for code in codes.iter().step_by(phones as usize / silent.max(1)).take(silent) {
            double.switch(Some(code), &json!({"shell": "hangs"})).await?;
        }
        let adb = double.greeting["adb"].as_str().unwrap_or_default().to_owned();
        let table = format!("[platform.rack]\nkind = \"adb\"\nserver = \"{adb}\"\nonly = {}\n", json!(codes));
        let program = rig.serve_tables(name, |_| Ok(table)).await?;
        let key = serving::key(&program, "fleet", &[]).await?;
        let (answering, took, memory) = (codes.len() - silent, Vec::new(), Vec::new());
        let mut side = Self { name, answering, program, double, key, took, age: 0, fewest: answering, memory };
        let began = Instant::now();
        while side.count_running().await? != answering {
            ensure!(began.elapsed() < KNOWN_WITHIN, "{name}: not all phones run:\n{}", side.program.log()?);
            sleep(APART / 50).await;
        }
        side.took.clear();
        Ok(side)
    }

    /// Lists devices. Returns the number of those that run.
    async fn count_running(&mut self) -> Result<usize> {
        let asked = Instant::now();
        let page = call(&self.program, &self.key, "list_devices", &json!({"limit": 200})).await?;
        self.took.push(asked.elapsed().as_secs_f64() * 1e3);
        let page = page.map_err(|code| anyhow!(code))?;
        let devices = page["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(devices.iter().filter(|device: &&Value| device["state"] == "running").count())
    }

    /// Lists devices some times, and reads the figures of the program.
    async fn ask(&mut self) -> Result<()> {
        for _ in 0..BLOCK {
            self.fewest = self.fewest.min(self.count_running().await?);
            sleep(PACE).await;
        }
        let age = self.program.metric("upstream_age_seconds{upstream=\"rack\"}").await?;
        self.age = self.age.max(age.unwrap_or(u64::MAX));
        self.memory.push(self.program.memory("VmRSS")? as f64);
        Ok(())
    }

    /// Returns the usual resident memory in KiB, once the figures are in order.
    fn usual(&self) -> f64 {
        quantile(&self.memory, 0.5)
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let Self { name, answering, age, fewest, .. } = self;
        let old = (*age > AGE).then(|| format!("{name}: what is shown is {age} s old; {AGE} s are allowed"));
        let lost = (fewest < answering).then(|| format!("{name}: {fewest} of {answering} phones run in one list"));
        old.into_iter().chain(lost)
    }
}
