//! Replicas of a service that are stopped and started again one by one, by the program of the same
//! contract or of a later one, with clients that reconnect. Without PostgreSQL on the machine,
//! these cases are left out.

use super::outside::outside;
use super::upgrade::Build;
use driver::{Instance, KeyPair, ProgramOperator, Start, get, outcome, rpc};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use test_postgres::TestPostgres;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolwarrant_postgres::Address;

const NAMES: [&str; 2] = ["one", "two"];

/// The number of clients.
const CLIENTS: usize = 12;

/// The number of lamps of each client. A lamp has cooled down before its turn comes again.
const LAMPS: u64 = 4;

/// The number of times that a client repeats a request, for a minute and more, before it counts as
/// failed.
const ATTEMPTS: usize = 3_000;

/// Replicas that share their lamps, which are in `lamps` in the home folder.
struct Replicas {
    home: TempDir,
    server: TestPostgres,
    url: String,
    running: BTreeMap<&'static str, Instance>,
    /// The addresses of the listener and of the monitor of each that runs.
    addresses: watch::Sender<Vec<(SocketAddr, String)>>,
}

impl Replicas {
    /// Starts these replicas; `None` if PostgreSQL is not installed.
    async fn start_all(builds: &[(&'static str, &Build)]) -> Option<Self> {
        let (server, home) = (TestPostgres::start()?, TempDir::new().expect("a temporary folder"));
        let url = server.schema().await.expect("the server runs").url;
        fs::create_dir(home.path().join("lamps")).expect("a folder");
        let mut replicas = Self { home, server, url, running: BTreeMap::new(), addresses: watch::Sender::default() };
        for (name, build) in builds {
            replicas.start(name, build).await;
        }
        Some(replicas)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.home.path().join(file)
    }

    async fn start(&mut self, name: &'static str, build: &Build) {
        let (home, data) = (self.path(name), self.path(name).join("data"));
        let store = ["--store", &*self.url, "--replica", name];
        if !home.exists() {
            DirBuilder::new().mode(0o700).recursive(true).create(&data).expect("a folder");
            symlink(self.path("lamps"), home.join("lamps")).expect("a link");
            if self.running.is_empty() {
                let operator = ProgramOperator { program: build.program().await, data };
                operator.json(["store", "init"].iter().chain(&store)).await.expect("tables");
            } else {
                fs::copy(self.path("one/data/master.key"), data.join("master.key")).expect("the key of the first");
            }
        }
        let flags = ["--admin-listen", "127.0.0.1:0", "--drain-seconds", "1", "--authority-lease", "20"];
        let instance =
            Start::new(build.program().await, home).flags(&store).flags(&flags).ready().await.expect("it serves");
        self.running.insert(name, instance);
        self.announce();
    }

    /// Stops a replica as an operator does. Clients learn of that by its answers.
    async fn stop(&mut self, name: &str) {
        let mut instance = self.running.remove(name).expect("it runs");
        let (status, last) = instance.stop().await.expect("it ends");
        assert!(status.success() && last.is_empty(), "{status} {last}{:?}", instance.log());
        self.announce();
    }

    fn announce(&self) {
        let monitor = |instance: &Instance| instance.monitor.clone().expect("the monitor's URL");
        let addresses = self.running.values().map(|instance| (instance.address, monitor(instance)));
        self.addresses.send_replace(addresses.collect());
    }

    /// Makes an application that may switch these lamps. Returns its key.
    async fn key(&self, lamps: &[String]) -> KeyPair {
        let operator = &self.running.values().next().expect("one runs").operator;
        for line in [
            "app create evening --permission switch --requests-per-minute 1000000".to_owned(),
            format!("lamp assign evening {}", lamps.join(" ")),
        ] {
            operator.json(line.split(' ')).await.expect("JSON");
        }
        operator.key("evening").await.expect("a key")
    }

    /// Returns the tasks of the commands that the lamps got.
    fn sends(&self) -> Vec<String> {
        let sends = fs::read_to_string(self.path("lamps/sends")).unwrap_or_default();
        sends.lines().map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
    }

    async fn count(&self, sql: &str) -> i64 {
        self.server.count(&Address { url: self.url.clone(), password: None }, sql).await
    }
}

/// Clients that write without pause. Each has one session at a time, at any replica.
struct RollingLoad {
    key: KeyPair,
    addresses: watch::Receiver<Vec<(SocketAddr, String)>>,
    is_over: AtomicBool,
    /// The number of the next write.
    next: AtomicU64,
    requests: AtomicU64,
    /// Requests that were made again, because there was no answer.
    repeated: AtomicU64,
    /// The ids of tasks that have ended, by the name that the light had when it was asked for.
    ended: Mutex<BTreeMap<String, String>>,
    failures: Mutex<Vec<String>>,
}

/// A client's view of a replica: its address, and the name of the light in its list of tools.
struct Session(SocketAddr, String);

impl RollingLoad {
    /// Begins a session at the next replica that is ready.
    async fn connect(&self, turn: &mut usize) -> Option<Session> {
        let (address, monitor) = {
            let addresses = self.addresses.borrow();
            *turn += 1;
            addresses.get(*turn % addresses.len().max(1))?.clone()
        };
        if get(&format!("{monitor}/readyz")).await.ok()?.status != 200 {
            return None;
        }
        let tools = rpc(address, &self.key, "tools/list", &json!({})).await.ok()?;
        let tool = tools["result"]["tools"].as_array()?.iter().find(|tool| tool["name"] == "dim_lamp")?;
        let names = tool["inputSchema"]["properties"].as_object()?.keys();
        let light = names.into_iter().find(|name| !["lamp_id", "idempotency_key"].contains(&name.as_str()))?;
        Some(Session(address, light.clone()))
    }

    /// Calls a tool, at the next replica if one does not answer. `arguments` are those for a name
    /// of the light. Returns the result and that name.
    async fn call(
        &self,
        session: &mut Option<Session>,
        turn: &mut usize,
        (tool, arguments): (&str, &(dyn Fn(&str) -> Value + Sync)),
    ) -> Result<(Value, String), String> {
        for attempt in 0..ATTEMPTS {
            if session.is_none() {
                *session = self.connect(turn).await;
            }
            let Some(Session(address, light)) = &*session else {
                sleep(Duration::from_millis(20)).await;
                continue;
            };
            let call = json!({"name": tool, "arguments": arguments(light)});
            self.requests.fetch_add(u64::from(attempt == 0), Relaxed);
            match rpc(*address, &self.key, "tools/call", &call).await {
                Ok(answer) if answer.get("error").is_some() => return Err(format!("{call}: {answer}")),
                Ok(answer) => {
                    let result = outcome(&answer).map_err(|error| error.to_string())?;
                    return result.map(|result| (result, light.clone())).map_err(|error| format!("{call}: {error}"));
                }
                Err(_) => {
                    self.repeated.fetch_add(1, Relaxed);
                    *session = None;
                }
            }
        }
        Err(format!("{tool} had no answer"))
    }

    /// Dims one lamp after the other, each at the next replica, and waits for the end.
    async fn dim(self: Arc<Self>, client: usize) {
        let (mut session, mut turn, mut lamp) = (None, client, 0);
        while !self.is_over.load(Relaxed) {
            let number = self.next.fetch_add(1, Relaxed);
            lamp = (lamp + 1) % LAMPS;
            if let Err(why) = self.dim_once(&name(client, lamp), number, &mut session, &mut turn).await {
                self.failures.lock().expect("no panic").push(why);
            }
            session = None;
        }
    }

    async fn dim_once(
        &self,
        lamp: &str,
        number: u64,
        session: &mut Option<Session>,
        turn: &mut usize,
    ) -> Result<(), String> {
        let light = number % 101;
        let order = |name: &str| json!({"lamp_id": lamp, name: light, "idempotency_key": format!("order-{number}")});
        let (task, name) = self.call(session, turn, ("dim_lamp", &order)).await?;
        let poll = |_: &str| json!({"task_id": task["task_id"], "wait_seconds": 20});
        let ended = loop {
            let (task, _) = self.call(session, turn, ("get_task", &poll)).await?;
            if task["terminal"] == true {
                break task;
            }
        };
        let (seen, _) = self.call(session, turn, ("get_lamp", &|_: &str| json!({"lamp_id": lamp}))).await?;
        if ended["status"] != "success" || seen["light"] != light {
            return Err(format!("{ended}, and the lamp is {seen}"));
        }
        let id = ended["task_id"].as_str().unwrap_or_default().to_owned();
        self.ended.lock().expect("no panic").insert(id, name);
        Ok(())
    }

    /// Returns the number of ended tasks for each name of the light.
    fn count_ended(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.ended.lock().expect("no panic").values().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
        counts
    }

    /// Waits until clients have ended that many tasks more.
    async fn go_on(&self, tasks: usize) {
        let count = || self.ended.lock().expect("no panic").len();
        let until = count() + tasks;
        while count() < until && self.failures.lock().expect("no panic").is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns the id of a lamp.
fn name(client: usize, lamp: u64) -> String {
    format!("plain-{client}-{lamp}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_and_no_task_is_lost_or_sent_twice_while_replicas_are_restarted_and_upgraded() {
    let [first, second, _] = &outside().await.versions;
    let Some(mut replicas) = Replicas::start_all(&NAMES.map(|name| (name, first))).await else { return };
    fs::write(replicas.path("lamps/open"), "").expect("written");
    let lamps: Vec<_> = (0..CLIENTS).flat_map(|client| (0..LAMPS).map(move |lamp| name(client, lamp))).collect();
    let load = Arc::new(RollingLoad {
        key: replicas.key(&lamps).await,
        addresses: replicas.addresses.subscribe(),
        is_over: AtomicBool::new(false),
        next: AtomicU64::new(0),
        requests: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
        ended: Mutex::default(),
        failures: Mutex::default(),
    });
    let mut clients: JoinSet<()> = (0..CLIENTS).map(|client| Arc::clone(&load).dim(client)).collect();
    for build in [first, second] {
        for name in NAMES {
            load.go_on(CLIENTS).await;
            replicas.stop(name).await;
            replicas.start(name, build).await;
        }
    }
    load.go_on(CLIENTS).await;
    load.is_over.store(true, Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("no client panics");
    }

    let (ended, sends) = (load.ended.lock().expect("no panic").len(), replicas.sends());
    println!(
        "{} requests, {} repeated, {} failed; tasks by the name of the light {:?}",
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
