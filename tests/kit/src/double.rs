//! The double of ARMCloud as a process: its switches, its state, and the configuration for its
//! account.

use crate::http::{HttpAnswer, get, send};
use crate::process::Process;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tokio::process::Command;

#[derive(Debug)]
pub struct DoubleProcess {
    _process: Process,
    pub greeting: Value,
    pub url: String,
    control: String,
}

impl DoubleProcess {
    pub async fn start(program: &Path, flags: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(flags);
        let mut process = Process::start(command)?;
        let greeting = process.greeting().await?;
        let [url, control] = ["url", "control"].map(|name| greeting[name].as_str().map(str::to_owned));
        let (url, control) = (url.context("no URL")?, control.context("no control")?);
        Ok(Self { _process: process, greeting, url, control })
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        get(&format!("{}/{path}", self.control)).await?.json()
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<HttpAnswer> {
        send("PUT", &format!("{}/{path}", self.control), &body.to_string()).await
    }

    pub async fn post(&self, path: &str) -> Result<Value> {
        send("POST", &format!("{}/{path}", self.control), "").await?.json()
    }

    /// Turns off all switches that are not given. `None` is the platform.
    pub async fn switch(&self, pad: Option<&str>, switches: &Value) -> Result<()> {
        let path = pad.map_or_else(|| "switches".to_owned(), |code| format!("pads/{code}/switches"));
        let HttpAnswer { status, body, .. } = self.put(&path, switches).await?;
        ensure!(status == 200, "{switches}: status {status}: {body}");
        Ok(())
    }

    pub async fn codes(&self) -> Result<Vec<String>> {
        let state = self.get("state").await?;
        let codes = state["pads"].as_array().context("pads")?.iter().map(|pad| pad["pad_code"].as_str());
        codes.map(|code| Ok(code.context("pad_code")?.to_owned())).collect()
    }

    pub async fn journal(&self) -> Result<Vec<Value>> {
        Ok(self.get("journal").await?["entries"].as_array().context("entries")?.clone())
    }

    /// Writes the credentials into files of a folder.
    pub fn table(&self, name: &str, folder: &Path) -> Result<String> {
        let mut table = format!("[platform.{name}]\nkind = \"armcloud\"\nbase-url = \"{}\"\n", self.url);
        table.push_str("prefix = \"/vcpcloud/api/padApi\"\nsigning = \"v2\"\npower-seconds = 10\nproxy-seconds = 5\n");
        for key in ["access", "secret"] {
            let file = format!("{name}.{key}");
            let text = self.greeting[format!("{key}_key")].as_str().context("a key")?;
            let options = File::options().create(true).truncate(true).write(true).mode(0o600).open(folder.join(&file));
            options?.write_all(text.as_bytes())?;
            table.push_str(&format!("{key}-key-file = \"{file}\"\n"));
        }
        Ok(table)
    }
}
