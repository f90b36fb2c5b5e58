//! `cargo xtask drill endurance`: a replica under an even load for a long time, as a section of the
//! bench of the product.

use super::ignored::test;
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Endurance {
    /// Minutes of load; a transaction is open in the middle third of them, for 10 minutes at most
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(6..))]
    minutes: u64,
}

pub(crate) fn run(root: &Path, Endurance { minutes }: &Endurance) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["bench", "--quiet", "--locked", "--package", "cloudphone", "--bench", "requests", "--", "endurance"]);
    test(root, "endurance", command, &json!({"minutes": minutes}), "a limit was missed; details are above")
}
