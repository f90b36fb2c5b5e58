//! `cargo xtask drill flood`: the answers that other applications get before, during and after
//! floods under `/v1`; Linux.

use super::ignored::{test, tests_of_the_product};
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// The extent of each flood, in seconds.
#[derive(clap::Args)]
pub(crate) struct Flood {
    /// Seconds before the flood
    #[arg(long, default_value_t = 10)]
    before: u64,
    /// Seconds of the flood
    #[arg(long, default_value_t = 45)]
    during: u64,
    /// Seconds after the flood
    #[arg(long, default_value_t = 60)]
    after: u64,
}

/// Runs the floods, and prints a table for each.
pub(crate) fn run(root: &Path, Flood { before, during, after }: &Flood) -> Result<()> {
    let options = json!({"before": before, "during": during, "after": after});
    let failure = "a flood made the server refuse another application, or took too much; details are above";
    test(root, "flood", tests_of_the_product("drills::flood::"), &options, failure)
}
