//! Platforms as an operator and a client see them: the program with a configuration, against
//! doubles of the platform.

mod adb;
mod mistakes;
mod outage;
mod passing;
mod refused;
mod removed;
mod served;
mod unread;
mod unserved;

use crate::harness::Key;
use crate::harness::double::{Double, table};
use crate::harness::program::{Program, operate};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::sleep;

const FAST: &[&str] = &["--set", "task_ms=100", "--set", "restart_ms=300", "--set", "online_ms=100"];

struct Site {
    home: Arc<TempDir>,
    keys: OnceLock<Vec<Key>>,
}

impl Site {
    fn new() -> Self {
        Self { home: Arc::new(TempDir::new().expect("a temporary folder")), keys: OnceLock::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn configure(&self, text: &str) {
        std::fs::write(self.path("cloudphone.toml"), text).expect("a file");
    }

    fn table(&self, name: &str, double: &Double) -> String {
        let table = table(name, double, &self.home);
        table.replace("power-seconds = 10", "power-seconds = 1").replace("proxy-seconds = 5", "proxy-seconds = 1")
    }

    async fn start(&self, phones: usize, flags: &[&str]) -> Program {
        let config = self.path("cloudphone.toml");
        let flags = [&["--config", config.to_str().expect("text")], flags].concat();
        let mut program = Program::start_at(self.home.clone(), &flags).await;
        program.keys = self.keys.get_or_init(|| program.keys.clone()).clone();
        until(async || list_all(&program).await.len() == phones).await;
        program
    }

    async fn operate(&self, line: &str) -> (i32, String) {
        let config = self.path("cloudphone.toml");
        operate(&self.path("data"), &format!("{line} --config {}", config.display())).await
    }

    fn read_knowledge(&self, id: &str) -> Value {
        let database = Connection::open(self.path("data/cloudphone.db")).expect("a database");
        let name = format!("phones/{id}");
        let entry =
            database.query_row("SELECT content FROM file WHERE name = ?1", [name], |row| row.get::<_, Vec<u8>>(0));
        let mut entry: Value = serde_json::from_slice(&entry.expect("an entry")).expect("JSON");
        entry["known"].take()
    }

    fn ledger(&self) -> BTreeMap<String, i64> {
        let database = Connection::open(self.path("data/cloudphone.db")).expect("a database");
        let mut counts = database.prepare("SELECT kind, count(*) FROM ledger GROUP BY kind").expect("a table");
        let rows = counts.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }
}

/// Returns a site with this many phones of an account, its double, and the program that serves it.
async fn lab(pads: u32, head: &str, flags: &[&str]) -> (Site, Double, Program) {
    let (site, double) = (Site::new(), Double::start(pads, FAST).await);
    site.configure(&format!("{head}{}", site.table("lab", &double)));
    let program = site.start(pads as usize, flags).await;
    (site, double, program)
}

fn echo() -> String {
    // No other test listens on this address.
    let free = TcpListener::bind("127.0.0.9:0").and_then(|port| port.local_addr()).expect("a free port");
    format!("echo-listen = \"{free}\"\necho-url = \"http://{free}\"\n")
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let held = kit::wait_for(async || {
        sleep(Duration::from_millis(80)).await;
        if holds().await { Ok(()) } else { Err("the condition does not hold".to_owned()) }
    });
    held.await.expect("it holds at some time");
}

async fn list_all(program: &Program) -> Vec<Value> {
    let page = program.call("list_devices", json!({"limit": 200})).await.expect("a page");
    page["devices"].as_array().expect("phones").clone()
}

fn id(platform: &str, code: &str) -> String {
    format!("{platform}-{}", code.to_lowercase())
}

async fn count_requests(double: &Double, endpoint: &str) -> usize {
    double.requests(endpoint).await.iter().filter(|line| line["accepted"] == true).count()
}

/// Leaves out of what `platform check` prints the log, and the lines that each check has.
fn findings(said: &str) -> String {
    const FRAME: [&str; 5] = ["TIME ", "platform ", "steps", "STEP ", "act id "];
    let is_found = |line: &&str| !line.is_empty() && !FRAME.iter().any(|start| line.starts_with(start));
    said.lines().filter(is_found).map(|line| format!("{line}\n")).collect()
}

async fn end(program: &Program, tool: &str, arguments: Value) -> Value {
    let accepted = program.call(tool, arguments).await.expect("accepted");
    program.task(&accepted["task_id"]).await
}

fn assert_nowhere(folder: &Path, secrets: &[&str]) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Ok(bytes) = (if path.is_dir() {
            assert_nowhere(&path, secrets);
            continue;
        } else {
            std::fs::read(&path)
        }) else {
            continue;
        };
        for secret in secrets {
            let stands = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!stands, "{secret} stands in {}", path.display());
        }
    }
}
