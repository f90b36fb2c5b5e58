//! The commands of an operator on one data folder, with or without a running server.

use crate::mcp::KeyPair;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tokio::process::Command;

#[derive(Clone, Debug)]
pub struct ProgramOperator {
    pub program: PathBuf,
    pub data: PathBuf,
}

impl ProgramOperator {
    /// Returns the exit code, and standard output followed by standard error.
    pub async fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<(i32, String)> {
        let (code, out, err) = self.output(words).await?;
        Ok((code, out + &err))
    }

    /// Expects the exit code, and this part of what is printed. Returns all of it.
    pub async fn says(&self, line: &str, code: i32, part: &str) -> Result<String> {
        let (found, said) = self.run(line.split(' ')).await?;
        ensure!(found == code && said.contains(part), "{line}: expected exit code {code} and {part:?}: {found} {said}");
        Ok(said)
    }

    pub async fn json(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Value> {
        let words: Vec<_> = words.into_iter().collect();
        let (code, out, err) = self.output(words.iter().map(AsRef::as_ref).chain([OsStr::new("--json")])).await?;
        let line = || words.iter().map(|word| word.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
        ensure!(code == 0, "{}: exit code {code}: {out}{err}", line());
        serde_json::from_str(&out).with_context(|| format!("{}: {out}", line()))
    }

    /// Expects on standard output what programs rely on, if `--json` is given.
    async fn output(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<(i32, String, String)> {
        let mut command = Command::new(&self.program);
        let output = command.args(words).arg("--data").arg(&self.data).kill_on_drop(true).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        let code = output.status.code().context("it was ended by a signal")?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        if command.as_std().get_args().any(|word| word == "--json") {
            let said = serde_json::from_str(&out);
            let said = said.with_context(|| format!("{command:?} printed no JSON document alone: {out}{err}"))?;
            ensure!(code == 0 || explains(&said), "{command:?}: exit code {code} without its reason: {out}");
        }
        Ok((code, out, err))
    }

    /// Writes the files of an installation. Returns their text, without that of the completions.
    pub async fn files(&self, folder: &Path) -> Result<String> {
        let (code, said) = self.run([OsStr::new("files"), folder.as_os_str()]).await?;
        ensure!(code == 0, "{said}");
        let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        let text = |path: &PathBuf| Ok(format!("=== {}\n{}", path.display(), fs::read_to_string(path)?));
        let texts = paths.iter().filter(|path| path.is_file()).map(text).collect::<Result<Vec<_>>>()?;
        Ok(texts.join("\n").replace(&format!("{}/", folder.display()), ""))
    }

    pub async fn key(&self, application: &str) -> Result<KeyPair> {
        KeyPair::read(&self.json(["key", "create", application]).await?)
    }
}

/// Looks for the reason of an exit code other than 0, in a failure or in the findings of a check.
fn explains(said: &Value) -> bool {
    let error = &said["error"];
    let is_failure = error["code"].is_string() && error["message"].is_string() && error["retryable"].is_boolean();
    is_failure || said["healthy"] == false || said["sound"] == false || said["would_do"].is_array()
}
