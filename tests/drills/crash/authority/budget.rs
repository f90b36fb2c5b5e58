//! Calls of one application far beyond its budget, each at another replica than the one before.

use super::Stage;
use super::client::{Client, is_success, list};
use crate::harness::Key;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The budget.
const LIMIT: usize = 300;

/// The fewest admitted calls in a minute of steady demand.
const FEWEST: usize = 290;

const MINUTE: Duration = Duration::from_secs(60);

/// Clients that call without pause. Refused calls wait for up to 250 ms.
const CLIENTS: usize = 1_000;

/// Statements that the server has carried out. Each is a transaction. Figures are late by up to a
/// second.
const STATEMENTS: &str = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'";

/// The record of the calls of one application.
#[derive(Default)]
struct Calls {
    count: AtomicU64,
    /// The times at which each successful call was sent and its answer received. The call was
    /// admitted between them.
    admitted: Mutex<Vec<(Instant, Instant)>>,
    others: Mutex<BTreeMap<&'static str, u64>>,
}

/// Calls that often, partly while replicas are killed and the server fails over.
pub(super) async fn overspend(stage: &mut Stage, count: u64) -> Vec<String> {
    let key = stage.application("bounded", LIMIT as u32).await;
    let unbounded = stage.site.key.clone();
    let quarter = Duration::from_secs(15);
    let before = statements(stage).await;
    sleep(MINUTE).await;
    let idle = (statements(stage).await - before) as f64 / 63.0;
    println!("without calls: {idle:.1} statements a second");
    measure(stage, &unbounded, "within its budget, without pause", idle, count / 20, Duration::ZERO).await;
    measure(stage, &unbounded, "within its budget, once in two seconds", idle, 30, Duration::from_secs(2)).await;
    let mut all = measure(stage, &key, "beyond its budget, without pause", idle, count / 4, Duration::ZERO).await;

    let calls = Arc::new(Calls::default());
    let mut clients = calls.start(stage, &key, CLIENTS, Duration::ZERO);
    let (rest, mut kills) = (count - count / 4, 0_usize);
    let mut has_failed_over = false;
    while calls.count.load(Relaxed) < rest {
        sleep(quarter).await;
        let replica = Arc::clone(&stage.replicas[kills % stage.replicas.len()]);
        replica.kill(Duration::from_millis([100, 1_000, 12_000][kills % 3])).await;
        kills += 1;
        if !has_failed_over && calls.count.load(Relaxed) > rest / 2 {
            stage.servers().fail_over().await.expect("the standby takes over");
            stage.servers().remake_standby().await.expect("another standby follows");
            has_failed_over = true;
        }
    }
    clients.shutdown().await;
    println!("{kills} kills, failed over: {has_failed_over}; {calls}");
    all.extend(calls.admitted.lock().expect("no panic").iter());

    stage.wait_until_all_serve().await;
    let calls = Arc::new(Calls::default());
    let begun = Instant::now();
    let mut clients = calls.start(stage, &key, 10, Duration::from_secs(1));
    sleep(4 * MINUTE).await;
    clients.shutdown().await;
    let steady = calls.admitted.lock().expect("no panic").clone();
    // The first minute has the rest of what came before.
    let fewest = (60..180).map(|second| count_within(&steady, begun + Duration::from_secs(second))).min().unwrap_or(0);
    all.extend(steady);
    all.sort_unstable();
    let most = all.iter().map(|(sent, _)| count_within(&all, *sent)).max().unwrap_or(0);
    println!("at 10 calls a second: {calls}; fewest admitted in a minute {fewest}");
    println!("{} admitted calls in all; most in a minute {most}", all.len());
    let mut broken = Vec::new();
    broken.extend((most > LIMIT).then(|| format!("{most} calls were admitted in a minute")));
    broken.extend((fewest < FEWEST).then(|| format!("only {fewest} calls were admitted in a minute")));
    broken
}

/// Returns the calls that were certainly admitted in the minute from then on.
fn count_within(calls: &[(Instant, Instant)], from: Instant) -> usize {
    calls.iter().filter(|(sent, received)| *sent >= from && *received <= from + MINUTE).count()
}

/// Makes that many calls, and prints the statements that they cause.
async fn measure(
    stage: &mut Stage,
    key: &Key,
    what: &str,
    idle: f64,
    count: u64,
    pause: Duration,
) -> Vec<(Instant, Instant)> {
    let (before, begun, calls) = (statements(stage).await, Instant::now(), Arc::new(Calls::default()));
    let mut clients = calls.start(stage, key, if pause.is_zero() { CLIENTS } else { 1 }, pause);
    while calls.count.load(Relaxed) < count {
        sleep(Duration::from_millis(100)).await;
    }
    clients.shutdown().await;
    let (calls_made, took) = (calls.count.load(Relaxed), begun.elapsed().as_secs_f64());
    let caused = (statements(stage).await - before) as f64 - idle * begun.elapsed().as_secs_f64();
    println!(
        "{what}: {:.0} calls a second, {:.1} statements per 1,000 calls; {calls}",
        calls_made as f64 / took,
        caused * 1e3 / calls_made as f64
    );
    let admitted = calls.admitted.lock().expect("no panic");
    admitted.clone()
}

async fn statements(stage: &mut Stage) -> u64 {
    sleep(Duration::from_secs(3)).await;
    stage.servers().query(STATEMENTS).await.expect("the server answers").parse().expect("a number")
}

impl Calls {
    /// Starts clients that call in turn at each replica.
    fn start(self: &Arc<Self>, stage: &Stage, key: &Key, clients: usize, pause: Duration) -> JoinSet<()> {
        let request = list(key);
        let client = |number| {
            let (calls, mut client, request) = (Arc::clone(self), Client::new(&stage.replicas), request.clone());
            async move {
                let mut ticks = interval(pause.max(Duration::from_nanos(1)));
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                sleep(pause * number as u32 / clients as u32).await;
                for turn in number.. {
                    ticks.tick().await;
                    let sent = Instant::now();
                    let answer = client.send(turn, &request).await;
                    calls.count.fetch_add(1, Relaxed);
                    let kind = match answer {
                        None => "no answer",
                        Some(answer) if is_success(&answer) => {
                            calls.admitted.lock().expect("no panic").push((sent, Instant::now()));
                            continue;
                        }
                        Some(answer) if answer.body.contains("rate_limited") => "beyond the budget",
                        Some(answer) if answer.body.contains("overloaded") => "overloaded",
                        Some(_) => "another failure",
                    };
                    *calls.others.lock().expect("no panic").entry(kind).or_default() += 1;
                }
            }
        };
        (0..clients).map(client).collect()
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (admitted, others) = (self.admitted.lock().expect("no panic").len(), self.others.lock().expect("no panic"));
        write!(out, "{} calls, {admitted} admitted, {others:?}", self.count.load(Relaxed))
    }
}
