//! Server processes, and their CPU time and memory.

use crate::cores;
use crate::wire::PATIENCE;
use anyhow::{Context, Result, ensure};
use kit::Process;
use std::io::{Seek, Write};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

pub(crate) struct Server {
    process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) ready_after: Duration,
    _runtime: Runtime,
}

impl Deref for Server {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Server {
    pub(crate) fn start(mut command: Command, input: &[u8]) -> Result<Self> {
        let mut file = tempfile::tempfile()?;
        file.write_all(input)?;
        file.rewind()?;
        command.stdin(file);
        let (runtime, begun) = (Builder::new_current_thread().enable_all().build()?, Instant::now());
        let (process, greeting) = runtime.block_on(async {
            let mut process = Process::start(command)?;
            let greeting = process.greeting().await?;
            anyhow::Ok((process, greeting))
        })?;
        let ready_after = begun.elapsed();
        let address = greeting["listens"].as_str().context("its address")?.parse()?;
        Ok(Self { process, address, ready_after, _runtime: runtime })
    }

    pub(crate) fn program(data: &Path, devices: u32) -> Result<Self> {
        Self::start(serve(cores::command_for_server(PROGRAM), data, devices), b"")
    }

    pub(crate) fn rest(&self) -> Result<()> {
        let (begun, mut before) = (Instant::now(), self.cpu()?);
        loop {
            sleep(Duration::from_millis(250));
            let now = self.cpu()?;
            if now - before < Duration::from_millis(10) {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "it does not come to rest");
            before = now;
        }
    }
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cloudphone");

/// Allows more connections than a bench opens.
pub(crate) fn serve(mut command: Command, data: &Path, devices: u32) -> Command {
    command.arg("--data").arg(data).args(["serve", "--json", "--listen", "127.0.0.1:0"]);
    // Profilers may inspect it.
    command.args(["--allow-core-dumps", "--sim-devices", &devices.to_string()]);
    command.args(["--max-connections", "15000", "--max-connections-per-address", "15000"]);
    command
}
