//! A service that several processes can run: the product's contract with simulated phones, and an
//! executor that answers at once. A variable makes this program that service.

use crate::server::{Server, serve as serve_with};
use anyhow::Result;
use clap::Args;
use cloudphone::phones::contract::Contract;
use cloudphone::phones::devices::Phones;
use cloudphone::phones::platforms::Platforms;
use cloudphone::phones::port::PlatformName;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use cloudphone::platforms::simulator::Sim;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};
use toolwarrant::{BoxFuture, Service, Setup};

const VARIABLE: &str = "BENCH_SERVES";

/// Half of them are plain, and each gets one write.
pub(crate) const DEVICES: u32 = 1_000_000;

#[derive(Clone, Debug, Args)]
struct BenchFlags {
    #[arg(long, default_value_t = DEVICES)]
    sim_devices: u32,
}

struct Immediate;

pub(crate) fn is_asked() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

pub(crate) fn start(data: &Path, flags: &[&str]) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(VARIABLE, "");
    let mut command = serve_with(command, data, DEVICES);
    command.args(flags);
    Server::start(command, b"")
}

pub(crate) fn serve() -> ExitCode {
    cloudphone::program::<BenchFlags>().run(|Setup { flags, clock, .. }| {
        let sim = Arc::new(Sim::new(1, flags.sim_devices, clock.clone(), &[0; 32]));
        let platforms = Arc::new(Platforms::default().with(PlatformName::parse("phone")?, sim));
        let phones = Phones::new(Arc::clone(&platforms), ProxyHosts::Public, clock);
        Ok(Service::with_executor(Contract(Arc::new(phones)), Arc::new(Immediate)).inventory(platforms))
    })
}

impl Executor for Immediate {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Ok(String::new()) })
    }

    fn send<'a>(&'a self, _: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            if let Err(why) = leave.confirm() {
                return Sent::NotSent(why);
            }
            Sent::Ok
        })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async { Reading { verdict: Verdict::Present, expected: "it".into(), observed: "it".into() } })
    }
}
