//! `contract verify`: compares the contract of a running server with a record of it, in the CI of
//! those who depend on the server. It needs no key and no data folder. If nothing was compared,
//! that is a failure.

use clap::Args;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toolwarrant_common::{escape_json, escape_line};
use toolwarrant_gate::{ContractChange, Severity, change_json, compare, digest, read_record};
use toolwarrant_outbound::{HttpClient, HttpLimits};
use toolwarrant_reader::{CONTRACT_PATH, ContractRecord};
use url::Url;

/// The two contracts to compare.
#[derive(Clone, Debug, Args)]
pub struct VerifyOptions {
    /// The contract that you trust: a saved /v1/contract.json, or a contract.toml or released.toml
    #[arg(long, value_name = "FILE")]
    pub against: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// URL of the server: https, or http to this machine
    #[arg(value_name = "URL")]
    pub url: String,
}

const HURTS: u8 = 1;
const LARGEST: usize = 4 << 20;
const LIMITS: HttpLimits = HttpLimits { deadline: Duration::from_secs(30), largest_answer: LARGEST };

#[derive(Debug, thiserror::Error)]
#[error("not compared: {}", escape_line(.message))]
pub struct NotCompared {
    code: &'static str,
    message: String,
}

impl NotCompared {
    fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }

    #[must_use]
    pub fn json(&self) -> String {
        write_json(&json!({"compared": false, "code": self.code, "message": self.message}))
    }
}

pub async fn verify(VerifyOptions { against, json, url }: &VerifyOptions) -> Result<(String, u8), NotCompared> {
    let trusted =
        read(against).map_err(|why| NotCompared::new("no_record", format!("{}: {why}", against.display())))?;
    let found = fetch(url).await?;
    let [before, now] = [&trusted, &found].map(|record| record.head_text("service"));
    if before != now {
        let message = format!("the server is `{now}`, and {} is of `{before}`", against.display());
        return Err(NotCompared::new("other_service", message));
    }
    let changes = compare(&trusted, &found);
    let is_sound = changes.iter().all(is_harmless);
    let text = if *json { write_json(&show(&trusted, &found, &changes)) } else { tell(&trusted, &found, &changes) };
    Ok((text, if is_sound { 0 } else { HURTS }))
}

pub(crate) fn write_json(answer: &Value) -> String {
    escape_json(&format!("{answer:#}\n"))
}

fn is_harmless(change: &ContractChange) -> bool {
    change.worst() == Severity::Compatible && change.consequences.iter().all(is_harmless)
}

fn show(trusted: &ContractRecord, found: &ContractRecord, changes: &[ContractChange]) -> Value {
    let [before, now] =
        [trusted, found].map(|record| json!({"version": record.head_text("version"), "digest": digest(record)}));
    json!({
        "compared": true,
        "sound": changes.iter().all(is_harmless),
        "service": found.head_text("service"),
        "before": before,
        "now": now,
        "changes": changes.iter().map(change_json).collect::<Vec<_>>(),
    })
}

fn tell(trusted: &ContractRecord, found: &ContractRecord, changes: &[ContractChange]) -> String {
    let [before, now] = [trusted, found].map(|record| record.head_text("version"));
    let version = if before == now { now.to_owned() } else { format!("{before} -> {now}") };
    let count =
        if changes.is_empty() { "nothing has changed".to_owned() } else { format!("{} change(s)", changes.len()) };
    let mut out = escape_line(&format!("{} {version}: {count}", found.head_text("service"))) + "\n";
    write_changes(changes, "", &mut out);
    out
}

fn write_changes(changes: &[ContractChange], indent: &str, out: &mut String) {
    for change in changes {
        let (verdict, rule) = (change.worst().name(), &change.rule.id);
        let origin = if change.is_framework { " (by the framework)" } else { "" };
        let _ = writeln!(out, "{indent}{verdict:10}  {rule}: {}{origin}", escape_line(&change.message));
        write_changes(&change.consequences, &format!("{indent}  "), out);
    }
}

fn read(path: &Path) -> Result<ContractRecord, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST as u64 + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    read_record(&text)
}

async fn fetch(url: &str) -> Result<ContractRecord, NotCompared> {
    let unreachable = |why: String| NotCompared::new("unreachable", why);
    let url = document_url(url).map_err(unreachable)?;
    let client = HttpClient::to(&url).map_err(|error| unreachable(error.to_string()))?;
    let request = Request::get(url.as_str()).header(ACCEPT, "application/json").body(Vec::new());
    let request = request.map_err(|error| unreachable(error.to_string()))?;
    let answer = client.exchange(request, LIMITS).await.map_err(|failure| unreachable(format!("{url}: {failure}")))?;
    let no_contract = |why: String| NotCompared::new("no_contract", format!("{url}: {why}"));
    if answer.status() != StatusCode::OK {
        let status = answer.status().as_u16();
        return Err(no_contract(format!("the status is {status}; a server with a contract answers 200")));
    }
    let text = std::str::from_utf8(answer.body()).map_err(|error| no_contract(error.to_string()))?;
    match text.trim_start().starts_with('{') {
        true => read_record(text).map_err(no_contract),
        false => Err(no_contract("the answer is no JSON object".to_owned())),
    }
}

fn document_url(text: &str) -> Result<Url, String> {
    // A message does not repeat a wrong URL, which may contain a password.
    let mut url = Url::parse(text).map_err(|error| format!("URL: {error}; expected one like https://example.com"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("URL: the contract is public, so the URL has no name and no password".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    let base = path.strip_suffix(CONTRACT_PATH).or_else(|| path.strip_suffix("/mcp")).unwrap_or(path);
    let path = format!("{base}{CONTRACT_PATH}");
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}
