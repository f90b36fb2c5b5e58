//! `cargo xtask drill authority`: what replicas on one PostgreSQL allow together, on real processes
//! under load. The drill revokes keys while a replica stands still or is cut off. It replays signed
//! requests at other replicas and across restarts of the server. It calls far beyond a budget while
//! replicas are killed and the server fails over. Then it shows what clients, `/readyz` and
//! `doctor` say while a failover takes some time.

use super::ignored::{build, test, tests_of_the_product};
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// The extent of a run; 0 leaves a part out.
#[derive(clap::Args)]
pub(crate) struct Claims {
    /// Replicas
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..))]
    replicas: u64,
    /// Revocations, half of them while a replica stands still or is cut off
    #[arg(long, default_value_t = 1_000)]
    revocations: u64,
    /// Replays of signed requests
    #[arg(long, default_value_t = 10_000)]
    replays: u64,
    /// Calls of an application that may make 300 a minute
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    /// Seconds of the failover at the end
    #[arg(long, default_value_t = 30)]
    failover: u64,
    /// Seed of the times of revocations and faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs all parts, and prints the figures of each.
pub(crate) fn run(
    root: &Path,
    Claims { replicas, revocations, replays, calls, failover, seed }: &Claims,
) -> Result<()> {
    let mut command = tests_of_the_product("drills::crash::authority::");
    command.env("PROGRAM", build(root)?);
    let options = json!({"replicas": replicas, "revocations": revocations, "replays": replays, "calls": calls,
                         "failover": failover, "seed": seed});
    test(root, "authority", command, &options, "replicas allowed what they must not; details are above")
}
