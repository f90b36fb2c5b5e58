//! The program as users start it: what it prints, what is pasted from that, how it stops, and what a wrong start says.

use crate::harness::{Key, outcome};
use serde_json::{Value, json};
use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use toolwarrant_core::audit::is_chain_line;

/// The program, running. It ends with the test.
pub(crate) struct Program {
    /// Without a path.
    pub(crate) url: String,
    /// Of `demo`, then of `demo-read`.
    pub(crate) keys: Vec<Key>,
    /// All that it has printed.
    pub(crate) welcome: String,
    _home: Arc<TempDir>,
    pub(crate) data: PathBuf,
    child: Child,
}

/// The program: the one that the environment names, or the one that cargo has built with these tests.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_cloudphone").into(), PathBuf::from)
}

impl Program {
    /// Starts it on a free port with these further flags, and reads until it has told how to use it.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let home = TempDir::new().expect("a temporary folder");
        Self::start_at(Arc::new(home), flags).await
    }

    /// The same, where an earlier one may have been.
    pub(crate) async fn start_at(home: Arc<TempDir>, flags: &[&str]) -> Self {
        let log = File::options().create(true).append(true).open(home.path().join("log")).expect("a log");
        Self::start_with(home, log, flags).await
    }

    async fn start_with(home: Arc<TempDir>, log: File, flags: &[&str]) -> Self {
        let mut program = Self::spawn(home, log, flags);
        program.ready().await;
        program
    }

    /// Starts it, and does not wait until it is [ready](Self::ready).
    pub(crate) fn spawn(home: Arc<TempDir>, log: File, flags: &[&str]) -> Self {
        Self::spawn_by(Command::new(binary()), home, log, flags)
    }

    /// The same by a command that takes its flags.
    pub(crate) fn spawn_by(mut command: Command, home: Arc<TempDir>, log: impl Into<Stdio>, flags: &[&str]) -> Self {
        let data = home.path().join("data");
        let child = command
            .args(["--demo", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        Self { url: String::new(), keys: Vec::new(), welcome: String::new(), child, _home: home, data }
    }

    /// Reads until it has told how to use it, or has ended.
    pub(crate) async fn ready(&mut self) {
        let mut lines = BufReader::new(self.child.stdout.as_mut().expect("its output")).lines();
        while let Some(line) = lines.next_line().await.expect("text") {
            if let Some((_, at)) = line.strip_suffix("/mcp").and_then(|line| line.split_once(" at ")) {
                self.url = at.to_owned();
            } else if let Some(id) = line.trim().strip_prefix("X-Api-Key:") {
                self.keys.push(Key { id: id.trim().to_owned(), secret: String::new() });
            } else if let (Some(secret), Some(key)) = (line.trim().strip_prefix("X-Api-Secret:"), self.keys.last_mut())
            {
                key.secret = secret.trim().to_owned();
            }
            self.welcome += &line;
            self.welcome.push('\n');
            if line.contains("Ctrl-C") {
                break;
            }
        }
    }

    /// What a tool answers.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        call(&reqwest::Client::new(), &self.url, &self.keys[0], tool, arguments).await.expect("an answer")
    }

    /// The status that those credentials are answered with.
    pub(crate) async fn status(&self, id: &str, secret: &str) -> u16 {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let request =
            reqwest::Client::new().post(format!("{}/mcp", self.url)).header("content-type", "application/json");
        let request = request.bearer_auth(format!("{id}:{secret}")).body(body);
        request.send().await.expect("an answer").status().as_u16()
    }

    /// Names it to the system.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Ends it with SIGKILL.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("it ran");
    }

    /// Asks it to end, as an operator does.
    pub(crate) async fn ask_to_stop(&self) {
        let pid = self.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill").success());
    }

    /// The same, and waits: how it ended, and what it said at last.
    pub(crate) async fn stop(&mut self) -> (ExitStatus, String) {
        self.ask_to_stop().await;
        self.last_words().await
    }

    /// Waits until it has ended: how it did, and what it said at last.
    pub(crate) async fn last_words(&mut self) -> (ExitStatus, String) {
        let mut last = String::new();
        self.child.stdout.as_mut().expect("its output").read_to_string(&mut last).await.expect("text");
        (self.child.wait().await.expect("it ends"), last)
    }
}

/// What a tool answers at that URL, unless the program ends before it has said all of it.
pub(crate) async fn call(
    client: &reqwest::Client,
    url: &str,
    key: &Key,
    tool: &str,
    arguments: Value,
) -> reqwest::Result<Result<Value, Value>> {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let request = client.post(format!("{url}/mcp")).header("content-type", "application/json").body(body);
    let request = request.header("x-api-key", &key.id).header("x-api-secret", &key.secret);
    let answer = request.send().await?.bytes().await?;
    Ok(outcome(&serde_json::from_slice(&answer).expect("JSON")))
}

/// Runs it with flags with which it cannot start: exit code and what it says.
async fn refused(flags: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary()).args(flags).kill_on_drop(true).output();
    // That it serves after all shows in a minute; no other time is measured.
    let output = tokio::time::timeout(Duration::from_secs(60), output).await.expect("it is refused");
    let output = output.expect("the program runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn the_printed_curl_line_works_as_pasted() {
    let program = Program::start(&[]).await;
    let (_, after) = program.welcome.split_once("Try it:").expect("a line to paste");
    let (curl, _) = after.split_once("Connect a client").expect("its end");
    let output = Command::new("sh").arg("-c").arg(curl).output().await.expect("a shell");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains("phone-0000001") && answer.contains("\"isError\":false"), "{curl}\n{answer}");
}

