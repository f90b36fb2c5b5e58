//! Several shops on one PostgreSQL, with the same machines: one leads, and the others wait. Without
//! PostgreSQL on the machine, these cases are left out.

use crate::process::{call, end, operate, operator, program, says};
use kit::{Instance, Process, ProgramOperator, TestPostgres, get, wait_for};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, File};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::task::JoinSet;

pub(crate) struct Cluster {
    pub(crate) server: TestPostgres,
    pub(crate) url: String,
    /// Seconds for which a shop answers without the store.
    lease: &'static str,
    home: TempDir,
}

impl Cluster {
    /// Returns `None` if PostgreSQL is not installed.
    pub(crate) async fn make() -> Option<Self> {
        let server = TestPostgres::start()?;
        let url = server.schema().await.expect("the server runs");
        // With the longest lease, a shop that a busy machine holds up is not evicted.
        let cluster = Self { server, url, lease: "20", home: TempDir::new().expect("a temporary folder") };
        fs::create_dir(cluster.home.path().join("machines")).expect("a folder");
        cluster.says("one", "store init --replica one", 0, "").await;
        Some(cluster)
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.count(sql).await;
    }

    /// Keeps tasks from going on or changing their owner.
    pub(crate) async fn hold_tasks(&self) {
        let function = "CREATE FUNCTION hold_tasks() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'held'; END $$";
        self.run(function).await;
        self.run("CREATE TRIGGER hold_tasks BEFORE UPDATE ON task FOR EACH ROW EXECUTE FUNCTION hold_tasks()").await;
    }

