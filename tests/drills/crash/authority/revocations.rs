//! Keys that are revoked while clients use them at every replica.

use super::PreparedCluster;
use super::client::{ReplicaClient, is_success, list};
use crate::drills::crash::cluster::replica::Outage;
use crate::harness::Key;
use crate::harness::program::send;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use toolwarrant_base::random::SplitMix;

/// Keys that are in use at the same time.
const ROUND: u64 = 20;

/// Clients that write to a device of their own every ten seconds.
const WRITERS: usize = 40;

/// Time that an answer may need to reach a client which waits for it.
const TRANSIT: Duration = Duration::from_secs(1);

/// The latest times at which a successful call was sent, and its answer received.
type Latest = Arc<Mutex<(Instant, Instant)>>;

/// Revokes that many keys, half of them while a replica is stopped or cut off.
pub(super) async fn revoke(site: &PreparedCluster, count: u64, random: &mut SplitMix) -> Vec<String> {
    let mut writers = JoinSet::new();
    for (number, device) in site.pads.devices().into_iter().take(WRITERS).enumerate() {
        let mut client = ReplicaClient::new(&site.replicas);
        let write = site.key.call_request("clear_proxy", &json!({"device_id": device}), "");
        writers.spawn(async move {
            for turn in number.. {
                client.send(turn, write.as_bytes()).await;
                sleep(Duration::from_secs(10)).await;
            }
        });
    }
    // The durations of commands without and with a fault.
    let (mut times, mut late) = ([Vec::new(), Vec::new()], [0, 0]);
    for number in 0..count.div_ceil(ROUND) {
        let has_fault = number % 2 == 1;
        for (took, [is_sent_later, is_received_later]) in round(site, has_fault, random).await {
            times[usize::from(has_fault)].push(took);
            late = [late[0] + u64::from(is_sent_later), late[1] + u64::from(is_received_later)];
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    let [healthy, faulty] = times;
    let at = |times: &[u128], at: usize| times.get(at).copied().unwrap_or_default();
    let p50 = at(&healthy, healthy.len() / 2);
    println!(
        "{} revocations without a fault: p50 {p50} ms, maximum {} ms",
        healthy.len(),
        at(&healthy, healthy.len() - 1)
    );
    let (middle, most) = (at(&faulty, faulty.len() / 2), at(&faulty, faulty.len().saturating_sub(1)));
    println!("{} while a replica is silent: p50 {middle} ms, maximum {most} ms", faulty.len());
    println!("keys with a success that was sent after the answer: {}, that came later: {}", late[0], late[1]);
    let broken = [
        (p50 > 50, "revocations are slow"),
        (most > 6_500, "a revocation is slow"),
        (late != [0, 0], "a revoked key is in force"),
    ];
    broken.into_iter().filter(|(is_broken, _)| *is_broken).map(|(_, what)| what.to_owned()).collect()
}

/// Revokes the keys of a round. Returns the milliseconds that each command took, and if a success
/// was sent, or received, after its answer.
async fn round(site: &PreparedCluster, has_fault: bool, random: &mut SplitMix) -> Vec<(u128, [bool; 2])> {
    let (mut revocations, mut outage, mut begin) = (JoinSet::new(), JoinSet::new(), Duration::from_secs(1));
    let silent = random.below(site.replicas.len() as u64) as usize;
    let create = json!({"key": {"create": {"app": "load", "expires": null}}});
    let keys: JoinSet<_> = (0..ROUND).map(|_| command(site.replicas[0].data.clone(), create.clone())).collect();
    for key in keys.join_all().await {
        let (key, replicas, now) = (Key::read(&key).expect("a key"), site.replicas.clone(), Instant::now());
        begin += Duration::from_millis(random.below(600));
        let by = random.below(replicas.len() as u64) as usize;
        let by = if has_fault && by == silent { (by + 1) % replicas.len() } else { by };
        revocations.spawn(async move {
            let latest = Latest::new(Mutex::new((now, now)));
            let user = |number| call_always(ReplicaClient::new(&replicas), number, list(&key), Arc::clone(&latest));
            let users: JoinSet<_> = (0..replicas.len()).map(user).collect();
            sleep(begin).await;
            let begun = Instant::now();
            command(replicas[by].data.clone(), json!({"key": {"revoke": {"key": key.id}}})).await;
            (users, latest, begun.elapsed(), Instant::now())
        });
    }
    if has_fault {
        let (replica, time) = (Arc::clone(&site.replicas[silent]), Duration::from_millis(9_000 + random.below(8_000)));
        let way = random.below(4);
        outage.spawn(async move {
            match way {
                0 => replica.cut(Outage::Cut, time).await,
                1 => replica.cut(Outage::Stall, time).await,
                _ => replica.pause(time).await,
            }
        });
    }
    let revoked = revocations.join_all().await;
    outage.join_all().await;
    // A replica that stood still has answered by then.
    site.wait_until_all_answer().await;
    let judge = |(_users, latest, took, answered): &(JoinSet<()>, Latest, Duration, Instant)| {
        let (sent, received) = *latest.lock().expect("no panic");
        (took.as_millis(), [sent > *answered, received > *answered + TRANSIT])
    };
    revoked.iter().map(judge).collect()
}

/// Calls a replica again and again. Never returns.
async fn call_always(mut client: ReplicaClient, replica: usize, request: Vec<u8>, latest: Latest) {
    loop {
        let sent = Instant::now();
        if client.send(replica, &request).await.as_ref().is_some_and(is_success) {
            let mut latest = latest.lock().expect("no panic");
            *latest = (latest.0.max(sent), latest.1.max(Instant::now()));
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Carries out a command through the socket of a replica. Repeats it if others come between.
async fn command(data: impl AsRef<Path>, command: Value) -> Value {
    let request = json!({"program": "cloudphone", "command": command, "claims": {}});
    loop {
        let (socket, asked) = (data.as_ref().join("admin.sock"), request.clone());
        let mut said = spawn_blocking(move || send(&socket, &asked)).await.expect("no panic").expect("an answer");
        if let Some(done) = said.get_mut("Ok") {
            return done.take();
        }
        assert!(said.to_string().contains("repeat the command"), "{request}: {said}");
    }
}
