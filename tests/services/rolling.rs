//! Replicas of a service that hand over to each other, by the program of the same contract or of a
//! later one, with clients that reconnect. Without PostgreSQL on the machine, these cases are left
//! out.

use super::outside::outside;
use super::upgrade::Build;
use kit::{Instance, KeyPair, Process, ProgramOperator, Start, TestPostgres, get, outcome, rpc, wait_for};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

const CLIENTS: usize = 12;

/// Of each client. A share has cooled down before its turn comes again.
const SHARES: u64 = 4;

/// A client repeats a request for a minute and more before it counts as failed.
const ATTEMPTS: usize = 3_000;

/// They serve the same folder, `shares` in the home folder. One leads at a time.
struct Replicas {
    home: TempDir,
    server: TestPostgres,
    url: String,
    leader: Instance,
    /// Of its listener and of its monitor.
    address: watch::Sender<(SocketAddr, String)>,
}

impl Replicas {
    /// Returns `None` if PostgreSQL is not installed.
    async fn begin(name: &'static str, build: &Build) -> Option<Self> {
        let (server, home) = (TestPostgres::start()?, TempDir::new().expect("a temporary folder"));
        let url = server.schema().await.expect("the server runs");
        fs::create_dir(home.path().join("shares")).expect("a folder");
        let (process, operator) = Self::spawn(home.path(), &url, name, build).await;
        let leader = Instance::ready(process, operator).await.expect("it serves");
        let address = address_of(&leader);
        Some(Self { home, server, url, leader, address: watch::Sender::new(address) })
    }

    fn path(&self, file: &str) -> PathBuf {
        self.home.path().join(file)
    }

    async fn spawn(home: &Path, url: &str, name: &str, build: &Build) -> (Process, ProgramOperator) {
        let (folder, data) = (home.join(name), home.join(name).join("data"));
        let store = ["--store", url, "--replica", name];
        let operator = ProgramOperator { program: build.program().await, data: data.clone() };
        if !folder.exists() {
            DirBuilder::new().mode(0o700).recursive(true).create(&data).expect("a folder");
            symlink(home.join("shares"), folder.join("shares")).expect("a link");
            let first = home.join("one/data/master.key");
            if first.exists() {
                fs::copy(first, data.join("master.key")).expect("the key of the first");
            } else {
                operator.json(["store", "init"].iter().chain(&store)).await.expect("tables");
            }
        }
        let flags = ["--admin-listen", "127.0.0.1:0", "--authority-lease", "20"];
        let start = Start::new(build.program().await, folder).flags(&store).flags(&flags);
        (start.spawn().expect("it starts"), operator)
    }

    /// Stops the one that leads as an operator does, once the other one waits.
    async fn hand_over(&mut self, name: &str, build: &Build) {
        let log = self.path(name).join("log");
        let waits = || fs::read_to_string(&log).unwrap_or_default().matches("this process waits to lead").count();
        let before = waits();
        let (process, operator) = Self::spawn(self.home.path(), &self.url, name, build).await;
        let waiting = wait_for(async || if waits() > before { Ok(()) } else { Err("it does not wait".to_owned()) });
        waiting.await.expect("it waits");
        let (stopped, leader) = tokio::join!(self.leader.stop(), Instance::ready(process, operator));
        let (status, last) = stopped.expect("it ends");
        assert!(status.success() && last.is_empty(), "{status} {last}");
        self.leader = leader.expect("it leads");
        self.address.send_replace(address_of(&self.leader));
    }

    async fn key(&self, shares: &[String]) -> KeyPair {
        let operator = &self.leader.operator;
        for line in [
            "app create editor --permission change --requests-per-minute 1000000".to_owned(),
            format!("share assign editor {}", shares.join(" ")),
        ] {
            operator.json(line.split(' ')).await.expect("JSON");
        }
        operator.key("editor").await.expect("a key")
    }

    fn sends(&self) -> Vec<String> {
        let sends = fs::read_to_string(self.path("shares/sends")).unwrap_or_default();
        sends.lines().map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
    }

    async fn count(&self, sql: &str) -> i64 {
        self.server.count(&self.url, sql).await
    }
}

/// Each client has one session at a time.
struct RollingLoad {
    key: KeyPair,
    address: watch::Receiver<(SocketAddr, String)>,
    is_over: AtomicBool,
    /// The number of the next write.
    next: AtomicU64,
    requests: AtomicU64,
    /// Made again, because there was no answer.
    repeated: AtomicU64,
    /// The ids of tasks that have ended, by the name that the text had when it was sent.
    ended: Mutex<BTreeMap<String, String>>,
    failures: Mutex<Vec<String>>,
}

/// The address of a replica, and the name of the text in its list of tools.
struct Session(SocketAddr, String);

impl RollingLoad {
    /// Returns `None` unless the replica that leads is ready.
    async fn connect(&self) -> Option<Session> {
        let (address, monitor) = self.address.borrow().clone();
        if get(&format!("{monitor}/readyz")).await.ok()?.status != 200 {
            return None;
        }
        let tools = rpc(address, &self.key, "tools/list", &json!({})).await.ok()?;
        let tool = tools["result"]["tools"].as_array()?.iter().find(|tool| tool["name"] == "write_file")?;
        let names = tool["inputSchema"]["properties"].as_object()?.keys();
        let text =
            names.into_iter().find(|other| !["share_id", "name", "idempotency_key"].contains(&other.as_str()))?;
        Some(Session(address, text.clone()))
    }

