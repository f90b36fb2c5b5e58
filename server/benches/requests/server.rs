//! Processes that serve: how one is started and ended, and what the system says of it. Sends no request.

use crate::cores;
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that serves. It ends with this value.
pub(crate) struct Server {
    child: Child,
    /// Kept, so that what it prints has a reader.
    _out: BufReader<ChildStdout>,
    /// Where it serves: `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// Time from its start until it served.
    pub(crate) ready_after: Duration,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a process that reads `input` and, once it serves, writes a line that ends in `http://ADDRESS/mcp`.
    pub(crate) fn start(command: &mut Command, input: &[u8]) -> Result<Self> {
        let begun = Instant::now();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot run {command:?}"))?;
        child.stdin.take().context("an input")?.write_all(input)?;
        let out = BufReader::new(child.stdout.take().context("an output")?);
        let mut server = Self { child, _out: out, address: String::new(), ready_after: Duration::ZERO };
        let mut lines = (&mut server._out).lines();
        let line =
            lines.find_map(|line| line.ok().filter(|line| line.ends_with("/mcp"))).context("it did not start")?;
        let (_, address) = line.trim_end_matches("/mcp").rsplit_once("http://").context("its URL")?;
        (server.address, server.ready_after) = (address.to_owned(), begun.elapsed());
        Ok(server)
    }

    /// Starts the program on the core of the servers.
    pub(crate) fn program(data: &Path, devices: u32) -> Result<Self> {
        Self::start(&mut serve(cores::serving(PROGRAM), data, devices), b"")
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The CPU time of all its threads so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id()))? {
            // A thread may end meanwhile.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            nanos += text.split(' ').next().context("a figure")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Its resident memory, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("its memory")?;
        Ok(line.split_whitespace().next().context("a figure")?.parse::<u64>()? * 1024)
    }
}

/// The program that is measured.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cloudphone");

/// Adds to a command that runs the program what it serves: so many simulated devices, on as many connections as are opened here.
pub(crate) fn serve(mut command: Command, data: &Path, devices: u32) -> Command {
    command.arg("--data").arg(data).args(["serve", "--listen", "127.0.0.1:0"]);
    // Profilers may look into it.
    command.args(["--allow-core-dumps", "--sim-devices", &devices.to_string()]);
    command.args(["--max-connections", "15000", "--max-connections-per-address", "15000"]);
    command
}
