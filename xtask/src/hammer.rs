//! `cargo xtask hammer`: requests that nobody should send, and properties of what reads them, for as long as is asked.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// How much.
#[derive(clap::Args)]
pub(crate) struct Blows {
    /// Malformed requests in the process of the test
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Malformed requests over the wire
    #[arg(long, default_value_t = 50_000)]
    wire: u64,
    /// Seconds for each property
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Decides what is sent
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Sends them, and prints a line for each kind.
pub(crate) fn run(root: &Path, Blows { requests, wire, seconds, seed }: Blows) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--locked", "--package", "cloudphone", "--test", "all", "--", "--ignored", "--nocapture"]);
    command.args(["--test-threads", "1", "hammer::"]);
    command.env("REQUESTS", requests.to_string()).env("WIRE", wire.to_string());
    command.env("SECONDS", seconds.to_string()).env("SEED", seed.to_string());
    println!("\n> cargo xtask hammer: {requests} requests, {wire} over the wire, {seconds} s a property, seed {seed}");
    let status = command.current_dir(root).status().context("cannot run cargo")?;
    ensure!(status.success(), "a request made the server fail, or a property does not hold; which is above");
    Ok(())
}
