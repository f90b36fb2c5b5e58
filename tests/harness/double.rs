//! The double of ARMCloud as a program, and what a test tells it and asks of it.

use crate::harness::program::binary;
use serde_json::Value;
use std::ops::Deref;
use tempfile::TempDir;

/// A running double. It ends with the test.
pub(crate) struct Double(driver::DoubleProcess);

/// The credentials of its account.
pub(crate) const KEYS: [(&str, &str); 2] = [("access", "AKTEST0123456789"), ("secret", "SKTEST9876543210")];

impl Deref for Double {
    type Target = driver::DoubleProcess;
    fn deref(&self) -> &driver::DoubleProcess {
        &self.0
    }
}

impl Double {
    /// Starts a double with so many pads.
    pub(crate) async fn start(pads: u32, flags: &[&str]) -> Self {
        let program = binary().with_file_name("armcloud-double");
        let pads = pads.to_string();
        let flags = [&["--pads", &pads], flags].concat();
        let started = driver::DoubleProcess::start(&program, &flags).await;
        Self(started.expect("`cargo build --package armcloud-double` makes the double"))
    }

    /// The codes of all pads, in the order of the fleet.
    pub(crate) async fn codes(&self) -> Vec<String> {
        self.0.codes().await.expect("codes")
    }

    /// Sets the switches of one pad, or of the platform.
    pub(crate) async fn switch(&self, pad: Option<&str>, switches: &Value) {
        self.0.switch(pad, switches).await.expect("switches");
    }

    /// The lines of its journal of one kind, on one pad.
    pub(crate) async fn journal(&self, kind: &str, pad: &str) -> Vec<Value> {
        let lines = self.0.journal(0).await.expect("lines").into_iter();
        lines.filter(|line| line["kind"] == kind && line["pad"] == pad).collect()
    }

    /// The requests to an endpoint of which the name ends so, in their order.
    pub(crate) async fn requests(&self, endpoint: &str) -> Vec<Value> {
        let is_one = |line: &Value| {
            line["kind"] == "request" && line["endpoint"].as_str().is_some_and(|name| name.ends_with(endpoint))
        };
        self.0.journal(0).await.expect("lines").into_iter().filter(is_one).collect()
    }

    /// Gives a seat another pad: the code of that.
    pub(crate) async fn replace(&self, pad: &str) -> String {
        let told = self.post(&format!("pads/{pad}/replace")).await.expect("JSON");
        told["new"].as_str().expect("a code").to_owned()
    }
}

/// The table of the configuration for a double, with the credentials in files of that folder. It limits calls hardly at all.
pub(crate) fn table(name: &str, double: &Double, folder: &TempDir) -> String {
    let table = double.table(name, folder.path()).expect("written");
    format!("{table}requests-per-second = 1000\nrequests-per-minute = 60000\nconcurrent = 64\n")
}
