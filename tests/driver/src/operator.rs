//! The commands of an operator on one data folder, with or without a running server.

use crate::mcp::KeyPair;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::PathBuf;
use tokio::process::Command;

/// The commands of a program on one data folder.
#[derive(Clone, Debug)]
pub struct ProgramOperator {
    /// The program.
    pub program: PathBuf,
    /// The data folder.
    pub data: PathBuf,
}

impl ProgramOperator {
    /// Runs a command. Returns the exit code, and its whole output: standard output, then standard
    /// error.
    pub async fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<(i32, String)> {
        let mut command = Command::new(&self.program);
        let output = command.args(words).arg("--data").arg(&self.data).kill_on_drop(true).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        let text = String::from_utf8([output.stdout, output.stderr].concat())?;
        Ok((output.status.code().context("it was ended by a signal")?, text))
    }

    /// Runs a command with `--json`. Returns its output.
    pub async fn json(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Value> {
        let words: Vec<_> = words.into_iter().collect();
        let (code, text) = self.run(words.iter().map(AsRef::as_ref).chain([OsStr::new("--json")])).await?;
        let line = || words.iter().map(|word| word.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
        ensure!(code == 0, "{}: exit code {code}: {text}", line());
        serde_json::from_str(&text).with_context(|| format!("{}: {text}", line()))
    }

    /// Makes a key of an application.
    pub async fn key(&self, application: &str) -> Result<KeyPair> {
        KeyPair::read(&self.json(["key", "create", application]).await?)
    }
}
