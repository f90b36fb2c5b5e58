//! Reads on a replica cause no statement, so they do not wait for PostgreSQL.

use super::{ClusterRig, check};
use crate::load::{Load, Pace, Stream, load, quantile};
use crate::wire::{DEVICE, ask, get_device, request};
use crate::{Missed, median};
use anyhow::Result;
use std::thread::sleep;
use std::time::Duration;

const RATE: u32 = 10_000;
const CONNECTIONS: usize = 32;
const ROUNDS: usize = 5;

/// A load begins and ends within a stall.
const STALL_SECONDS: u64 = 3;
const SPAN: Duration = Duration::from_millis(2_500);

const COUNTED: Duration = Duration::from_secs(10);

const STATEMENTS_MAX: f64 = 20.0;
/// Ratio of the 99th percentile in a stall to that before it.
const STALLED_MAX: f64 = 1.2;

pub(super) fn run(rig: &ClusterRig) -> Result<Missed> {
    let replica = rig.replica(1, &[])?;
    let read = request(&rig.keys[0], &get_device(DEVICE));
    let (requests, pace) = (|| read.clone(), Pace::PerSecond(RATE));
    let reads = |span| -> Result<Load> {
        let form = ask(&replica, &read)?.form()?;
        load(&replica, &[Stream { requests: &requests, form, connections: CONNECTIONS, pace }], span)
    };
    let statements = || {
        // The server adds the figures of a session up once a second.
        sleep(Duration::from_secs(2));
        rig.postgres.count("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'")
    };
    let before = statements();
    let span = reads(COUNTED)?.span + Duration::from_secs(2);
    let statements = (statements() - before) as f64 / span.as_secs_f64();

    let (mut ratios, mut waits) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        let mut quiet = reads(SPAN)?.waits.remove(0);
        let mut stall = rig.postgres.stall(STALL_SECONDS)?;
        sleep(Duration::from_millis(200));
        let mut stalled = reads(SPAN)?.waits.remove(0);
        stall.wait()?;
        ratios.push(quantile(&mut stalled, 0.99) / quantile(&mut quiet, 0.99));
        waits[0].append(&mut quiet);
        waits[1].append(&mut stalled);
        // The replica beats again.
        sleep(Duration::from_secs(2));
    }
    let ratio = median(ratios);
    let [quiet, stalled] = waits.each_mut().map(|waits| (quantile(waits, 0.5), quantile(waits, 0.99)));
    println!(
        "{RATE} get_device a second on a replica: {statements:.1} statements a second, at most {STATEMENTS_MAX}\n"
    );
    println!("PostgreSQL              p50 µs  p99 µs  ratio  at most");
    println!("answers                 {:6.0}  {:6.0}", quiet.0, quiet.1);
    println!(
        "stalls for {STALL_SECONDS} s          {:6.0}  {:6.0}  {ratio:5.2}  {STALLED_MAX:7}\n",
        stalled.0, stalled.1
    );
    let mut missed = Missed::new();
    check(
        &mut missed,
        statements <= STATEMENTS_MAX,
        format!("reads: {statements:.1} statements a second, at most {STATEMENTS_MAX}"),
    );
    check(
        &mut missed,
        ratio <= STALLED_MAX,
        format!("reads in a stall: {ratio:.2} times the wait, at most {STALLED_MAX}"),
    );
    Ok(missed)
}
