//! `cargo xtask drill crash`: kills and stops the optimised program repeatedly under load, and then
//! audits its data. One round takes backups meanwhile, and restores and checks each of them. In
//! another, half of the writes go to pads of the double of ARMCloud, which resets connections and
//! loses answers; the audit then also reads the double's journal.
//!
//! With `--replicas`, several programs share one PostgreSQL, which has a standby. The drill also
//! stops replicas for a while, cuts their links, and restarts and replaces the server. Rolling
//! restarts stop the replicas one after the other; with `--before` the first one is an upgrade.
//! Meanwhile an operator makes keys and takes them away.

use super::commands::{build, test, tests_of_the_product};
use anyhow::Result;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// Writes that are answered before the clients pause
    #[arg(long, default_value_t = 10_000)]
    tasks: u64,
    /// Writes in the round with two platforms, by default 2,000; with replicas 10,000
    #[arg(long)]
    writes: Option<u64>,
    /// Minimum number of kills in each of the two rounds with kills on one platform, by default
    /// 200; with replicas the number of kills, by default 100
    #[arg(long)]
    kills: Option<u64>,
    /// Seed of the clients' requests, the times of kills, and the faults of the double
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs that many replicas on one PostgreSQL with a standby, in place of the other rounds
    #[arg(long)]
    replicas: Option<u64>,
    #[command(flatten)]
    faults: ClusterFaults,
}

/// The faults of a cluster.
#[derive(clap::Args)]
struct ClusterFaults {
    /// Replicas that stand still for 1 to 60 seconds
    #[arg(long, default_value_t = 30, requires = "replicas")]
    stops: u64,
    /// Cuts of the links between a replica and the servers
    #[arg(long, default_value_t = 30, requires = "replicas")]
    cuts: u64,
    /// Immediate restarts of the server
    #[arg(long, default_value_t = 10, requires = "replicas")]
    restarts: u64,
    /// Failovers to the standby
    #[arg(long, default_value_t = 5, requires = "replicas")]
    failovers: u64,
    /// Rolling restarts: each replica is stopped as planned and started again, one after the other
    #[arg(long, default_value_t = 3, requires = "replicas")]
    rolls: u64,
    /// Times of half a minute in which no standby follows
    #[arg(long, default_value_t = 2, requires = "replicas")]
    gaps: u64,
    /// An earlier build of the program, which replicas have until the first rolling restart
    #[arg(long, requires = "replicas")]
    before: Option<PathBuf>,
    /// Ends of the leader after the other faults, in five ways, to measure how long clients get no
    /// answer
    #[arg(long, default_value_t = 15, requires = "replicas")]
    takeovers: u64,
}

pub(crate) fn run(root: &Path, load: &Load) -> Result<()> {
    let cluster = "drills::crash::cluster::";
    let mut command = tests_of_the_product(if load.replicas.is_some() { cluster } else { "drills::crash::" });
    command.env("PROGRAM", build(root)?);
    let Load { tasks, writes, kills, seed, replicas, faults } = load;
    let options = match replicas {
        Some(replicas) => {
            let (writes, kills) = (writes.unwrap_or(10_000), kills.unwrap_or(100));
            let ClusterFaults { stops, cuts, restarts, failovers, rolls, gaps, before, takeovers } = faults;
            let before = before.as_ref().map(fs::canonicalize).transpose()?;
            json!({"replicas": replicas, "writes": writes, "kills": kills, "stops": stops, "cuts": cuts,
                   "restarts": restarts, "failovers": failovers, "rolls": rolls, "gaps": gaps, "before": before, "takeovers": takeovers, "seed": seed})
        }
        None => {
            command.args(["--skip", cluster]);
            let (writes, kills) = (writes.unwrap_or(2_000), kills.unwrap_or(200));
            json!({"tasks": tasks, "writes": writes, "kills": kills, "seed": seed})
        }
    };
    test(root, "crash", command, &options, "the records of what happened differ; details are above")
}
