//! The installed packages of the clients, and the programs that they call, below one folder that
//! git ignores.

use super::findings::Findings;
use crate::python::python;
use crate::{files, node};
use anyhow::{Context, Result};
use driver::{Instance, Start};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;

/// On an idle machine, the longest client takes 20 s.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct Bench {
    pub(super) scripts: PathBuf,
    pub(super) home: PathBuf,
    pub(super) program: PathBuf,
    pub(super) runtime: Runtime,
    pub(super) plan: Value,
}

impl Bench {
    pub(super) fn install_python(&self, major: &str) -> Result<PathBuf> {
        let folder = self.home.join(major);
        python(&self.scripts.join(format!("{major}.txt")), &folder)
            .context("Python 3.11 or later, with venv and pip, and a package index are needed")?;
        files::copy_scripts(&self.scripts, &folder, "py")?;
        Ok(folder)
    }

    /// Returns a Node that can run every package, and the folder where Node resolves the imports of
    /// the scripts.
    pub(super) fn install_node(&self) -> Result<(PathBuf, PathBuf)> {
        let folder = self.home.join("node");
        node::install(&self.scripts, &folder)?;
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x64",
            _ => "arm64",
        };
        let locked = folder.join(format!("node_modules/node-{}-{machine}/bin/node", std::env::consts::OS));
        // Without that Node, the packages need Node.js 22.19 or later.
        Ok((if locked.exists() { locked } else { "node".into() }, folder))
    }

    pub(super) fn server(&self, number: usize) -> Result<Instance> {
        let home = self.home.join(format!("run-{number}"));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
        self.runtime.block_on(Start::new(&self.program, home).flags(&["--demo"]).ready())
    }

    pub(super) fn run(&self, client: &mut Command, pin: Option<&str>, number: usize) -> Result<Findings> {
        let server = self.server(number)?;
        let home = self.home.join(format!("run-{number}"));
        let mut plan = self.plan.clone();
        plan["url"] = server.url.clone().into();
        plan["keys"] = server.keys.iter().map(|key| json!({"id": key.id, "secret": key.secret})).collect();
        plan["revision"] = pin.into();
        // Clients must not write data about a user into the user's own folder.
        client.env("HOME", &home).stderr(File::create(home.join("said"))?);
        let running = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut running = running.with_context(|| format!("cannot run {:?}", client.get_program()))?;
        serde_json::to_writer(running.stdin.take().context("a client has an input")?, &plan)
            .context("the client does not read its input")?;
        let output = running.stdout.take().context("a client has an output")?;
        let named: Vec<_> = client.get_args().map(|word| word.to_string_lossy()).collect();
        let mut findings = Findings::of(named.join(" "));
        let status = thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let waiting = scope.spawn(move || {
                if end.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    let _ = running.kill();
                }
                running.wait()
            });
            for line in BufReader::new(output).lines() {
                findings.read(&line?);
            }
            drop(ended);
            Ok::<_, anyhow::Error>(waiting.join().unwrap_or_else(|_| Err(io::Error::other("nobody waited")))?)
        })?;
        let said = fs::read_to_string(home.join("said")).unwrap_or_default();
        findings.checks.push(("its own end".to_owned(), (!status.success()).then(|| format!("{status}: {said}"))));
        Ok(findings)
    }
}
