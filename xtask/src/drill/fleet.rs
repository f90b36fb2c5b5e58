//! `cargo xtask drill fleet`: the program with doubles of a platform with many pads. It measures
//! the cost of such a platform at rest and under many lists ([`rest`]), and the effect of a stalled
//! platform on the phones and the clients of another one ([`stall`]). It also measures the effect
//! of silent phones behind an adb server on the others there ([`silent`]); Linux.
//!
//! The verb fails only if a limit is missed by far, because measurements on a busy machine vary.
//! Start at [`run`].

mod double;
mod rest;
mod rig;
mod silent;
mod stall;

use crate::serving;
use anyhow::{Result, ensure};
use rig::Rig;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Fleet {
    /// Number of pads of the platform
    #[arg(long, default_value_t = 10_000)]
    pads: u32,
    /// Duration of the stall in seconds
    #[arg(long, default_value_t = 60)]
    stall_seconds: u64,
    /// Duration of each other measurement in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Skip a part; can be repeated
    #[arg(long, value_name = "PART")]
    without: Vec<Part>,
    /// Use this program in place of a new optimised build
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Use this double in place of a new optimised build
    #[arg(long, value_name = "FILE")]
    double: Option<PathBuf>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Rest,
    Stall,
    Silent,
}

/// Runs the measurements, and prints the results.
pub(crate) fn run(root: &Path, fleet: &Fleet) -> Result<()> {
    let rig = Rig {
        program: serving::program(root, fleet.program.as_deref(), "cloudphone")?,
        double: serving::program(root, fleet.double.as_deref(), "armcloud-double")?,
        home: root.join("target/fleet"),
        pads: fleet.pads,
        seconds: Duration::from_secs(fleet.seconds),
        stall: Duration::from_secs(fleet.stall_seconds),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut faults = Vec::new();
    if !fleet.without.contains(&Part::Rest) {
        faults.extend(runtime.block_on(rest::measure(&rig))?);
    }
    if !fleet.without.contains(&Part::Stall) {
        faults.extend(runtime.block_on(stall::measure(&rig))?);
    }
    if !fleet.without.contains(&Part::Silent) {
        faults.extend(runtime.block_on(silent::measure(&rig))?);
    }
    let _ = fs::remove_dir_all(&rig.home);
    ensure!(faults.is_empty(), "promises about platforms were broken:\n{}", faults.join("\n"));
    println!("\nno limit was missed by far, and no promise was broken");
    Ok(())
}
