//! The program, running; and what a test asks of it.

use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use toolwarrant::testing::Key;

/// The program, running. It ends with the test.
pub(crate) struct Process {
    /// The endpoint.
    pub(crate) url: String,
    /// The key that the first start shows.
    pub(crate) demo: Key,
    /// All that it has printed.
    pub(crate) welcome: String,
    pub(crate) data: PathBuf,
    child: Child,
    _home: TempDir,
}

impl Process {
    /// Starts it on a free port with a new data folder, and reads until it has told how to use it.
    pub(crate) async fn start() -> Self {
        Self::configured("").await
    }

    /// Starts it with these lines in its configuration file, beside the data folder.
    pub(crate) async fn configured(lines: &str) -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let data = home.path().join("data");
        let log = File::create(home.path().join("log")).expect("a log");
        let file = home.path().join("shop.toml");
        let flags = "data = \"data\"\ndemo = true\nlisten = \"127.0.0.1:0\"\n";
        std::fs::write(&file, format!("{flags}{lines}")).expect("a file");
        let mut command = program();
        command.arg("--config").arg(&file).current_dir("/").stdout(Stdio::piped()).stderr(log);
        let child = command.kill_on_drop(true).spawn().expect("the program starts");
        let demo = Key { id: String::new(), secret: String::new() };
        let mut process = Self { url: String::new(), demo, welcome: String::new(), data, child, _home: home };
        process.ready().await;
        process
    }

    async fn ready(&mut self) {
        let mut lines = BufReader::new(self.child.stdout.as_mut().expect("its output")).lines();
        while let Some(line) = lines.next_line().await.expect("text") {
            if let Some((_, url)) = line.split_once(" at ").filter(|(_, url)| url.ends_with("/mcp")) {
                url.clone_into(&mut self.url);
            } else if let Some(id) = line.trim().strip_prefix("X-Api-Key:") {
                id.trim().clone_into(&mut self.demo.id);
            } else if let Some(secret) = line.trim().strip_prefix("X-Api-Secret:") {
                secret.trim().clone_into(&mut self.demo.secret);
            }
            self.welcome += &line;
            self.welcome.push('\n');
            if line.contains("Ctrl-C") {
                return;
            }
        }
        panic!("it ended: {}", self.welcome);
    }

    /// What a tool answers to the key of the first start.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        call(&self.url, &self.demo, tool, arguments).await
    }

    /// The job of a write, at its end.
    pub(crate) async fn end(&self, job: &Value) -> Value {
        loop {
            let ask = json!({"task_id": job["task_id"], "wait_seconds": 50});
            let job = self.call("get_job", ask).await.expect("a job");
            if job["terminal"] == true {
                return job;
            }
        }
    }

    /// A new application with these permissions, and a key of it.
    pub(crate) async fn application(&self, name: &str, permissions: &[&str]) -> Key {
        let permissions: String = permissions.iter().map(|name| format!(" --permission {name}")).collect();
        json_of(&self.data, &format!("app create {name}{permissions}")).await;
        let key = json_of(&self.data, &format!("key create {name}")).await;
        let [id, secret] = ["key_id", "secret"].map(|half| key[half].as_str().expect("text").to_owned());
        Key { id, secret }
    }

    /// Stops it as an operator does, and waits: what it said at last.
    pub(crate) async fn stop(&mut self) -> String {
        let id = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.expect("kill").success());
        let mut last = String::new();
        self.child.stdout.as_mut().expect("its output").read_to_string(&mut last).await.expect("text");
        assert!(self.child.wait().await.expect("it ends").success());
        last
    }
}

/// What a tool answers at that endpoint: its result, or its failure.
pub(crate) async fn call(url: &str, key: &Key, tool: &str, arguments: Value) -> Result<Value, Value> {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let request = reqwest::Client::new().post(url).header("content-type", "application/json").body(body);
    let request = request.header("x-api-key", &key.id).header("x-api-secret", &key.secret);
    let answer = request.send().await.expect("an answer").bytes().await.expect("a whole answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no result: {answer}"));
    let value = serde_json::from_str(text).expect("JSON in the text");
    if answer["result"]["isError"] == true { Err(value) } else { Ok(value) }
}

/// The program that cargo has built with these tests.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_print-shop"))
}

/// Runs one command on a data folder: exit code, and all that it prints.
pub(crate) async fn operate(data: &Path, line: &str) -> (i32, String) {
    let output = program().args(line.split(' ')).arg("--data").arg(data).kill_on_drop(true).output();
    let Output { status, stdout, stderr } = output.await.expect("the program runs");
    let text = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text")).concat();
    (status.code().expect("an exit"), text)
}

/// The JSON that a command prints.
pub(crate) async fn json_of(data: &Path, line: &str) -> Value {
    let (code, text) = operate(data, &format!("{line} --json")).await;
    assert_eq!(code, 0, "{line}: {text}");
    serde_json::from_str(&text).expect("JSON")
}
