//! Several shops on one PostgreSQL, with the same machines. Without PostgreSQL on the machine,
//! these cases are left out.

use crate::process::{call, operate, program};
use driver::{Instance, KeyPair, Process, ProgramOperator};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use tempfile::TempDir;
use test_postgres::TestPostgres;
use toolwarrant_postgres::Address;

/// A store, and the folders of the shops that share it.
pub(crate) struct Cluster {
    /// Runs until the end of the test.
    pub(crate) server: TestPostgres,
    pub(crate) url: String,
    /// The seconds for which a shop answers without the store.
    lease: &'static str,
    home: TempDir,
}

impl Cluster {
    /// Makes the store; `None` if PostgreSQL is not installed.
    pub(crate) async fn make() -> Option<Self> {
        let server = TestPostgres::start()?;
        let url = server.schema().await.expect("the server runs").url;
        // The longest lease: a shop that a busy machine holds up is not evicted.
        let cluster = Self { server, url, lease: "20", home: TempDir::new().expect("a temporary folder") };
        fs::create_dir(cluster.home.path().join("machines")).expect("a folder");
        let (code, said) = operate(&cluster.data("one"), &cluster.with_store("store init --replica one")).await;
        assert_eq!(code, 0, "{said}");
        Some(cluster)
    }

    /// Runs a statement as the owner of the tables.
    pub(crate) async fn run(&self, sql: &str) {
        self.count(sql).await;
    }

    /// Lets no task go on, and none change its owner.
    pub(crate) async fn hold_tasks(&self) {
        let function = "CREATE FUNCTION hold_tasks() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'held'; END $$";
        self.run(function).await;
        self.run("CREATE TRIGGER hold_tasks BEFORE UPDATE ON task FOR EACH ROW EXECUTE FUNCTION hold_tasks()").await;
    }

