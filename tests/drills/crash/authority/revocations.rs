//! Keys that are revoked while clients use them at every replica.

use super::client::{Client, is_success, list};
use super::{Replica, Stage, command, middle_and_largest};
use crate::drills::crash::cluster::replica::Outage;
use crate::harness::Key;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Keys that are in use at the same time.
const ROUND: u64 = 20;

/// Clients of other keys, half of which write.
const OTHERS: usize = 8;

/// The most that the command may take, if a replica is silent and if none is.
const LIMITS: [Duration; 2] = [Duration::from_millis(6_500), Duration::from_millis(50)];

/// Time that an answer may need to reach a client which waits for it.
const TRANSIT: Duration = Duration::from_secs(1);

/// A key, and the latest times at which a successful call was sent, and its answer received.
struct KeyInUse {
    key: Key,
    latest: Mutex<(Instant, Instant)>,
    /// The time at which the command to revoke it had answered, and how long it took.
    revoked: Mutex<Option<(Instant, Duration)>>,
}

/// The figures of all rounds.
#[derive(Default)]
struct Figures {
    /// The durations of commands with a silent replica, and without.
    times: [Vec<Duration>; 2],
    /// Calls that were sent after the answer of the command and succeeded, and answers that left
    /// after it.
    late: [u64; 2],
}

/// Revokes that many keys, half of them while a replica is stopped or cut off.
pub(super) async fn revoke(stage: &mut Stage, count: u64) -> Vec<String> {
    let mut others = JoinSet::new();
    for number in 0..OTHERS {
        let (mut client, key) = (Client::new(&stage.replicas), stage.site.key.clone());
        let (read, devices) = (list(&key), stage.devices.clone());
        others.spawn(async move {
            for turn in number.. {
                let device = json!({"device_id": devices[turn * 7 % devices.len()]});
                let write = key.call_request("clear_proxy", &device, "").into_bytes();
                client.send(turn, if number % 2 == 0 { &write } else { &read }).await;
                sleep(Duration::from_millis(if number % 2 == 0 { 200 } else { 20 })).await;
            }
        });
    }
    let mut figures = Figures::default();
    for number in 0..count.div_ceil(ROUND) {
        round(stage, (number % 2 == 1).then_some(number / 2), &mut figures).await;
    }
    let mut broken = Vec::new();
    for ((times, limit), what) in figures.times.iter_mut().zip(LIMITS).zip(["with a silent replica", "all healthy"]) {
        let [p50, largest] = middle_and_largest(times);
        println!("{} revocations, {what}: p50 {p50} ms, maximum {largest} ms", times.len());
        let judged = if limit < TRANSIT { p50 } else { largest };
        broken.extend((judged > limit.as_millis()).then(|| format!("a revocation takes {judged} ms, {what}")));
    }
    let [sent, received] = figures.late;
    println!("keys with which a call succeeded after the answer: {sent}; with an answer that came later: {received}");
    broken.extend((sent + received > 0).then(|| "a revoked key was in force".to_owned()));
    broken
}

/// Revokes the keys of a round.
async fn round(stage: &mut Stage, fault: Option<u64>, figures: &mut Figures) {
    let replicas = stage.replicas.clone();
    let mut made = JoinSet::new();
    (0..ROUND).for_each(|_| {
        made.spawn(command(Arc::clone(&replicas[0]), json!({"key": {"create": {"app": "load", "expires": null}}})));
    });
    let now = Instant::now();
    let keys: Vec<Arc<KeyInUse>> = made
        .join_all()
        .await
        .iter()
        .map(|made| Key::read(made).expect("a key"))
        .map(|key| Arc::new(KeyInUse { key, latest: Mutex::new((now, now)), revoked: Mutex::default() }))
        .collect();
    let mut users = JoinSet::new();
    for key in &keys {
        for number in 0..replicas.len() {
            users.spawn(Arc::clone(key).call_always(Client::new(&replicas), number));
        }
    }
    sleep(Duration::from_secs(1)).await;
    let silent = fault.map(|fault| fault as usize % replicas.len());
    let mut outage = JoinSet::new();
    if let (Some(fault), Some(silent)) = (fault, silent) {
        let (replica, time) = (Arc::clone(&replicas[silent]), 8_000 + stage.random.below(8_000));
        let time = Duration::from_millis(time);
        outage.spawn(async move {
            match fault % 4 {
                0 | 1 => replica.pause(time).await,
                2 => replica.cut(Outage::Cut, time).await,
                _ => replica.cut(Outage::Stall, time).await,
            }
        });
    }
    let mut revocations = JoinSet::new();
    for key in &keys {
        sleep(Duration::from_millis(stage.random.below(600))).await;
        let by = stage.random.below(replicas.len() as u64) as usize;
        let by = if Some(by) == silent { (by + 1) % replicas.len() } else { by };
        revocations.spawn(Arc::clone(key).revoke(Arc::clone(&replicas[by])));
        // A command that nothing delays is measured alone.
        while fault.is_none() && revocations.join_next().await.is_some() {}
    }
    revocations.join_all().await;
    outage.join_all().await;
    stage.wait_until_all_serve().await;
    for key in &keys {
        let (sent, received) = *key.latest.lock().expect("no panic");
        let (at, took) = key.revoked.lock().expect("no panic").expect("it was revoked");
        figures.times[usize::from(fault.is_none())].push(took);
        figures.late[0] += u64::from(sent > at);
        figures.late[1] += u64::from(received > at + TRANSIT);
    }
}

impl KeyInUse {
    /// Calls a replica with it again and again. Never returns.
    async fn call_always(self: Arc<Self>, mut client: Client, replica: usize) {
        let request = list(&self.key);
        loop {
            let sent = Instant::now();
            if client.send(replica, &request).await.as_ref().is_some_and(is_success) {
                let mut latest = self.latest.lock().expect("no panic");
                *latest = (latest.0.max(sent), latest.1.max(Instant::now()));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn revoke(self: Arc<Self>, replica: Arc<Replica>) {
        let begun = Instant::now();
        command(replica, json!({"key": {"revoke": {"key": self.key.id}}})).await;
        *self.revoked.lock().expect("no panic") = Some((Instant::now(), begun.elapsed()));
    }
}
