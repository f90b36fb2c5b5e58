//! `cargo xtask drill hammer`: malformed requests, and property tests of the code that reads them.

use super::ignored::{test, tests_of_the_product};
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Blows {
    /// Malformed requests within the test process
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Malformed requests over the wire
    #[arg(long, default_value_t = 50_000)]
    wire: u64,
    /// Seconds for each property
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(root: &Path, Blows { requests, wire, seconds, seed }: &Blows) -> Result<()> {
    let options = json!({"requests": requests, "wire": wire, "seconds": seconds, "seed": seed});
    let failure = "a request made the server fail, or a property does not hold; details are above";
    test(root, "hammer", tests_of_the_product("drills::hammer::"), &options, failure)
}
