//! The double of ARMCloud as a program, and what a test tells it and asks of it.

use crate::program::binary;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A running double. It ends with the test.
pub(crate) struct Double {
    /// Where the platform is.
    pub(crate) url: String,
    control: String,
    http: reqwest::Client,
    _process: Child,
}

/// The credentials of its account.
pub(crate) const KEYS: [(&str, &str); 2] = [("access", "AKTEST0123456789"), ("secret", "SKTEST9876543210")];

impl Double {
    /// Starts a double with so many pads.
    pub(crate) async fn start(pads: u32, flags: &[&str]) -> Self {
        let program = binary().with_file_name("armcloud-double");
        assert!(program.is_file(), "`cargo build --package armcloud-double` makes {}", program.display());
        let mut command = Command::new(program);
        command.args(["--pads", &pads.to_string()]).args(flags).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it starts");
        let mut said = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let line = said.next_line().await.expect("a line").expect("what it serves");
        let told: Value = serde_json::from_str(&line).expect("JSON");
        let text = |name: &str| told[name].as_str().expect("a URL").to_owned();
        Self { url: text("url"), control: text("control"), http: reqwest::Client::new(), _process: process }
    }

    /// The codes of all pads, in the order of the fleet.
    pub(crate) async fn codes(&self) -> Vec<String> {
        let state = self.get("state").await;
        let pads = state["pads"].as_array().expect("pads");
        pads.iter().map(|pad| pad["pad_code"].as_str().expect("a code").to_owned()).collect()
    }

    /// Sets the switches of one pad, or of the platform.
    pub(crate) async fn switch(&self, pad: Option<&str>, switches: &Value) {
        let path = pad.map_or_else(|| "switches".to_owned(), |code| format!("pads/{code}/switches"));
        let request = self.http.put(format!("{}/{path}", self.control)).body(switches.to_string());
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        assert!(status.is_success(), "{switches}: {}", answer.text().await.expect("a text"));
    }

    /// The lines of its journal of one kind, on one pad.
    pub(crate) async fn journal(&self, kind: &str, pad: &str) -> Vec<Value> {
        let journal = self.get("journal?after=0").await;
        let lines = journal["entries"].as_array().expect("lines").iter();
        lines.filter(|line| line["kind"] == kind && line["pad"] == pad).cloned().collect()
    }

    /// The requests to an endpoint of which the name ends so, in their order.
    pub(crate) async fn requests(&self, endpoint: &str) -> Vec<Value> {
        let journal = self.get("journal?after=0").await;
        let lines = journal["entries"].as_array().expect("lines").iter();
        let is_one = |line: &&Value| {
            line["kind"] == "request" && line["endpoint"].as_str().is_some_and(|name| name.ends_with(endpoint))
        };
        lines.filter(is_one).cloned().collect()
    }

    /// Gives a seat another pad: the code of that.
    pub(crate) async fn replace(&self, pad: &str) -> String {
        let answer = self.http.post(format!("{}/pads/{pad}/replace", self.control)).send().await.expect("an answer");
        let told: Value = serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON");
        told["new"].as_str().expect("a code").to_owned()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}/{path}", self.control)).send().await.expect("an answer");
        serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON")
    }
}

/// The table of the configuration for a double, with the credentials in files of that folder.
pub(crate) fn table(name: &str, double: &Double, folder: &TempDir) -> String {
    use std::os::unix::fs::OpenOptionsExt;
    for (which, text) in KEYS {
        let path = folder.path().join(format!("{name}.{which}"));
        let file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
        std::io::Write::write_all(&mut file.expect("a file"), text.as_bytes()).expect("written");
    }
    let table = json!({
        "kind": "armcloud", "base-url": double.url, "prefix": "/vcpcloud/api/padApi", "signing": "v2",
        "access-key-file": format!("{name}.access"), "secret-key-file": format!("{name}.secret"),
        "power-seconds": 10, "proxy-seconds": 5, "requests-per-second": 1000, "requests-per-minute": 60000, "concurrent": 64,
    });
    let lines = table.as_object().expect("an object").iter().map(|(key, value)| format!("{key} = {value}\n"));
    format!("[platform.{name}]\n{}", lines.collect::<String>())
}
