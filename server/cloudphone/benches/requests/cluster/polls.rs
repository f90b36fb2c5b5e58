//! The time from the end of a task on one replica to the answer of a poll that another one holds,
//! and the cost of notices.
//!
//! All polls are held before the first task ends, and then tasks end at a fixed rate. A poll on the
//! replica that ends the task is answered right after the commit, so it shows that moment. Nothing
//! begins while tasks end, so the CPU time is that of their ends.

use super::server::Postgres;
use super::{ClusterRig, check, phones, wait, write};
use crate::Missed;
use crate::folder::Key;
use crate::load::quantile;
use crate::replica::ENDS_PER_SECOND;
use crate::server::Server;
use crate::wire::closing;
use anyhow::{Result, anyhow, ensure};
use driver::{exchange, outcome};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The number of polls. Each waits for a task of its own.
const POLLS: usize = 10_000;
/// The most held polls of one application.
const HELD: usize = 64;
/// The number of applications that hold them.
const APPLICATIONS: usize = POLLS.div_ceil(HELD);
/// A poll where the task ends comes with one of this number of tasks.
const SAMPLE: usize = 10;

/// Tasks that have begun and do not wait for their end yet, at most. The store may be slower than
/// the clients.
const AHEAD: usize = 1_500;
/// The interval at which these tasks are counted.
const COUNT_EVERY: Duration = Duration::from_millis(250);
/// Time in which tasks begin. A slow machine begins fewer. The engine does not let a task wait for
/// more than 30 s.
const BEGIN_WITHIN: Duration = Duration::from_secs(25);
/// Time in which the last polls arrive, and in which all must have ended.
const ARRIVAL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// The ways: notices, the flags for them, and the 99th percentile of the wait, at most.
const WAYS: [(&str, &[&str], Duration); 2] =
    [("on", &[], Duration::from_millis(100)), ("off", &["--store-notices", "off"], Duration::from_secs(1))];

/// The figures of a way.
struct Ends {
    polls: usize,
    /// The times by which the samples were answered later on the other replica.
    waits: Vec<Duration>,
    /// Ends per second.
    rate: f64,
    /// CPU time of PostgreSQL and of the replicas.
    used: [Duration; 2],
}

pub(crate) fn run() -> Result<Missed> {
    let Some(postgres) = Postgres::start()? else {
        println!("PostgreSQL is not installed, so there is nothing to measure");
        return Ok(Missed::new());
    };
    raise_open_files();
    let rig = ClusterRig::make(postgres, TempDir::new()?, APPLICATIONS)?;
    println!("{POLLS} polls, {ENDS_PER_SECOND} ends a second\n");
    println!("                                                     CPU µs an end:");
    println!("notices   held  ends a second  wait p50 ms  p99 ms  at most  PostgreSQL  replicas");
    let (mut missed, mut phones) = (Missed::new(), phones());
    for (notices, flags, most) in WAYS {
        let replicas = [rig.replica(1, flags)?, rig.replica(2, flags)?];
        let phones = phones.by_ref().take(POLLS + 1).collect();
        let Ends { polls, mut waits, rate, used } = hold(&rig, &replicas, phones)?;
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(&mut waits, share) / 1e3);
        let [server, service] = used.map(|used| used.as_secs_f64() * 1e6 / polls as f64);
        let most = most.as_millis();
        println!("{notices:7}  {polls:5}  {rate:13.0}  {p50:11.1}  {p99:6.1}  {most:7}  {server:10.0}  {service:8.0}");
        check(&mut missed, p99 <= most as f64, format!("held polls, notices {notices}: {p99:.1} ms, at most {most}"));
    }
    Ok(missed)
}

/// Lets tasks begin on one replica, and polls wait for them on the other one. Then lets all end.
fn hold(rig: &ClusterRig, replicas: &[Server; 2], mut phones: Vec<String>) -> Result<Ends> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ([owner, other], last) = (replicas.each_ref().map(|replica| replica.address), phones.pop());
    let waiting = || -> Result<usize> {
        sleep(COUNT_EVERY);
        Ok(rig.postgres.count("SELECT count(*) FROM task WHERE state::json ->> 'phase' = 'verifying'").try_into()?)
    };
    let (begun, mut polls) = (Instant::now(), JoinSet::new());
    while polls.len() < POLLS && begun.elapsed() < BEGIN_WITHIN {
        let most = POLLS.min(waiting()? + AHEAD);
        for number in polls.len()..most {
            let key = rig.keys[number % APPLICATIONS].clone();
            let phone = phones.pop();
            polls.spawn_on(poll([owner, other], key, phone, number % SAMPLE == 0), runtime.handle());
        }
    }
    let held = polls.len();
    while waiting()? < held {
        ensure!(begun.elapsed() < PATIENCE, "the store does not keep up");
    }
    sleep(ARRIVAL);
    let used = || -> Result<[Duration; 2]> {
        Ok([rig.postgres.cpu()?, replicas.iter().map(|replica| replica.cpu()).sum::<Result<Duration>>()?])
    };
    let (before, opened, mut ends, mut waits) = (used()?, Instant::now(), Vec::new(), Vec::new());
    runtime.block_on(async {
        answer(owner, &write(&rig.keys[0], last, "restart")).await?;
        while let Some(polled) = timeout(PATIENCE, polls.join_next()).await? {
            let (ended, wait) = polled??;
            ends.push(ended - opened);
            waits.extend(wait);
        }
        anyhow::Ok(())
    })?;
    let after = used()?;
    // A step that has to be repeated comes seconds later.
    let span = quantile(&mut ends, 0.99) / 1e6;
    Ok(Ends {
        polls: held,
        waits,
        rate: 0.99 * held as f64 / span,
        used: [0, 1].map(|part: usize| after[part].saturating_sub(before[part])),
    })
}

/// Begins a task, and polls it until it has ended. Returns that moment, and the time by which the
/// other replica has answered later, if this poll is one of the sample.
async fn poll(
    [owner, other]: [SocketAddr; 2],
    key: Key,
    phone: Option<String>,
    is_sample: bool,
) -> Result<(Instant, Option<Duration>)> {
    let task = answer(owner, &write(&key, phone, "shutdown")).await?;
    let wait = wait(&key, &task["task_id"]);
    let ended = async |address| {
        while answer(address, &wait).await?["terminal"] == false {}
        anyhow::Ok(Instant::now())
    };
    if !is_sample {
        return Ok((ended(other).await?, None));
    }
    let (here, there) = tokio::try_join!(ended(owner), ended(other))?;
    Ok((there, Some(there.saturating_duration_since(here))))
}

/// Returns the answer to a request, which is repeated while the replica is overloaded: it asks for
/// the budgets of all applications at once.
async fn answer(address: SocketAddr, request: &[u8]) -> Result<Value> {
    let request = closing(request)?;
    loop {
        let reply = exchange(address, &request).await?;
        if reply.body.contains("overloaded") {
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        }
        return outcome(&reply.json()?)?.map_err(|error| anyhow!("{error}"));
    }
}

/// Raises the limit of open files of this process to the maximum.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
