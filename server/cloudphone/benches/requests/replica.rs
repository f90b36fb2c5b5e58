//! A service that several processes can run, and whose executor answers at once: the contract of
//! the product with simulated phones. This program is that service if a variable asks for it.

use crate::server::{Server, serve as serve_with};
use anyhow::Result;
use clap::Args;
use cloudphone::phones::contract::Contract;
use cloudphone::phones::devices::Phones;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use cloudphone::platforms::simulator::Sim;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};
use toolwarrant::{BoxFuture, Service, Setup};

const VARIABLE: &str = "BENCH_SERVES";

/// The number of phones. Half of them are plain, and each gets one write.
pub(crate) const DEVICES: u32 = 1_000_000;

/// The time that a restart takes. It is the same for all, so restarts end at the rate at which they
/// began.
pub(crate) const RESTART: Duration = Duration::from_secs(12);

#[derive(Clone, Debug, Args)]
struct BenchFlags {
    #[arg(long, default_value_t = DEVICES)]
    sim_devices: u32,
}

struct Immediate;

/// Returns true if this process is to be the service.
pub(crate) fn is_asked() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Starts the service as another process.
pub(crate) fn start(data: &Path, flags: &[&str]) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(VARIABLE, "");
    let mut command = serve_with(command, data, DEVICES);
    command.args(flags);
    Server::start(command, b"")
}

/// Carries out the command line of this process.
pub(crate) fn serve() -> ExitCode {
    cloudphone::program::<BenchFlags>().run(|Setup { flags, clock, .. }| {
        let sim = Arc::new(Sim::new(1, flags.sim_devices, clock.clone(), &[0; 32]));
        let phones = Phones::new(sim, ProxyHosts::Public, clock);
        Ok(Service::new(Contract(Arc::new(phones))).executor(Arc::new(Immediate)))
    })
}

impl Executor for Immediate {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Ok(String::new()) })
    }

    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            if let Err(why) = leave.confirm().await {
                return Sent::NotSent(why);
            }
            if write.arguments.expose().contains("restart") {
                sleep(RESTART).await;
            }
            Sent::Ok
        })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async { Reading { verdict: Verdict::Present, expected: "it".into(), observed: "it".into() } })
    }
}
