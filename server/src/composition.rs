//! Composition: what the product is made of, in one place. The upstream is chosen here.
//!
//! To use another platform, pass an `Arc<dyn Control>` to [`service`] and run it with [`program`]. The program then has every operator
//! command, the doctor and the monitor.

use crate::phones::contract::Contract;
use crate::phones::devices::Phones;
use crate::phones::inventory::Fleet;
use crate::phones::proxy_hosts::ProxyHosts;
use crate::phones::upstream::Control;
use crate::phones::upstream::sim::Sim;
use crate::phones::writes::Writes;
use anyhow::{Context, Result};
use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use toolwarrant::{Check, Clock, DataFolder, Flags, KeyPrefixes, Names, Program, Random, Service, Setup};

/// Flags that the product has whoever runs the phones.
#[derive(Clone, Copy, Debug, Args)]
pub struct OwnFlags {
    /// Whether phones may be told to use a proxy in a private network; simulated phones have none to protect
    #[arg(long, value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub allow_private_proxy: bool,
}

/// Flags of the simulated phones.
#[derive(Clone, Copy, Debug, Args)]
pub struct Simulated {
    #[command(flatten)]
    own: OwnFlags,

    /// Number of simulated phones
    #[arg(long, value_name = "N", default_value = "24", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    sim_devices: u32,

    /// Seed of the simulated phones: the same seed gives the same fleet
    #[arg(long, value_name = "N", default_value = "1")]
    sim_seed: u64,
}

/// What was really done on the simulated phones, in the data folder.
const JOURNAL: &str = "simulated.jsonl";

/// The program, whoever runs the phones; `F` are flags beside those that every service has.
#[must_use]
pub fn program<F: Flags>() -> Program<F> {
    let names = Names {
        keys: KeyPrefixes { id: "cpk_", secret: "cps_" },
        ..Names::of("cloudphone", env!("CARGO_PKG_VERSION"))
    };
    Program::named(names, "Serves cloud phones to AI agents over the Model Context Protocol.")
        .demo("demo", &["device", "stream"])
        .demo("demo-read", &["device_read"])
        .try_first("list_devices", json!({"limit": 3}))
}

/// A service of the phones that `control` runs.
#[must_use]
pub fn service(control: Arc<dyn Control>, own: OwnFlags, clock: Clock) -> Service<Contract<Phones>> {
    let proxy_hosts = if own.allow_private_proxy { ProxyHosts::PublicAndPrivate } else { ProxyHosts::Public };
    let phones = Phones::new(control.clone(), proxy_hosts, clock);
    let writes = Writes::new(control.clone(), phones.views());
    Service::new(Contract(Arc::new(phones))).executor(Arc::new(writes)).inventory(Arc::new(Fleet(control)))
}

/// Runs the program with simulated phones.
#[must_use]
pub fn simulated() -> ExitCode {
    program::<Simulated>()
        .usage(
            "Without a command it serves 24 simulated phones on http://127.0.0.1:8080/mcp; its first start prints two keys to try \
             it with. The other commands are for the operator, and work whether a server runs or not.",
        )
        .hint(
            "Then try set_proxy: on phone-0000001 it ends as success, on phone-0000013 as failed_silent, refunded, on\n\
             phone-0000020 as timeout, on phone-0000023 as failed. `cloudphone task list` shows how each went.\n\n",
        )
        .check(Check {
            name: "simulated phones",
            holds: "what was done on them can be told again at the next start",
            remedy: "restore simulated.jsonl from a backup, or remove it: the phones are then as they were before all commands",
            look: |folder| examine(&folder.join(JOURNAL)),
        })
        .run(|Setup { flags, config: _, folder, clock, random }| {
            let sim = simulation(flags, folder, clock.clone(), &random)?;
            Ok(service(sim, flags.own, clock).serves(format!("{} simulated phones", flags.sim_devices)))
        })
}

fn simulation(flags: Simulated, folder: &DataFolder, clock: Clock, random: &Random) -> Result<Arc<Sim>> {
    let sim = Sim::new(flags.sim_seed, flags.sim_devices, clock, &random.bytes()?);
    Ok(Arc::new(sim.journaled(&folder.join(JOURNAL)).context("cannot simulate phones")?))
}

fn examine(journal: &Path) -> Result<Vec<String>, String> {
    Sim::examine(journal).map(|()| Vec::new()).map_err(|error| error.to_string())
}
