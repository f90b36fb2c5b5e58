//! Processes that serve: how one is started, and what the system says of it. Sends no request.

use crate::cores;
use anyhow::{Context, Result};
use driver::Process;
use std::io::{Seek, Write};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// A process that serves. It ends with this value.
pub(crate) struct Server {
    process: Process,
    /// Where it serves.
    pub(crate) address: SocketAddr,
    /// Time from its start until it served.
    pub(crate) ready_after: Duration,
    /// Has read what the process said.
    _runtime: Runtime,
}

impl Deref for Server {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Server {
    /// Starts a process that reads `input` and, once it serves, prints as JSON where it listens.
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

    /// Starts the program on the core of the servers.
    pub(crate) fn program(data: &Path, devices: u32) -> Result<Self> {
        Self::start(serve(cores::serving(PROGRAM), data, devices), b"")
    }

    /// Its resident memory, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        Ok(self.process.memory("VmRSS")? * 1024)
    }
}

/// The program that is measured.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cloudphone");

/// Adds to a command that runs the program what it serves: so many simulated devices, on as many connections as are opened here.
pub(crate) fn serve(mut command: Command, data: &Path, devices: u32) -> Command {
    command.arg("--data").arg(data).args(["serve", "--json", "--listen", "127.0.0.1:0"]);
    // Profilers may look into it.
    command.args(["--allow-core-dumps", "--sim-devices", &devices.to_string()]);
    command.args(["--max-connections", "15000", "--max-connections-per-address", "15000"]);
    command
}
