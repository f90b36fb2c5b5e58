//! The double of ARMCloud and of an adb server as a process.

use crate::harness::program::binary;
use serde_json::Value;
use std::net::SocketAddr;
use std::ops::Deref;
use tempfile::TempDir;

pub(crate) struct Double(kit::DoubleProcess);

pub(crate) const KEYS: [(&str, &str); 2] = [("access", "AKTEST0123456789"), ("secret", "SKTEST9876543210")];

impl Deref for Double {
    type Target = kit::DoubleProcess;
    fn deref(&self) -> &kit::DoubleProcess {
        &self.0
    }
}

impl Double {
    pub(crate) async fn start(pads: u32, flags: &[&str]) -> Self {
        let program = binary().with_file_name("armcloud-double");
        let pads = pads.to_string();
        let flags = [&["--pads", &pads], flags].concat();
        let started = kit::DoubleProcess::start(&program, &flags).await;
        Self(started.expect("`cargo build --package armcloud-double` makes the double"))
    }

    pub(crate) fn adb(&self) -> SocketAddr {
        self.greeting["adb"].as_str().expect("an address").parse().expect("an address")
    }

    pub(crate) async fn codes(&self) -> Vec<String> {
        self.0.codes().await.expect("codes")
    }

    pub(crate) async fn switch(&self, pad: Option<&str>, switches: &Value) {
        self.0.switch(pad, switches).await.expect("switches");
    }

    pub(crate) async fn journal(&self, kind: &str, pad: &str) -> Vec<Value> {
        let lines = self.0.journal().await.expect("lines").into_iter();
        lines.filter(|line| line["kind"] == kind && line["pad"] == pad).collect()
    }

    pub(crate) async fn requests(&self, endpoint: &str) -> Vec<Value> {
        let is_one = |line: &Value| {
            line["kind"] == "request" && line["endpoint"].as_str().is_some_and(|name| name.ends_with(endpoint))
        };
        self.0.journal().await.expect("lines").into_iter().filter(is_one).collect()
    }

    pub(crate) async fn replace(&self, pad: &str) -> String {
        let told = self.post(&format!("pads/{pad}/replace")).await.expect("JSON");
        told["new"].as_str().expect("a code").to_owned()
    }
}

/// Sets limits on calls that tests do not reach.
pub(crate) fn table(name: &str, double: &Double, folder: &TempDir) -> String {
    let table = double.table(name, folder.path()).expect("written");
    format!("{table}requests-per-second = 1000\nrequests-per-minute = 60000\nconcurrent = 64\n")
}
