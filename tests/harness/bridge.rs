//! The bridge as a client starts it.

use crate::harness::Key;
use crate::harness::program::binary;
use serde_json::Value;
use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub(crate) struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
    errors: PathBuf,
    told: usize,
    secret: String,
    _home: TempDir,
}

pub(crate) struct Start<'a> {
    /// Empty if the environment has it.
    pub(crate) url: &'a str,
    pub(crate) flags: &'a [&'a OsStr],
    pub(crate) environment: &'a [(&'a str, &'a str)],
    pub(crate) secret: &'a str,
}

impl Bridge {
    pub(crate) fn with_key(url: &str, key: &Key) -> Self {
        let pair = format!("{}:{}", key.id, key.secret);
        Self::start(Start { url, flags: &[], environment: &[("CLOUDPHONE_KEY", &pair)], secret: &key.secret })
    }

    pub(crate) fn with_file(url: &str, file: &Path) -> Self {
        let flags = [OsStr::new("--key-file"), file.as_os_str()];
        Self::start(Start { url, flags: &flags, environment: &[], secret: "cps_" })
    }

    pub(crate) fn start(Start { url, flags, environment, secret }: Start<'_>) -> Self {
        let mut command = Command::new(binary());
        let url = if url.is_empty() { vec![] } else { vec!["--url", url] };
        command.arg("bridge").args(url).args(flags).env_clear().envs(environment.iter().copied());
        Self::run(command, secret)
    }

    /// Starts a bridge that may also serve, as a host does: with these variables, and at `/`. The
    /// only program in PATH can be an `adb` of the test.
    pub(crate) fn over_stdio(home: &Path, flags: &[&str]) -> Self {
        // No adb server listens there.
        Self::over_stdio_with_adb(1, home, flags)
    }

    pub(crate) fn over_stdio_with_adb(port: u16, home: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.arg("stdio").args(flags).current_dir("/").env_clear().env("HOME", home).env("PATH", home);
        command.envs([("LOGNAME", "you"), ("USER", "you"), ("SHELL", "/bin/sh"), ("TERM", "dumb")]);
        Self::run(command.env("ANDROID_ADB_SERVER_PORT", port.to_string()), "cps_")
    }

    fn run(mut command: impl BorrowMut<Command>, secret: &str) -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let errors = home.path().join("errors");
        let command = command.borrow_mut();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).expect("a file"))
            .kill_on_drop(true)
            .spawn()
            .expect("the bridge starts");
        let input = child.stdin.take();
        let output = child.stdout.take().map(|output| BufReader::new(output).lines());
        Self { child, input, output, errors, told: 0, secret: secret.to_owned(), _home: home }
    }

    pub(crate) fn pipes(&mut self) -> (impl AsyncRead + use<>, ChildStdin) {
        (self.output.take().expect("its output").into_inner(), self.input.take().expect("its input"))
    }

    pub(crate) async fn send(&mut self, line: impl AsRef<str>) {
        let line = format!("{}\n", line.as_ref());
        self.input.as_mut().expect("its input").write_all(line.as_bytes()).await.expect("it reads");
    }

    /// Fails after a minute without a line; this is the only time limit.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.output.as_mut().expect("its output").next_line();
        let line = tokio::time::timeout(Duration::from_secs(60), line).await.expect("an answer");
        let line = line.expect("text").unwrap_or_else(|| panic!("it has ended: {}", self.all_told()));
        assert!(!line.contains(&self.secret), "{line}");
        serde_json::from_str(&line).expect("JSON")
    }

    pub(crate) async fn ask(&mut self, line: impl AsRef<str>) -> Value {
        self.send(line).await;
        self.next().await
    }

    /// Returns the messages since the last call. The bridge writes a message before the answer.
    pub(crate) fn take_stderr(&mut self) -> String {
        let all = self.all_told();
        let new = all[self.told..].to_owned();
        self.told = all.len();
        new
    }

    fn all_told(&self) -> String {
        let all = fs::read_to_string(&self.errors).expect("text");
        assert!(!all.contains(&self.secret) && !all.contains("panicked"), "{all}");
        all
    }

    /// Returns its remaining lines and its exit status.
    pub(crate) async fn end(&mut self) -> (Vec<String>, ExitStatus) {
        self.input = None;
        let mut rest = Vec::new();
        while let Some(line) = self.output.as_mut().expect("its output").next_line().await.expect("text") {
            rest.push(line);
        }
        (rest, self.exit().await)
    }

    pub(crate) fn signal(&self, name: &str) {
        kit::signal(self.child.id().expect("it runs"), name).expect("it runs");
    }

    /// Closes its output, as if the client had died.
    pub(crate) fn deafen(&mut self) {
        self.output = None;
    }

    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait());
        ended.await.expect("it ends").expect("it ran")
    }
}