#[tokio::test]
async fn it_stops_when_asked_and_its_audit_is_whole() {
    let mut program = Program::start(&["--sim-devices", "5"]).await;
    let key = &program.keys[1];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{}}}"#;
    for _ in 0..20 {
        let request =
            reqwest::Client::new().post(format!("{}/mcp", program.url)).header("content-type", "application/json");
        let answer =
            request.bearer_auth(format!("{}:{}", key.id, key.secret)).body(call).send().await.expect("an answer");
        assert!(answer.text().await.expect("text").contains("phone-0000005"));
    }
    let (status, last) = program.stop().await;
    assert!(status.success() && last.ends_with("cloudphone has stopped\n"), "{last}");
    let audit = program.data.join("audit");
    let files = std::fs::read_dir(audit).expect("the audit's folder");
    let text: String = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("text")).collect();
    assert_eq!(text.lines().filter(|line| !is_chain_line(line.as_bytes())).count(), 20);
}

#[tokio::test]
async fn a_wrong_start_says_what_is_wrong_and_which_flag_mends_it() {
    let running = Program::start(&[]).await;
    let taken = running.url.trim_start_matches("http://").to_owned();
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let cases: &[(&[&str], &str)] = &[
        (&["--listen", &taken], "another program listens there; choose another with --listen"),
        (&["--listen", "192.0.2.1:80"], "this machine has no such address; choose another with --listen"),
        (&["--listen", "nonsense"], "invalid value 'nonsense' for '--listen <ADDRESS:PORT>'"),
        (
            &["--listen", "127.0.0.1:9", "--admin-listen", "127.0.0.1:9"],
            "are both 127.0.0.1:9; each needs a port of its own",
        ),
        (&["--data", file], "for '--data <DIR>': it is a file; a folder is expected"),
        (&["--listen", "127.0.0.1:0", "--data", "/dev/null/data"], "--data names another folder"),
        (&["--sim-devices", "0"], "0 is not in 1..=1000000"),
        (&["--listen", "127.0.0.1:0", "--public-url", "ftp://x"], "--public-url"),
        (&["--listen", "127.0.0.1:0", "--allow-origin", "example.com"], "--allow-origin"),
        (&["--sim-device", "3"], "a similar argument exists: '--sim-devices'"),
    ];
    for (flags, expected) in cases {
        let (code, said) = refused(flags).await;
        assert!(code.is_some_and(|code| code != 0) && said.contains(expected), "{flags:?} said: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[tokio::test]
async fn a_proxy_in_a_private_network_is_the_operators_to_allow() {
    for (flags, allowed) in
        [(&[][..], true), (&["--allow-private-proxy"], true), (&["--allow-private-proxy=false"], false)]
    {
        let program = Program::start(flags).await;
        let proxy = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": "10.0.0.1", "port": 1080});
        let answer = program.call("set_proxy", proxy).await;
        assert_eq!(answer.is_ok(), allowed, "{flags:?}: {answer:?}");
    }
}

#[tokio::test]
async fn help_names_every_flag_and_its_environment_variable() {
    let output = Command::new(binary()).arg("--help").output().await.expect("the program runs");
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
async fn a_master_key_that_is_not_this_folders_is_refused_at_the_start() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let mut program = Program::start_at(home.clone(), &[]).await;
    program.stop().await;
    std::fs::write(program.data.join("master.key"), format!("{}\n", "ab".repeat(32))).expect("written");
    let (_, said) = refused(&["--listen", "127.0.0.1:0", "--data", program.data.to_str().expect("UTF-8")]).await;
    assert!(said.contains("the master key is not the one that this data was made with"), "{said}");
}

#[tokio::test]
async fn an_emptied_database_is_refused_at_the_start_and_left_as_it_is() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let mut program = Program::start_at(home.clone(), &[]).await;
    program.stop().await;
    let database = program.data.join("cloudphone.db");
    File::create(&database).expect("emptied");
    let (_, said) = refused(&["--listen", "127.0.0.1:0", "--data", program.data.to_str().expect("UTF-8")]).await;
    assert!(said.contains("cloudphone.db is empty, beside a master key; restore it from a backup"), "{said}");
    assert_eq!(database.metadata().expect("a file").len(), 0);
    std::fs::remove_file(&database).expect("removed");
    let (_, said) = refused(&["--listen", "127.0.0.1:0", "--data", program.data.to_str().expect("UTF-8")]).await;
    assert!(said.contains("it is missing; it held everything until") && said.contains("`restore`"), "{said}");
    std::fs::remove_file(database.with_extension("watermark")).expect("removed");
    assert_eq!(Program::start_at(home, &[]).await.keys.len(), 2, "it begins anew");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing() {
    // A full disk that has the log as well, or a pipe that nobody reads any more, is the same to the program.
    let full = File::options().write(true).open("/dev/full").expect("a full device");
    let program = Program::start_with(Arc::new(TempDir::new().expect("a temporary folder")), full, &[]).await;
    let write = async |phone: u32| {
        let arguments = json!({"device_id": format!("phone-{phone:07}"), "action": "boot"});
        program.call("set_power", arguments).await.map_err(|failure| failure["code"].clone())
    };
    write(1).await.expect("accepted");
    // The store fails once: somebody has the database locked for longer than it waits, which it logs.
    let db = rusqlite::Connection::open(program.data.join("cloudphone.db")).expect("a database");
    db.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    assert_eq!(write(7).await, Err(json!("overloaded")));
    db.execute_batch("ROLLBACK").expect("no lock");
    write(8).await.expect("it writes again");
}
