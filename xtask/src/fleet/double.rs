//! The double of a platform as a program, and what is switched on it and read of it.

use crate::serving::exchange;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running double. Dropping it ends it.
pub(super) struct Double {
    child: Child,
    /// Kept, so that what it prints has a reader.
    _out: BufReader<ChildStdout>,
    url: String,
    control: SocketAddr,
    keys: [(&'static str, String); 2],
}

impl Double {
    /// Starts a double with so many pads.
    pub(super) fn start(program: &Path, pads: u32, switches: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["--pads", &pads.to_string()]).args(switches.iter().flat_map(|switch| ["--set", switch]));
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("its output")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line).context("the double does not say where it is")?;
        let text = |name: &str| told[name].as_str().map(str::to_owned).with_context(|| format!("{name} in {told}"));
        let control = text("control")?;
        let control = control.trim_start_matches("http://").trim_end_matches("/double").parse()?;
        let keys = [("access-key-file", text("access_key")?), ("secret-key-file", text("secret_key")?)];
        Ok(Self { child, _out: out, url: text("url")?, control, keys })
    }

    /// The table of the configuration for its account, with the limits that are usual; its credentials are written beside.
    pub(super) fn table(&self, name: &str, folder: &Path) -> Result<String> {
        let mut table = format!("[platform.{name}]\nkind = \"armcloud\"\nbase-url = \"{}\"\n", self.url);
        table.push_str("prefix = \"/vcpcloud/api/padApi\"\nsigning = \"v2\"\npower-seconds = 10\nproxy-seconds = 5\n");
        for (key, text) in &self.keys {
            let file = format!("{name}.{key}");
            let options = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).clone();
            std::io::Write::write_all(&mut options.open(folder.join(&file))?, text.as_bytes())?;
            table.push_str(&format!("{key} = \"{file}\"\n"));
        }
        Ok(table)
    }

    /// Sets the switches of the platform; all others are off.
    pub(super) async fn switch(&self, switches: &Value) -> Result<()> {
        let body = switches.to_string();
        let head = format!("PUT /double/switches HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
        exchange(self.control, &format!("{head}connection: close\r\n\r\n{body}")).await.map(drop)
    }

    /// The codes of all ordinary pads, in lower case as ids have them.
    pub(super) async fn codes(&self) -> Result<Vec<String>> {
        let state = self.get("state").await?;
        let pads = state["pads"].as_array().context("pads")?.iter().filter(|pad| pad["kind"] == "ordinary");
        let code = |pad: &Value| pad["pad_code"].as_str().map(str::to_ascii_lowercase).context("pad_code");
        pads.map(code).collect()
    }

    /// How many lines its journal has.
    pub(super) async fn lines(&self) -> Result<u64> {
        self.get(&format!("journal?after={}", u32::MAX)).await?["last"].as_u64().context("last")
    }

    /// The endpoints that were called since the journal had so many lines, each with how often.
    pub(super) async fn called(&self, after: u64) -> Result<Value> {
        let journal = self.get(&format!("journal?after={after}")).await?;
        let mut called = json!({});
        for line in journal["entries"].as_array().context("entries")? {
            if line["kind"] == "request" {
                let name = line["endpoint"].as_str().or(line["path"].as_str()).unwrap_or("?");
                called[name] = json!(called[name].as_u64().unwrap_or(0) + 1);
            }
        }
        Ok(called)
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let ask = format!("GET /double/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        Ok(serde_json::from_str(&exchange(self.control, &ask).await?)?)
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