    /// Ends that.
    pub(crate) async fn release_tasks(&self) {
        self.run("DROP FUNCTION hold_tasks CASCADE").await;
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn with_store(&self, line: &str) -> String {
        format!("{line} --store {}", self.url)
    }

    /// Runs a statement. Returns the number in its only row.
    async fn count(&self, sql: &str) -> i64 {
        self.server.count(&Address { url: self.url.clone(), password: None }, sql).await
    }

    /// Makes a folder with the master key, if there is none.
    pub(crate) fn make_folder(&self, name: &str) -> PathBuf {
        let data = self.data(name);
        if !data.exists() {
            DirBuilder::new().mode(0o700).create(&data).expect("a folder");
            fs::copy(self.data("one").join("master.key"), data.join("master.key")).expect("the key of the first");
        }
        data
    }

    /// Starts a shop of that name on a free port.
    pub(crate) async fn start(&self, name: &str) -> Instance {
        let data = self.make_folder(name);
        let mut command = program();
        command.args(["--json", "--demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(["--drain-seconds", "0", "--authority-lease", self.lease]);
        command.args(["--store", &self.url, "--replica", name]).arg("--data").arg(&data);
        command.arg("--machines").arg(self.home.path().join("machines"));
        command.stderr(File::create(self.home.path().join(format!("{name}.log"))).expect("a log"));
        let process = Process::start(command).expect("the program starts");
        let operator = ProgramOperator { program: env!("CARGO_BIN_EXE_print-shop").into(), data };
        Instance::ready(process, operator).await.expect("it serves")
    }

    /// Returns the number of pages that a printer has printed.
    pub(crate) fn pages(&self, printer: &str) -> u64 {
        self.home.path().join("machines").join(printer).metadata().map_or(0, |about| about.len())
    }
}

/// Waits at that shop for the end of a job.
pub(crate) async fn end(shop: &Instance, key: &KeyPair, job: &Value) -> Value {
    loop {
        let ask = json!({"task_id": job["task_id"], "wait_seconds": 50});
        let job = call(shop.address, key, "get_job", ask).await.expect("a job");
        if job["terminal"] == true {
            return job;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_killed_shop_is_ended_by_another_with_evidence_and_printed_once() {
    let Some(mut cluster) = Cluster::make().await else { return };
    // A job has 8 s, and others take it over a second after this lease.
    cluster.lease = "3";
    let mut one = cluster.start("one").await;
    let two = cluster.start("two").await;
    let key = one.keys[0].clone();
    let print = |printer: &str| json!({"printer_id": printer, "mode": "draft", "idempotency_key": printer});
    // The answer of this printer is lost, so the shop is still reading when it is killed.
    let job = call(one.address, &key, "print_page", print("p-4")).await.expect("a job");
    one.kill().await.expect("it runs");
    let repeated = call(two.address, &key, "print_page", print("p-4")).await.expect("the same job");
    assert_eq!((&repeated["task_id"], &repeated["idempotent_hit"]), (&job["task_id"], &json!(true)));
    let ended = end(&two, &key, &job).await;
    assert_eq!((&ended["status"], cluster.pages("p-4")), (&json!("success"), 1), "{ended}");
    // A restart under the same name takes part again, and sees what happened meanwhile.
    let one = cluster.start("one").await;
    let job = call(two.address, &key, "print_page", print("p-1")).await.expect("a job");
    assert_eq!(end(&one, &key, &job).await["status"], "success");
    assert_eq!(cluster.pages("p-1"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_anywhere_calls_nowhere() {
    let Some(cluster) = Cluster::make().await else { return };
    let (mut one, two) = (cluster.start("one").await, cluster.start("two").await);
    let key = two.operator.key("demo").await.expect("a key");
    let (address, nothing) = (one.address, json!({}));
    let list = || driver::rpc(address, &key, "tools/list", &nothing);
    assert!(list().await.expect("an answer")["result"]["tools"].is_array());
    let (code, said) = operate(&two.operator.data, &format!("key revoke {}", key.id)).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(list().await.expect("an answer")["error"]["data"]["code"], "unauthenticated");
    // A command needs no server here, only the URL and the key.
    let (status, last) = one.stop().await.expect("it runs");
    assert!(status.success() && last.is_empty(), "{status} {last}");
    let (code, said) = operate(&cluster.data("one"), &cluster.with_store("key list --json")).await;
    assert!(code == 0 && said.contains(&*key.id), "{said}");
    let create = cluster.with_store("app create later --permission print");
    let (code, said) = operate(&cluster.data("one"), &create).await;
    assert_eq!(code, 0, "{said}");
    // Each trail is whole, with the lines of the acts that were made in its folder.
    for (name, other, acts) in [("one", "two", "app create"), ("two", "one", "key revoke")] {
        for check in ["audit verify", "doctor"] {
            let (code, said) = operate(&cluster.data(name), &cluster.with_store(check)).await;
            assert_eq!(code, 0, "{name}: {check}: {said}");
        }
        let (code, said) = operate(&cluster.data(name), &cluster.with_store("audit verify --json")).await;
        assert!(code == 0 && said.contains(&format!("\"replica\": \"{other}\"")), "{said}");
        let (code, said) = operate(&cluster.data(name), &cluster.with_store("audit tail -n 50")).await;
        assert!(code == 0 && said.contains(acts), "{name}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_whose_machines_are_its_own_and_a_folder_of_another_replica_are_refused() {
    let Some(cluster) = Cluster::make().await else { return };
    let (code, said) = operate(&cluster.data("one"), &cluster.with_store("serve --listen 127.0.0.1:0")).await;
    assert!(code == 2 && said.contains("its machines exist in this process alone"), "{code} {said}");
    // It has not joined, so it has taken the place of nobody.
    assert_eq!(cluster.count("SELECT count(*) FROM replica").await, 0);
    let (code, said) = operate(&cluster.data("new"), &cluster.with_store("store init")).await;
    assert!(code == 1 && said.contains("there is a store already"), "{code} {said}");
    let files = |name: &str| ["master.key", "replica"].map(|file| cluster.data(name).join(file).exists());
    assert_eq!(files("new"), [false, false], "a refused command has made no key");
    // A command that reads leaves the folder without a name.
    fs::copy(cluster.data("one").join("master.key"), cluster.data("new").join("master.key")).expect("the key");
    let (code, said) = operate(&cluster.data("new"), &cluster.with_store("app list")).await;
    assert!(code == 0 && files("new") == [true, false], "{code} {said}");
    let (code, said) = operate(&cluster.data("new"), &cluster.with_store("app create a --permission print")).await;
    assert!(code == 1 && said.contains("name one with --replica"), "{code} {said}");
    let (code, said) = operate(&cluster.data("one"), &cluster.with_store("app list --replica two")).await;
    assert!(code == 1 && said.contains("belongs to the replica `one`"), "{code} {said}");
    let (code, said) = operate(&cluster.data("one"), "app list").await;
    assert!(code == 1 && said.contains("--store"), "{code} {said}");
    for (line, why) in [
        ("backup /nowhere/b", "pg_basebackup"),
        ("restore /nowhere/b", "`store begin-again`"),
        ("clock accept", "replicas take the time from PostgreSQL"),
    ] {
        let (code, said) = operate(&cluster.data("one"), &cluster.with_store(line)).await;
        assert!(code == 1 && said.contains(why), "{line}: {code} {said}");
    }
    let (code, said) = operate(&cluster.data("one"), "app list --store mysql://a@b/c").await;
    assert!(code == 1 && said.contains("as in postgres://user@host/db"), "{code} {said}");
    let (code, said) = operate(&cluster.data("one"), "app list --replica one").await;
    assert!(code == 2 && said.contains("--replica is for a store"), "{code} {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notices_wake_a_held_poll_and_make_a_shop_beat_at_once() {
    let Some(cluster) = Cluster::make().await else { return };
    let shop = cluster.start("one").await;
    let key = shop.keys[0].clone();
    cluster.hold_tasks().await;
    let print = async |printer: &str| {
        let page = json!({"printer_id": printer, "mode": "draft", "idempotency_key": printer});
        call(shop.address, &key, "print_page", page).await.expect("a job")["task_id"].clone()
    };
    let (noticed, other) = (print("p-1").await, print("p-4").await);
    let poll = |job: &Value, seconds: u64| {
        call(shop.address, &key, "get_job", json!({"task_id": job, "wait_seconds": seconds}))
    };
    let beats = async || cluster.count("SELECT beat FROM replica").await;
    let begun = beats().await;
    let words = format!("directory {}", noticed.as_str().expect("an id"));
    let notify = format!("SELECT 1::bigint FROM pg_notify('toolwarrant ' || 'cluster'::regclass::oid, '{words}')");
    let noticing = async {
        loop {
            cluster.run(&notify).await;
        }
    };
    let beating = async { while beats().await < begun + 20 {} };
    // Otherwise the shop beats each second, and no job ends.
    tokio::select! {
        _ = async { tokio::join!(poll(&noticed, 50), beating) } => {}
        () = noticing => {}
        held = poll(&other, 5) => panic!("no notice was heard: {held:?}"),
    }
}
