//! Reads from doubles: their pads, and the number of calls to them.

use anyhow::{Context, Result};
use driver::DoubleProcess;
use serde_json::{Value, json};
use std::path::Path;

/// Starts a double with this number of pads.
pub(super) async fn start(program: &Path, pads: u32, switches: &[&str]) -> Result<DoubleProcess> {
    let pads = pads.to_string();
    let switches = switches.iter().flat_map(|switch| ["--set", switch]);
    DoubleProcess::start(program, &["--pads", &pads].into_iter().chain(switches).collect::<Vec<_>>()).await
}

/// Returns the codes of all ordinary pads, in lower case as in ids.
pub(super) async fn codes(double: &DoubleProcess) -> Result<Vec<String>> {
    let state = double.get("state").await?;
    let pads = state["pads"].as_array().context("pads")?.iter().filter(|pad| pad["kind"] == "ordinary");
    let code = |pad: &Value| pad["pad_code"].as_str().map(str::to_ascii_lowercase).context("pad_code");
    pads.map(code).collect()
}

/// Returns the number of lines in the journal.
pub(super) async fn lines(double: &DoubleProcess) -> Result<u64> {
    double.get(&format!("journal?after={}", u32::MAX)).await?["last"].as_u64().context("last")
}

/// Returns the endpoints that were called after line `after` of the journal, each with the number
/// of calls.
pub(super) async fn endpoint_calls(double: &DoubleProcess, after: u64) -> Result<Value> {
    let mut called = json!({});
    for line in double.journal(after).await?.iter().filter(|line| line["kind"] == "request") {
        let name = line["endpoint"].as_str().or(line["path"].as_str()).unwrap_or("?");
        called[name] = json!(called[name].as_u64().unwrap_or(0) + 1);
    }
    Ok(called)
}
