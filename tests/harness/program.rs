//! The program as users start it, and the commands of its operator.

use crate::harness::Key;
use kit::{ProgramOperator, Start, exchange};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

pub(crate) const WATCHED: &[&str] = &["--admin-listen", "127.0.0.1:0", "--log-format", "json"];

pub(crate) struct Program {
    inner: kit::Instance,
    pub(crate) data: PathBuf,
    pub(crate) home: Arc<TempDir>,
}

impl Deref for Program {
    type Target = kit::Instance;
    fn deref(&self) -> &kit::Instance {
        &self.inner
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut kit::Instance {
        &mut self.inner
    }
}

/// Takes the path from the environment, or the program that cargo built with these tests.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_cloudphone").into(), PathBuf::from)
}

/// Creates the keys of `demo` and `demo-read` at the first start in a folder.
pub(crate) fn start(home: &TempDir) -> Start {
    Start::new(binary(), home.path()).flags(&["--demo"])
}

impl Program {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::start_by(|start| start.flags(flags)).await
    }

    /// Leaves a folder with the applications of the demo.
    pub(crate) async fn start_and_stop() -> Self {
        let mut program = Self::start(&[]).await;
        program.stop().await;
        program
    }

    pub(crate) async fn start_by(way: impl FnOnce(Start) -> Start) -> Self {
        let home = Arc::new(TempDir::new().expect("a temporary folder"));
        let start = way(start(&home));
        Self::start_as(home, start).await
    }

    pub(crate) async fn again(&self, flags: &[&str]) -> Self {
        Self::start_at(Arc::clone(&self.home), flags).await
    }

    pub(crate) async fn start_at(home: Arc<TempDir>, flags: &[&str]) -> Self {
        let start = start(&home).flags(flags);
        Self::start_as(home, start).await
    }

    pub(crate) async fn start_as(home: Arc<TempDir>, start: Start) -> Self {
        let inner = start.ready().await.expect("it starts");
        Self { data: inner.operator.data.clone(), inner, home }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.inner.call(tool, &arguments).await.expect("an answer")
    }

    pub(crate) async fn task(&self, id: &Value) -> Value {
        for _ in 0..10 {
            let asked = json!({"task_id": id, "wait_seconds": 50});
            let task = self.call("get_task", asked).await.expect("a task");
            if task["terminal"] == true {
                return task;
            }
        }
        panic!("{id} never ends");
    }

    pub(crate) async fn status(&self, key: &Key) -> u16 {
        let ping = key.request(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "connection: close\r\n");
        exchange(self.address, ping.as_bytes()).await.expect("an answer").status
    }

    pub(crate) fn monitor(&self) -> &str {
        self.monitor.as_deref().expect("the monitor's URL")
    }

    /// Waits for this status of `/readyz`. Returns the text.
    pub(crate) async fn until_ready(&self, status: u16) -> String {
        until(&format!("{}/readyz", self.monitor()), status).await
    }

    pub(crate) fn log(&self) -> String {
        self.inner.log().expect("a log")
    }

    pub(crate) async fn until_logged(&self, text: &str) {
        let logged = kit::wait_for(async || {
            let log = self.log();
            if log.contains(text) { Ok(()) } else { Err(log) }
        });
        logged.await.unwrap_or_else(|error| panic!("{text} is not in the log, {error}"));
    }

    pub(crate) fn id(&self) -> u32 {
        self.inner.id().expect("it runs")
    }

    pub(crate) async fn kill(&mut self) {
        self.inner.kill().await.expect("it ran");
    }

    pub(crate) async fn ask_to_stop(&self) {
        self.signal("TERM").await.expect("it runs");
    }

    pub(crate) async fn stop(&mut self) {
        self.ask_to_stop().await;
        self.wait_for_end().await;
    }

    pub(crate) async fn wait_for_end(&mut self) {
        let (status, last) = self.end().await.expect("text");
        assert!(status.success() && last.is_empty(), "{status} {last}{}", self.log());
    }
}

pub(crate) fn operator(data: &Path) -> ProgramOperator {
    ProgramOperator { program: binary(), data: data.to_owned() }
}

pub(crate) async fn operate(data: &Path, line: &str) -> (i32, String) {
    operator(data).run(line.split(' ')).await.expect("the program runs")
}

/// Expects the exit code, and this part of what the program prints. Returns all of it.
pub(crate) async fn says(data: &Path, line: &str, code: i32, part: &str) -> String {
    operator(data).says(line, code, part).await.unwrap_or_else(|error| panic!("{error:#}"))
}

pub(crate) async fn refusal(flags: &[&str]) -> String {
    let output = Command::new(binary()).args(flags).kill_on_drop(true).output();
    // A program that serves in spite of them shows after a minute; this is the only time limit.
    let output = tokio::time::timeout(Duration::from_secs(60), output).await.expect("it is refused");
    let output = output.expect("the program runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.code().is_some_and(|code| code != 0) && !said.contains("panicked"), "{said}");
    said
}

pub(crate) async fn json_of(data: &Path, line: &str) -> Value {
    operator(data).json(line.split(' ')).await.expect("JSON")
}

/// Goes straight to an operator socket, past the command line.
pub(crate) fn send(socket: &Path, request: impl Display) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

pub(crate) async fn key_of(data: &Path, application: &str) -> Key {
    operator(data).key(application).await.expect("a key")
}

/// Digits of ids, secrets and times become `0`, and several blanks become one.
pub(crate) fn steady(text: &str, folder: &Path) -> String {
    let text = text.replace(&folder.display().to_string(), "DATA");
    let word = |word: &str| {
        let (word, comma) = word.strip_suffix(',').map_or((word, ""), |word| (word, ","));
        let (name, rest) = word.split_once('_').unwrap_or(("", word));
        match name {
            "act" | "app" | "cpk" | "cps" | "task" if rest.len() >= 16 => format!("{name}_0{comma}"),
            _ if word.len() >= 20 && word.ends_with('Z') => format!("TIME{comma}"),
            // Of the name of a deleted application.
            _ if word.len() == 11 && word.starts_with("20") && word.ends_with(')') => format!("TIME{comma}"),
            _ => format!("{word}{comma}"),
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

pub(crate) async fn get(url: &str) -> (u16, String, String) {
    let answer = kit::get(url).await.expect("an answer");
    (answer.status, answer.header("content-type").expect("a type").to_owned(), answer.body)
}

pub(crate) async fn until(url: &str, status: u16) -> String {
    let answered = kit::wait_for(async || match kit::get(url).await {
        Ok(answer) if answer.status == status => Ok(answer.body),
        other => Err(format!("{url}: {other:?}")),
    });
    answered.await.unwrap_or_else(|error| panic!("not {status}, {error}"))
}
