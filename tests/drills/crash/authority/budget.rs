//! Calls of one application far beyond its budget, each at another replica than the one before.

use super::PreparedCluster;
use super::client::{ReplicaClient, is_success, list};
use crate::harness::Key;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The budget of a minute, and the longest time in which as many calls are admitted at a steady
/// demand: at least 290 a minute.
const LIMIT: usize = 300;
const SLOWEST: Duration = Duration::from_millis(60_000 * 300 / 290);

const MINUTE: Duration = Duration::from_secs(60);

/// Clients that call without pause. Refused calls wait for up to 250 ms.
const CLIENTS: u32 = 1_000;

/// Statements that the server has carried out, each of which is a transaction. The figure is late
/// by up to a second.
const STATEMENTS: &str = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'";

/// The times at which each call was sent and its answer received, and the kind of that answer. An
/// admitted call was admitted between them.
type Calls = Arc<Mutex<Vec<(Instant, Instant, &'static str)>>>;

/// Calls that often, partly while replicas are killed and the server fails over.
pub(super) async fn overspend(site: &mut PreparedCluster, count: u64) -> Vec<String> {
    let (key, count) = (site.application("bounded", LIMIT as u32).await, count as usize);
    let before = statements(site).await;
    sleep(MINUTE).await;
    let idle = (statements(site).await - before) / 63.0;
    println!("without calls: {idle:.1} statements a second");
    let pause = Duration::from_secs(2);
    measure("within the budget", start(site, &site.key, CLIENTS, Duration::ZERO), site, idle, count / 20).await;
    measure("within the budget, one in two seconds", start(site, &site.key, 1, pause), site, idle, 30).await;
    let calls = start(site, &key, CLIENTS, Duration::ZERO);
    let mut all = measure("beyond the budget", calls, site, idle, count / 4).await;

    let ((mut clients, calls), mut kills, mut fails_over) = (start(site, &key, CLIENTS, Duration::ZERO), 0, true);
    let made = || calls.lock().expect("no panic").len();
    while made() < count - count / 4 {
        sleep(Duration::from_secs(15)).await;
        let pause = [100, 1_000, 12_000][kills % 3];
        site.replicas[kills % site.replicas.len()].kill(Duration::from_millis(pause)).await;
        kills += 1;
        if fails_over && made() > count / 3 {
            fails_over = false;
            site.servers.fail_over().await.expect("the standby takes over");
            site.servers.remake_standby().await.expect("another standby follows");
        }
    }
    clients.shutdown().await;
    println!("{kills} kills and {} failovers: {}", u32::from(!fails_over), describe(&calls));
    all.extend(select_admitted(&calls));

    site.wait_until_all_answer().await;
    let (begun, (mut clients, calls)) = (Instant::now(), start(site, &key, 10, Duration::from_secs(1)));
    sleep(4 * MINUTE).await;
    clients.shutdown().await;
    let steady = select_admitted(&calls);
    // The first minute has the rest of what came before.
    let after: Vec<_> = steady.iter().map(|(sent, _)| *sent).filter(|sent| *sent > begun + MINUTE).collect();
    let longest = after.windows(LIMIT + 1).map(|calls| calls[LIMIT] - calls[0]).max().unwrap_or(Duration::MAX);
    all.extend(steady);
    let most = all.iter().map(|(sent, _)| count_within(&all, *sent)).max().unwrap_or(0);
    println!("10 calls a second: {}; {LIMIT} were admitted in {longest:?} at the most", describe(&calls));
    println!("{} admitted calls in all, most in a minute {most}", all.len());
    let broken = [(most > LIMIT, "more than the limit was admitted"), (longest > SLOWEST, "too little was admitted")];
    broken.into_iter().filter(|(is_broken, _)| *is_broken).map(|(_, what)| what.to_owned()).collect()
}

/// Starts clients that call at each replica in turn.
fn start(site: &PreparedCluster, key: &Key, clients: u32, pause: Duration) -> (JoinSet<()>, Calls) {
    let calls = Calls::default();
    let call_always = |number| {
        let (calls, mut client, request) = (Arc::clone(&calls), ReplicaClient::new(&site.replicas), list(key));
        async move {
            let mut ticks = interval(pause.max(Duration::from_nanos(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            sleep(pause * number / clients).await;
            for turn in number as usize.. {
                ticks.tick().await;
                let sent = Instant::now();
                let kind = match client.send(turn, &request).await {
                    None => "no answer",
                    Some(answer) if is_success(&answer) => "admitted",
                    Some(answer) if answer.body.contains("rate_limited") => "beyond the budget",
                    Some(answer) if answer.body.contains("overloaded") => "overloaded",
                    Some(_) => "another failure",
                };
                calls.lock().expect("no panic").push((sent, Instant::now(), kind));
            }
        }
    };
    ((0..clients).map(call_always).collect(), calls)
}

/// Waits until that many calls are made, and prints the statements that they cause. Returns the
/// admitted ones.
async fn measure(
    what: &str,
    (mut clients, calls): (JoinSet<()>, Calls),
    site: &PreparedCluster,
    idle: f64,
    count: usize,
) -> Vec<(Instant, Instant)> {
    let (before, begun) = (statements(site).await, Instant::now());
    let made = || calls.lock().expect("no panic").len();
    let from = made();
    while made() < from + count {
        sleep(Duration::from_millis(100)).await;
    }
    let calls_made = (made() - from) as f64;
    let caused = statements(site).await - before - idle * begun.elapsed().as_secs_f64();
    clients.shutdown().await;
    println!("{what}: {:.1} statements per 1,000 calls; {}", caused * 1e3 / calls_made, describe(&calls));
    select_admitted(&calls)
}

async fn statements(site: &PreparedCluster) -> f64 {
    sleep(Duration::from_secs(3)).await;
    site.servers.query(STATEMENTS).await.expect("the server answers").parse().expect("a number")
}

fn select_admitted(calls: &Calls) -> Vec<(Instant, Instant)> {
    let calls = calls.lock().expect("no panic");
    calls.iter().filter(|(_, _, kind)| *kind == "admitted").map(|(sent, received, _)| (*sent, *received)).collect()
}

/// Returns the calls that were certainly admitted in the minute from then on.
fn count_within(calls: &[(Instant, Instant)], from: Instant) -> usize {
    calls.iter().filter(|(sent, received)| *sent >= from && *received <= from + MINUTE).count()
}

/// Counts the calls by kind.
fn describe(calls: &Calls) -> String {
    let mut kinds = BTreeMap::<_, u64>::new();
    calls.lock().expect("no panic").iter().for_each(|(_, _, kind)| *kinds.entry(*kind).or_default() += 1);
    format!("{kinds:?}")
}
