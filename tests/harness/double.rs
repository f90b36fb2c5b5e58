//! The double of ARMCloud and of an adb server as a process: its switches, its state, and the
//! configuration for its account.

use crate::harness::program::binary;
use crate::harness::write;
use kit::{Process, send};
use serde_json::Value;
use std::net::SocketAddr;
use tempfile::TempDir;
use tokio::process::Command;

pub(crate) struct Double {
    _process: Process,
    /// Removed also if the process is killed.
    _folder: TempDir,
    pub(crate) greeting: Value,
    pub(crate) url: String,
}

pub(crate) const KEYS: [(&str, &str); 2] = [("access", "AKTEST0123456789"), ("secret", "SKTEST9876543210")];

impl Double {
    pub(crate) async fn start(pads: u32, flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut command = Command::new(binary().with_file_name("armcloud-double"));
        command.env("TMPDIR", folder.path()).arg("--pads").arg(pads.to_string()).args(flags);
        let mut process = Process::start(command).expect("`cargo build --package armcloud-double` makes the double");
        let greeting = process.greeting().await.expect("a greeting");
        let url = greeting["url"].as_str().expect("a URL").to_owned();
        Self { _process: process, _folder: folder, greeting, url }
    }

    pub(crate) fn adb(&self) -> SocketAddr {
        self.greeting["adb"].as_str().expect("an address").parse().expect("an address")
    }

    /// Returns the command line of a program that acts on the phone of a serial.
    pub(crate) fn program(&self, action: &str) -> [String; 6] {
        let path = binary().with_file_name("armcloud-double").display().to_string();
        let control = self.greeting["control"].as_str().expect("a URL");
        [&path, "act", "--control", control, action, "{serial}"].map(str::to_owned)
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let url = format!("{}/{path}", self.greeting["control"].as_str().expect("a URL"));
        let answer = send(method, &url, body).await.expect("an answer");
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
        answer.body
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask("GET", path, "").await).expect("JSON")
    }

    pub(crate) async fn post(&self, path: &str) -> serde_json::Result<Value> {
        serde_json::from_str(&self.ask("POST", path, "").await)
    }

    pub(crate) async fn codes(&self) -> Vec<String> {
        let state = self.get("state").await;
        let codes = state["pads"].as_array().expect("pads").iter().map(|pad| pad["pad_code"].as_str());
        codes.map(|code| code.expect("a code").to_owned()).collect()
    }

    /// Turns off all switches that are not given. `None` is the platform.
    pub(crate) async fn switch(&self, pad: Option<&str>, switches: &Value) {
        let path = pad.map_or_else(|| "switches".to_owned(), |code| format!("pads/{code}/switches"));
        self.ask("PUT", &path, &switches.to_string()).await;
    }

    pub(crate) async fn lines(&self) -> Vec<Value> {
        self.get("journal").await["entries"].as_array().expect("entries").clone()
    }

    pub(crate) async fn journal(&self, kind: &str, pad: &str) -> Vec<Value> {
        let lines = self.lines().await.into_iter();
        lines.filter(|line| line["kind"] == kind && line["pad"] == pad).collect()
    }

    pub(crate) async fn count_restarts(&self, pad: &str) -> usize {
        self.journal("did", pad).await.iter().filter(|line| line["operation"] == "restart").count()
    }

    pub(crate) async fn requests(&self, endpoint: &str) -> Vec<Value> {
        let is_one = |line: &Value| {
            line["kind"] == "request" && line["endpoint"].as_str().is_some_and(|name| name.ends_with(endpoint))
        };
        self.lines().await.into_iter().filter(is_one).collect()
    }

    pub(crate) async fn replace(&self, pad: &str) -> String {
        let told = self.post(&format!("pads/{pad}/replace")).await.expect("JSON");
        told["new"].as_str().expect("a code").to_owned()
    }
}

/// Writes the credentials into files of a folder. Sets limits on calls that tests do not reach.
pub(crate) fn table(name: &str, double: &Double, folder: &TempDir) -> String {
    let keys = KEYS.map(|(key, text)| {
        write(&folder.path().join(format!("{name}.{key}")), text, 0o600);
        format!("{key}-key-file = \"{name}.{key}\"\n")
    });
    format!(
        "[platform.{name}]\nkind = \"armcloud\"\nbase-url = \"{}\"\nprefix = \"/vcpcloud/api/padApi\"\n\
         signing = \"v2\"\npower-seconds = 10\nproxy-seconds = 5\n{}requests-per-second = 1000\n\
         requests-per-minute = 60000\nconcurrent = 64\n",
        double.url,
        keys.concat()
    )
}