    /// Repeats a call without an answer. `arguments` are those for a name of the text. Returns the
    /// result and that name.
    async fn call(
        &self,
        session: &mut Option<Session>,
        (tool, arguments): (&str, &(dyn Fn(&str) -> Value + Sync)),
    ) -> Result<(Value, String), String> {
        for attempt in 0..ATTEMPTS {
            if session.is_none() {
                *session = self.connect().await;
            }
            let Some(Session(address, text)) = &*session else {
                sleep(Duration::from_millis(20)).await;
                continue;
            };
            let call = json!({"name": tool, "arguments": arguments(text)});
            self.requests.fetch_add(u64::from(attempt == 0), Relaxed);
            match rpc(*address, &self.key, "tools/call", &call).await {
                // Nothing was done. Behind a balancer, that would repeat the request elsewhere.
                Ok(answer) if answer["error"]["data"]["code"] == "handed_over" => *session = None,
                Ok(answer) if answer.get("error").is_some() => return Err(format!("{call}: {answer}")),
                Ok(answer) => {
                    let result = outcome(&answer).map_err(|error| error.to_string())?;
                    return result.map(|result| (result, text.clone())).map_err(|error| format!("{call}: {error}"));
                }
                Err(_) => {
                    self.repeated.fetch_add(1, Relaxed);
                    *session = None;
                }
            }
        }
        Err(format!("{tool} had no answer"))
    }

    /// Uses a session of its own for each write.
    async fn write(self: Arc<Self>, client: usize) {
        let (mut session, mut share) = (None, 0);
        while !self.is_over.load(Relaxed) {
            let number = self.next.fetch_add(1, Relaxed);
            share = (share + 1) % SHARES;
            if let Err(why) = self.write_once(&name(client, share), number, &mut session).await {
                self.failures.lock().expect("no panic").push(why);
            }
            session = None;
        }
    }

    async fn write_once(&self, share: &str, number: u64, session: &mut Option<Session>) -> Result<(), String> {
        let (text, key) = ("x".repeat(number as usize % 101), format!("order-{number}"));
        let order = |name: &str| json!({"share_id": share, "name": "today.md", name: text, "idempotency_key": key});
        let (task, name) = self.call(session, ("write_file", &order)).await?;
        let poll = |_: &str| json!({"task_id": task["task_id"], "wait_seconds": 20});
        let ended = loop {
            let (task, _) = self.call(session, ("get_task", &poll)).await?;
            if task["terminal"] == true {
                break task;
            }
        };
        let (seen, _) = self.call(session, ("list_files", &|_: &str| json!({"share_id": share}))).await?;
        if ended["status"] != "success" || seen["files"][0]["size"] != text.len() {
            return Err(format!("{ended}, and the share is {seen}"));
        }
        let id = ended["task_id"].as_str().unwrap_or_default().to_owned();
        self.ended.lock().expect("no panic").insert(id, name);
        Ok(())
    }

    fn count_ended(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.ended.lock().expect("no panic").values().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
        counts
    }

    async fn go_on(&self, tasks: usize) {
        let count = || self.ended.lock().expect("no panic").len();
        let until = count() + tasks;
        while count() < until && self.failures.lock().expect("no panic").is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn address_of(replica: &Instance) -> (SocketAddr, String) {
    (replica.address, replica.monitor.clone().expect("the monitor's URL"))
}

fn name(client: usize, share: u64) -> String {
    format!("plain-{client}-{share}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_and_no_task_is_lost_or_sent_twice_while_replicas_hand_over_and_are_upgraded() {
    let [first, second, _] = &outside().await.versions;
    let Some(mut replicas) = Replicas::begin("one", first).await else { return };
    fs::write(replicas.path("shares/open"), "").expect("written");
    let shares: Vec<_> = (0..CLIENTS).flat_map(|client| (0..SHARES).map(move |share| name(client, share))).collect();
    shares.iter().for_each(|share| fs::create_dir(replicas.path("shares").join(share)).expect("a folder"));
    let load = Arc::new(RollingLoad {
        key: replicas.key(&shares).await,
        address: replicas.address.subscribe(),
        is_over: AtomicBool::new(false),
        next: AtomicU64::new(0),
        requests: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
        ended: Mutex::default(),
        failures: Mutex::default(),
    });
    let mut clients: JoinSet<()> = (0..CLIENTS).map(|client| Arc::clone(&load).write(client)).collect();
    for (name, build) in [("two", first), ("one", second), ("two", second)] {
        load.go_on(CLIENTS).await;
        replicas.hand_over(name, build).await;
    }
    load.go_on(CLIENTS).await;
    load.is_over.store(true, Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("no client panics");
    }

    let (ended, sends) = (load.ended.lock().expect("no panic").len(), replicas.sends());
    println!(
        "{} requests, {} repeated, {} failed; tasks by the name of the text {:?}",
        load.requests.load(Relaxed),
        load.repeated.load(Relaxed),
        load.failures.lock().expect("no panic").len(),
        load.count_ended(),
    );
    assert_eq!(*load.failures.lock().expect("no panic"), Vec::<String>::new());
    assert_eq!(load.count_ended().len(), 2, "both contracts had clients");
    assert_eq!((sends.len(), BTreeSet::from_iter(sends).len()), (ended, ended), "each task is sent once");
    assert_eq!(replicas.count("SELECT count(*) FROM task").await, 0, "no task is left");
    assert_eq!(replicas.count("SELECT count(*) FROM ended").await, ended as i64, "clients know each task");
}
