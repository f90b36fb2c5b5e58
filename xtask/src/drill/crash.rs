//! `cargo xtask drill crash`: kills and stops the optimised program repeatedly under load, and then
//! audits its data. One round takes backups meanwhile, and restores and checks each of them. In
//! another, half of the writes go to pads of the double of ARMCloud, which resets connections and
//! loses answers; the audit then also reads the double's journal.
//!
//! `cargo xtask drill cluster`: several programs share one PostgreSQL, which has a standby. The
//! drill also stops replicas for a while, cuts their links, and restarts and replaces the server.
//! Rolling restarts stop the replicas one after the other; with `--before` the first one is an
//! upgrade. Meanwhile an operator makes keys and takes them away.

use super::commands::{build, test, tests_of_the_product};
use anyhow::Result;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The extent of a run with one program.
#[derive(clap::Args, Serialize)]
pub(crate) struct Load {
    /// Writes that are answered before the clients pause
    #[arg(long, default_value_t = 10_000)]
    tasks: u64,
    /// Writes in the round with two platforms
    #[arg(long, default_value_t = 2_000)]
    writes: u64,
    /// Minimum number of kills in each of the two rounds with kills on one platform
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Seed of the clients' requests, the times of kills, and the faults of the double
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The extent of a run with replicas.
#[derive(clap::Args, Serialize)]
pub(crate) struct ClusterLoad {
    /// Programs on one PostgreSQL
    #[arg(long, default_value_t = 3)]
    replicas: u64,
    /// Writes that are answered before the clients pause
    #[arg(long, default_value_t = 10_000)]
    writes: u64,
    /// Kills of replicas
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// Replicas that stand still for 1 to 60 seconds
    #[arg(long, default_value_t = 30)]
    stops: u64,
    /// Cuts of the links between a replica and the servers
    #[arg(long, default_value_t = 30)]
    cuts: u64,
    /// Immediate restarts of the server
    #[arg(long, default_value_t = 10)]
    restarts: u64,
    /// Failovers to the standby
    #[arg(long, default_value_t = 5)]
    failovers: u64,
    /// Rolling restarts: each replica is stopped as planned and started again, one after the other
    #[arg(long, default_value_t = 3)]
    rolls: u64,
    /// Times of half a minute in which no standby follows
    #[arg(long, default_value_t = 2)]
    gaps: u64,
    /// An earlier build of the program, which replicas have until the first rolling restart
    #[arg(long, value_parser = |path: &str| fs::canonicalize(path))]
    before: Option<PathBuf>,
    /// Ends of the leader after the other faults, in five ways, to measure how long clients get no
    /// answer
    #[arg(long, default_value_t = 15)]
    takeovers: u64,
    /// Seed of the clients' requests, of the faults and their times
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const CLUSTER: &str = "drills::crash::cluster::";

pub(crate) fn run(root: &Path, load: &Load) -> Result<()> {
    crash(root, &["drills::crash::", "--skip", CLUSTER], load)
}

pub(crate) fn run_cluster(root: &Path, load: &ClusterLoad) -> Result<()> {
    crash(root, &[CLUSTER], load)
}

fn crash(root: &Path, tests: &[&str], load: &impl Serialize) -> Result<()> {
    let mut command = tests_of_the_product(tests);
    command.env("PROGRAM", build(root)?);
    test(root, command, load, "the records of what happened differ; details are above")
}
