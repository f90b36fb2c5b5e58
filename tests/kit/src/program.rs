//! A service as a running process: its start, its address, its metrics.

use crate::http::{HttpAnswer, get};
use crate::mcp::{self, KeyPair};
use crate::operator::ProgramOperator;
use crate::process::{Process, unignore_signals};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Command;

/// The home folder has the data in `data`, and the log in `log`.
#[derive(Debug)]
pub struct Start {
    program: PathBuf,
    home: PathBuf,
    through: Vec<String>,
    flags: Vec<String>,
    log: Option<Stdio>,
}

impl Start {
    pub fn new(program: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), home: home.into(), through: Vec::new(), flags: Vec::new(), log: None }
    }

    /// Adds flags. Without `--listen` the service gets a free port.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(ToString::to_string));
        self
    }

    /// Runs a command that replaces itself by the program and its flags, which are its arguments.
    #[must_use]
    pub fn through(mut self, command: &[&str]) -> Self {
        self.through.extend(command.iter().map(ToString::to_string));
        self
    }

    #[must_use]
    pub fn after(self, line: &str) -> Self {
        self.through(&["sh", "-c", &format!(r#"{line} && exec "$0" "$@""#)])
    }

    #[must_use]
    pub fn log(self, log: impl Into<Stdio>) -> Self {
        Self { log: Some(log.into()), ..self }
    }

    pub async fn ready(self) -> Result<Instance> {
        let (log, operator) = (self.home.join("log"), self.operator());
        let started = Instance::ready(self.spawn()?, operator).await;
        started.with_context(|| fs::read_to_string(&log).unwrap_or_default())
    }

    pub fn spawn(self) -> Result<Process> {
        let mut command = self.command()?;
        command.arg("--json");
        Process::start(command)
    }

    pub fn command(self) -> Result<Command> {
        unignore_signals()?;
        let data = self.operator().data;
        let Self { program, home, through, flags, log } = self;
        let mut words = through.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().context("a program")?);
        command.args(words).arg("--data").arg(data);
        if !flags.iter().any(|flag| flag == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let file = || File::options().create(true).append(true).open(home.join("log"));
        command.args(flags).stderr(log.map_or_else(|| file().map(Stdio::from), Ok)?);
        Ok(command)
    }

    fn operator(&self) -> ProgramOperator {
        ProgramOperator { program: self.program.clone(), data: self.home.join("data") }
    }
}

#[derive(Debug)]
pub struct Instance {
    process: Process,
    pub operator: ProgramOperator,
    pub url: String,
    pub address: SocketAddr,
    /// The base URL of `/healthz`, `/readyz` and `/metrics`.
    pub monitor: Option<String>,
    pub keys: Vec<KeyPair>,
}

impl Deref for Instance {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Instance {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Instance {
    pub async fn ready(mut process: Process, operator: ProgramOperator) -> Result<Self> {
        let told = process.greeting().await?;
        let keys = told["keys"].as_array().context("no keys")?.iter().map(KeyPair::read).collect::<Result<_>>()?;
        let text = |name: &str| told[name].as_str().map(str::to_owned);
        let (url, monitor) = (text("url").context("no URL")?, text("monitor"));
        let address = text("listens").context("no address")?.parse()?;
        Ok(Self { process, operator, url, address, monitor, keys })
    }

    /// Returns a failure of the tool as the inner error.
    pub async fn call(&self, tool: &str, arguments: &Value) -> Result<Result<Value, Value>> {
        mcp::call(self.address, self.keys.first().context("no key")?, tool, arguments).await
    }

    pub async fn watch(&self, path: &str) -> Result<HttpAnswer> {
        get(&format!("{}{path}", self.monitor.as_deref().context("it has no monitor")?)).await
    }

    /// Returns `None` if there is no sample. `name` excludes the program's prefix and includes
    /// labels.
    pub async fn metric(&self, name: &str) -> Result<Option<u64>> {
        Ok(sample(&self.watch("/metrics").await?.body, name))
    }

    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.operator.data.with_file_name("log"))?)
    }
}

fn sample(page: &str, name: &str) -> Option<u64> {
    let samples = page.lines().filter_map(|line| line.split_once('_')?.1.rsplit_once(' '));
    samples.filter(|(known, _)| *known == name).find_map(|(_, value)| value.parse().ok())
}
