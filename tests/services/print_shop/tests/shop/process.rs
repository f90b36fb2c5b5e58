//! The program as a process, with helpers for tests.

use kit::{Instance, KeyPair, ProgramOperator, Start};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use tempfile::TempDir;
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_print-shop");

pub(crate) struct Shop {
    inner: Instance,
    _home: TempDir,
}

impl Deref for Shop {
    type Target = Instance;
    fn deref(&self) -> &Instance {
        &self.inner
    }
}

impl Shop {
    pub(crate) async fn start() -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let start = Start::new(PROGRAM, home.path()).flags(&["--demo"]);
        Self { inner: start.ready().await.expect("it serves"), _home: home }
    }

    pub(crate) fn demo(&self) -> &KeyPair {
        &self.keys[0]
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        call(self.address, self.demo(), tool, arguments).await
    }

    pub(crate) async fn application(&self, name: &str, permissions: &[&str]) -> KeyPair {
        let permissions: String = permissions.iter().map(|name| format!(" --permission {name}")).collect();
        json_of(&self.operator.data, &format!("app create {name}{permissions}")).await;
        self.operator.key(name).await.expect("a key")
    }
}

pub(crate) async fn call(address: SocketAddr, key: &KeyPair, tool: &str, arguments: Value) -> Result<Value, Value> {
    kit::call(address, key, tool, &arguments).await.expect("an answer")
}

pub(crate) async fn end(shop: &Instance, key: &KeyPair, job: &Value) -> Value {
    loop {
        let ask = json!({"task_id": job["task_id"], "wait_seconds": 50});
        let job = call(shop.address, key, "get_job", ask).await.expect("a job");
        if job["terminal"] == true {
            return job;
        }
    }
}

pub(crate) fn program() -> Command {
    Command::new(PROGRAM)
}

pub(crate) fn operator(data: &Path) -> ProgramOperator {
    ProgramOperator { program: PROGRAM.into(), data: data.to_owned() }
}

pub(crate) async fn operate(data: &Path, line: &str) -> (i32, String) {
    operator(data).run(line.split(' ')).await.expect("the program runs")
}

/// Expects the exit code, and this part of what the program prints.
pub(crate) async fn says(data: &Path, line: &str, code: i32, part: &str) -> String {
    operator(data).says(line, code, part).await.unwrap_or_else(|error| panic!("{error:#}"))
}

pub(crate) async fn json_of(data: &Path, line: &str) -> Value {
    operator(data).json(line.split(' ')).await.expect("JSON")
}
