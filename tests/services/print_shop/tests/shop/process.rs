//! The program as a process, with helpers for tests.

use kit::{KeyPair, Process, ProgramOperator};
use serde_json::{Value, json};
use std::fs::File;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::process::Command;

pub(crate) struct Shop {
    inner: kit::Instance,
    pub(crate) demo: KeyPair,
    pub(crate) data: PathBuf,
    _home: TempDir,
}

impl Deref for Shop {
    type Target = kit::Instance;
    fn deref(&self) -> &kit::Instance {
        &self.inner
    }
}

impl Shop {
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    /// Writes the configuration file next to the data folder.
    pub(crate) async fn start_with(lines: &str) -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let data = home.path().join("data");
        let log = File::create(home.path().join("log")).expect("a log");
        let file = home.path().join("shop.toml");
        let flags = "data = \"data\"\ndemo = true\nlisten = \"127.0.0.1:0\"\n";
        std::fs::write(&file, format!("{flags}{lines}")).expect("a file");
        let mut command = program();
        command.arg("--json").arg("--config").arg(&file).current_dir("/").stderr(log);
        let process = Process::start(command).expect("the program starts");
        let inner = kit::Instance::ready(process, operator(&data)).await.expect("it serves");
        Self { demo: inner.keys[0].clone(), inner, data, _home: home }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        call(self.address, &self.demo, tool, arguments).await
    }

    pub(crate) async fn end(&self, job: &Value) -> Value {
        loop {
            let ask = json!({"task_id": job["task_id"], "wait_seconds": 50});
            let job = self.call("get_job", ask).await.expect("a job");
            if job["terminal"] == true {
                return job;
            }
        }
    }

    pub(crate) async fn application(&self, name: &str, permissions: &[&str]) -> KeyPair {
        let permissions: String = permissions.iter().map(|name| format!(" --permission {name}")).collect();
        json_of(&self.data, &format!("app create {name}{permissions}")).await;
        self.operator.key(name).await.expect("a key")
    }

    pub(crate) async fn stop(&mut self) {
        let (status, last) = self.inner.stop().await.expect("it runs");
        assert!(status.success() && last.is_empty(), "{status} {last}");
    }
}

pub(crate) async fn call(address: SocketAddr, key: &KeyPair, tool: &str, arguments: Value) -> Result<Value, Value> {
    kit::call(address, key, tool, &arguments).await.expect("an answer")
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_print-shop"))
}

fn operator(data: &Path) -> ProgramOperator {
    ProgramOperator { program: env!("CARGO_BIN_EXE_print-shop").into(), data: data.to_owned() }
}

pub(crate) async fn operate(data: &Path, line: &str) -> (i32, String) {
    operator(data).run(line.split(' ')).await.expect("the program runs")
}

pub(crate) async fn json_of(data: &Path, line: &str) -> Value {
    operator(data).json(line.split(' ')).await.expect("JSON")
}
