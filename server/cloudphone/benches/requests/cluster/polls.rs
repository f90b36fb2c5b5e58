//! The time from the end of a task on one replica to the answer of a poll that another one holds,
//! and the cost of notices for PostgreSQL.
//!
//! A poll on the replica that ends the task is answered right after the commit, so it shows that
//! moment.

use super::{ClusterRig, check, phones, wait, write};
use crate::Missed;
use crate::growth::{HELD, raise_open_files};
use crate::load::quantile;
use crate::server::PROGRAM;
use crate::wire::closing;
use anyhow::{Result, anyhow, ensure};
use driver::{exchange, outcome};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

/// The number of polls. Each waits for a task of its own.
const POLLS: usize = 10_000;
/// The number of applications that hold them.
pub(super) const APPLICATIONS: usize = POLLS.div_ceil(HELD);
/// Tasks that begin and end per second.
const PER_SECOND: u32 = 1_000;
/// A poll where the task ends comes with one of this number of tasks.
const SAMPLE: usize = 10;

const FLAG: &str = "--store-notices";

/// The 99th percentile of the wait with notices and without them, at most.
const NOTICED_MAX: Duration = Duration::from_millis(100);
const UNNOTICED_MAX: Duration = Duration::from_secs(1);

pub(super) fn run(rig: &ClusterRig) -> Result<Missed> {
    raise_open_files();
    println!("{POLLS} held polls, {PER_SECOND} ends a second");
    println!("notices  wait p50 ms  p99 ms  at most  PostgreSQL: CPU µs a task");
    let help = Command::new(PROGRAM).arg("--help").output()?;
    let has_notices = String::from_utf8_lossy(&help.stdout).contains(FLAG);
    let ways: &[(&str, &[&str], Duration)] = match has_notices {
        true => &[("on", &[], NOTICED_MAX), ("off", &[FLAG, "off"], UNNOTICED_MAX)],
        false => &[("off", &[], UNNOTICED_MAX)],
    };
    let (mut missed, mut phones) = (Missed::new(), phones());
    for (notices, flags, most) in ways {
        let replicas = [rig.replica(1, flags)?, rig.replica(2, flags)?];
        let before = rig.postgres.cpu()?;
        let phones = phones.by_ref().take(POLLS).collect();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut waits = runtime.block_on(hold(rig, replicas.each_ref().map(|replica| replica.address), phones))?;
        let cpu = (rig.postgres.cpu()? - before).as_secs_f64() * 1e6 / POLLS as f64;
        let (p50, p99, most) = (quantile(&mut waits, 0.5) / 1e3, quantile(&mut waits, 0.99) / 1e3, most.as_millis());
        println!("{notices:7}  {p50:11.1}  {p99:6.1}  {most:7}  {cpu:25.0}");
        check(&mut missed, p99 <= most as f64, format!("held polls, notices {notices}: {p99:.1} ms, at most {most}"));
    }
    println!();
    Ok(missed)
}

/// Writes to each phone on one replica, and waits for the end on the other one. Returns the times
/// by which the samples were answered later there.
async fn hold(rig: &ClusterRig, [owner, other]: [SocketAddr; 2], phones: Vec<String>) -> Result<Vec<Duration>> {
    let begun = Instant::now();
    let mut polls = JoinSet::new();
    for (number, phone) in phones.into_iter().enumerate() {
        let key = rig.keys[1 + number % APPLICATIONS].clone();
        let due = begun + Duration::from_secs(1) * u32::try_from(number)? / PER_SECOND;
        polls.spawn(async move {
            sleep_until(due.into()).await;
            let task = answer(owner, &write(&key, Some(phone), "restart")).await?;
            let wait = wait(&key, &task["task_id"]);
            let ended = async |address| {
                let task = answer(address, &wait).await?;
                ensure!(task["terminal"] == true, "a poll was answered early: {task}");
                anyhow::Ok(Instant::now())
            };
            if number % SAMPLE > 0 {
                return ended(other).await.map(|_| None);
            }
            let (here, there) = tokio::try_join!(ended(owner), ended(other))?;
            Ok(Some(there.saturating_duration_since(here)))
        });
    }
    let mut waits = Vec::new();
    while let Some(polled) = polls.join_next().await {
        waits.extend(polled??);
    }
    Ok(waits)
}

/// Returns the answer to a request, which is repeated while the replica is overloaded: it asks for
/// the budgets of all applications at once.
async fn answer(address: SocketAddr, request: &[u8]) -> Result<Value> {
    let request = closing(request)?;
    loop {
        let reply = exchange(address, &request).await?;
        if reply.body.contains("overloaded") {
            sleep(Duration::from_secs(1)).await;
            continue;
        }
        return outcome(&reply.json()?)?.map_err(|error| anyhow!("{error}"));
    }
}
