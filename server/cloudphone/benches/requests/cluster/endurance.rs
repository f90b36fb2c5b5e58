//! Many tasks for a long time, a third of it during an open transaction.

use super::server::Postgres;
use super::{ClusterRig, PAUSE, check, phones, write};
use crate::load::{Pace, Stream, load_all, quantile};
use crate::wire::{Form, ask};
use crate::{Missed, median};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant::base::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnduranceOptions {
    minutes: usize,
}

/// Tasks per second.
const RATE: u32 = 200;
const CONNECTIONS: usize = 16;
/// Each phone gets a write again after 50 seconds.
const PHONES: usize = 10_000;

const OPEN_MAX: usize = 10;

/// Ratio of the 99th percentile during the transaction to that before it.
const WAIT_MAX: f64 = 1.5;
/// Ratio of sizes while no transaction is open.
const GROWTH_MAX: f64 = 1.1;

/// Tables that grow with each task. `NOT` in front selects the others.
const HISTORY: &str = "relname ~ '^(ended|event|ledger)'";

pub(crate) fn run() -> Result<Missed> {
    let options = std::env::var("DRILL").context("`cargo xtask drill endurance` runs this")?;
    let EnduranceOptions { minutes } = json::read(&options)?;
    let Some(postgres) = Postgres::start()? else {
        println!("PostgreSQL is not installed, so there is nothing to measure");
        return Ok(Missed::new());
    };
    let rig = ClusterRig::make(postgres, TempDir::new()?, 1)?;
    let replica = rig.replica(1, &[])?;
    let size = |tables: &str| {
        let sql = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                   WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND";
        rig.postgres.count(&format!("{sql} {tables}")) as f64 / 1024.0
    };
    let phones: Vec<_> = phones().take(PHONES).collect();
    let phones = RefCell::new(phones.iter().cycle());
    let requests = || write(&rig.keys[0], phones.borrow_mut().next().cloned(), "boot");
    let form = || ask(&replica, &requests())?.form().map(Form::of_any_length);
    println!("{RATE} tasks a second\n");
    println!("minute  transaction  p50 ms  p99 ms  KiB of tables in use  of history");
    let open = minutes / 3..minutes / 3 + OPEN_MAX.min(minutes / 3);
    let (mut waits, mut sizes, mut transaction) = (Vec::new(), Vec::new(), None);
    for minute in 0..minutes {
        match open.contains(&minute) {
            true => drop(transaction.get_or_insert_with(|| rig.postgres.begin())),
            false => transaction = None,
        }
        let stream =
            Stream { requests: &requests, form: form()?, connections: CONNECTIONS, pace: Pace::PerSecond(RATE) };
        let mut waited = load_all(&[&replica], &[stream], Duration::from_secs(60), PAUSE)?.waits.remove(0);
        let (p50, p99) = (quantile(&mut waited, 0.5) / 1e3, quantile(&mut waited, 0.99) / 1e3);
        let (used, history) = (size(&format!("NOT {HISTORY}")), size(HISTORY));
        let state = if open.contains(&minute) { "open" } else { "-" };
        println!("{:6}  {state:11}  {p50:6.2}  {p99:6.2}  {used:20.0}  {history:10.0}", minute + 1);
        waits.push(p99);
        sizes.push(used);
    }
    let mut missed = Missed::new();
    // In the first minute, tables reach their sizes.
    let wait = |minutes: Range<usize>| median(waits[minutes].to_vec());
    let ratio = wait(open.clone()) / wait(1..open.start);
    check(
        &mut missed,
        ratio <= WAIT_MAX,
        format!("acceptance beside a transaction: {ratio:.2} times the wait, at most {WAIT_MAX}"),
    );
    for (when, first, last) in [("before", 1, open.start - 1), ("after", open.end, minutes - 1)] {
        let growth = sizes[last] / sizes[first];
        println!("growth of tables in use {when} the transaction: {growth:.2}, at most {GROWTH_MAX}");
        check(
            &mut missed,
            growth <= GROWTH_MAX,
            format!("tables in use {when} the transaction: {growth:.2} times their size"),
        );
    }
    println!("p99 beside the transaction: {ratio:.2} times that before it, at most {WAIT_MAX}");
    Ok(missed)
}