    pub(crate) async fn release_tasks(&self) {
        self.run("DROP FUNCTION hold_tasks CASCADE").await;
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn with_store(&self, line: &str) -> String {
        format!("{line} --store {}", self.url)
    }

    /// Runs a command on the store itself.
    pub(crate) async fn says(&self, name: &str, line: &str, code: i32, part: &str) -> String {
        says(&self.data(name), &self.with_store(line), code, part).await
    }

    async fn count(&self, sql: &str) -> i64 {
        self.server.count(&self.url, sql).await
    }

    pub(crate) fn make_folder(&self, name: &str) -> PathBuf {
        let data = self.data(name);
        if !data.exists() {
            DirBuilder::new().mode(0o700).create(&data).expect("a folder");
            fs::copy(self.data("one").join("master.key"), data.join("master.key")).expect("the key of the first");
        }
        data
    }

    /// Starts a shop that leads at once, or as soon as the leader ends.
    pub(crate) async fn start(&self, name: &str) -> Instance {
        let (process, operator) = self.spawn(name, "127.0.0.1:0");
        Instance::ready(process, operator).await.expect("it serves")
    }

    /// Returns once the shop waits for another one that leads.
    pub(crate) async fn stand_by(&self, name: &str, monitor: &str) -> (Process, ProgramOperator) {
        let (process, operator) = self.spawn(name, monitor);
        let log = self.home.path().join(format!("{name}.log"));
        let waits = wait_for(async || match fs::read_to_string(&log) {
            Ok(log) if log.contains("this process waits to lead") => Ok(()),
            log => Err(format!("{log:?}")),
        });
        waits.await.expect("it waits");
        (process, operator)
    }

    fn spawn(&self, name: &str, monitor: &str) -> (Process, ProgramOperator) {
        let data = self.make_folder(name);
        let mut command = program();
        command.args(["--json", "--demo", "--listen", "127.0.0.1:0", "--admin-listen", monitor]);
        command.args(["--authority-lease", self.lease]);
        command.args(["--store", &self.url, "--replica", name]).arg("--data").arg(&data);
        command.arg("--machines").arg(self.home.path().join("machines"));
        command.stderr(File::create(self.home.path().join(format!("{name}.log"))).expect("a log"));
        (Process::start(command).expect("the program starts"), operator(&data))
    }

    pub(crate) fn pages(&self, printer: &str) -> u64 {
        self.home.path().join("machines").join(printer).metadata().map_or(0, |about| about.len())
    }
}

pub(crate) fn free_place() -> String {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").to_string()
}

pub(crate) async fn expect_unready(monitor: &str, why: &str) {
    let ready = get(&format!("http://{monitor}/readyz")).await.expect("an answer");
    assert!(ready.status == 503 && ready.body.contains(why), "{} {}", ready.status, ready.body);
}

pub(crate) async fn stop(shop: &mut Process) {
    let (status, last) = shop.stop().await.expect("it runs");
    assert!(status.success() && last.is_empty(), "{status} {last}");
}

/// Returns the answer of a command with `--json`, which the log may follow.
pub(crate) fn answer(said: &str) -> Value {
    let mut answers = serde_json::Deserializer::from_str(said).into_iter();
    answers.next().expect("an answer").expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_killed_shop_is_ended_by_the_one_that_waited_with_evidence_and_printed_once() {
    let Some(mut cluster) = Cluster::make().await else { return };
    // The one that waits leads a second after this lease is over.
    cluster.lease = "2";
    let mut one = cluster.start("one").await;
    let (two, operator) = cluster.stand_by("two", "127.0.0.1:0").await;
    let key = one.keys[0].clone();
    let print = |printer: &str| json!({"printer_id": printer, "mode": "draft", "idempotency_key": printer});
    // The answer of this printer is lost, so the shop is still reading when it is killed.
    let job = call(one.address, &key, "print_page", print("p-4")).await.expect("a job");
    one.kill().await.expect("it runs");
    cluster.hold_tasks().await;
    let two = Instance::ready(two, operator).await.expect("it leads");
    let repeated = call(two.address, &key, "print_page", print("p-4")).await.expect("the same job");
    assert_eq!((&repeated["task_id"], &repeated["idempotent_hit"]), (&job["task_id"], &json!(true)));
    cluster.release_tasks().await;
    let ended = end(&two, &key, &job).await;
    assert_eq!((&ended["status"], cluster.pages("p-4")), (&json!("success"), 1), "{ended}");
    // The former leader waits in its turn, and leads at once when this one hands over.
    let (one, operator) = cluster.stand_by("one", "127.0.0.1:0").await;
    let job = call(two.address, &key, "print_page", print("p-1")).await.expect("a job");
    let mut two = two;
    let (stopped, one) = tokio::join!(two.stop(), Instance::ready(one, operator));
    let (one, (status, last)) = (one.expect("it leads"), stopped.expect("it ends"));
    assert!(status.success() && last.is_empty(), "{status} {last}");
    assert_eq!(end(&one, &key, &job).await["status"], "success");
    assert_eq!(cluster.pages("p-1"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_that_waits_reads_serves_nobody_and_names_the_one_that_leads() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    let monitor = free_place();
    let (mut two, _) = cluster.stand_by("two", &monitor).await;
    let waiting = cluster.data("two");
    expect_unready(&monitor, "the replica `one`").await;
    says(&waiting, "ready", 5, "the replica `one`").await;
    says(&cluster.data("one"), "app create late --permission print", 0, "").await;
    for line in ["app list --json", "doctor"] {
        says(&waiting, line, 0, "").await;
    }
    // Two processes have at most 6 sessions each, however many commands come at once.
    let list = |_| {
        let waiting = waiting.clone();
        async move { operate(&waiting, "app list").await.0 }
    };
    let asking = tokio::spawn((0..12).map(list).collect::<JoinSet<_>>().join_all());
    let (sessions, mut most) = ("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'toolwarrant%'", 0);
    while !asking.is_finished() {
        most = most.max(cluster.count(sessions).await);
    }
    assert_eq!((asking.await.expect("no panic"), most <= 12), (vec![0; 12], true), "{most}");
    // It shows what the leader has changed.
    says(&waiting, "app list --json", 0, "\"late\"").await;
    let create = "app create later --permission print";
    for line in [create, "console"] {
        says(&waiting, line, 5, "the replica `one` on the machine").await;
    }
    // A process that waits stops at once.
    stop(&mut two).await;
    stop(&mut one).await;
    // A command needs no server, only the URL and the key.
    says(&waiting, &cluster.with_store(create), 0, "").await;
    // Each trail is whole, with the lines of the acts that were made in its folder.
    for (name, other) in [("one", "two"), ("two", "one")] {
        cluster.says(name, "audit verify", 0, "").await;
        cluster.says(name, "doctor", 0, "").await;
        cluster.says(name, "audit verify --json", 0, &format!("\"replica\": \"{other}\"")).await;
        cluster.says(name, "audit tail -n 50", 0, "app create").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_whose_session_in_the_store_has_ended_ends_and_tells_the_store() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    cluster.run("SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory'").await;
    let (status, _) = one.end().await.expect("it runs");
    assert!(!status.success(), "{status}");
    assert_eq!(cluster.count("SELECT count(*) FROM replica WHERE state = 'left'").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_whose_machines_are_its_own_and_a_folder_of_another_replica_are_refused() {
    let Some(cluster) = Cluster::make().await else { return };
    cluster.says("one", "serve --listen 127.0.0.1:0", 2, "its machines exist in this process alone").await;
    // It has not joined, so it has taken the place of nobody.
    assert_eq!(cluster.count("SELECT count(*) FROM replica").await, 0);
    cluster.says("new", "store init", 1, "there is a store already").await;
    let files = |name: &str| ["master.key", "replica"].map(|file| cluster.data(name).join(file).exists());
    assert_eq!(files("new"), [false, false], "a refused command has made no key");
    fs::copy(cluster.data("one").join("master.key"), cluster.data("new").join("master.key")).expect("the key");
    cluster.says("new", "app create a --permission print", 1, "name one with --replica").await;
    for (line, why) in [
        ("app list --replica two", "belongs to the replica `one`"),
        ("backup /nowhere/b", "pg_basebackup"),
        ("restore /nowhere/b", "`store begin-again`"),
        ("clock accept", "replicas take the time from PostgreSQL"),
    ] {
        cluster.says("one", line, 1, why).await;
    }
    says(&cluster.data("one"), "app list", 1, "--store").await;
    says(&cluster.data("one"), "app list --store mysql://a@b/c", 1, "as in postgres://user@host/db").await;
    says(&cluster.data("one"), "app list --replica one", 2, "--replica is for a store").await;
}
