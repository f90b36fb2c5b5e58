//! Faults that are planted into a PostgreSQL that shops share. The doctor reports each with a
//! remedy, or the start is refused. Without PostgreSQL on the machine, these cases are left out.

use crate::process::{call, end, operate, says};
use crate::replicas::{Cluster, answer};
use kit::{LinkRelay, LinkState, wait_for};
use serde_json::json;
use std::fmt::Write;
use std::fs;

/// A function or view in the schema of the cluster takes the place of that of the server.
const PLANTED: &[&str] = &[
    "INSERT INTO target (target, resource, task) VALUES ('p-9', 'printer', '00000000-0000-0000-0000-000000000001')",
    "DELETE FROM ledger WHERE kind = 'refund'",
    "INSERT INTO event (task, version, at, phase, what, is_event)
         VALUES ('00000000-0000-0000-0000-000000000002', 1, 0, 'ready', 'planted', false)",
    "CREATE VIEW pg_settings AS
         SELECT name, CASE name WHEN 'fsync' THEN 'on' ELSE setting END AS setting FROM pg_catalog.pg_settings",
    "CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
         AS $$ SELECT pg_catalog.clock_timestamp() + interval '5 s' $$",
    "CREATE VIEW pg_stat_activity AS
         SELECT pid, application_name, backend_xid, backend_xmin, datname, backend_type,
                CASE state WHEN 'idle in transaction' THEN pg_catalog.clock_timestamp() - interval '1 hour' END AS xact_start
             FROM pg_catalog.pg_stat_activity",
];

/// Replaces ids and numbers that differ from run to run.
fn steady(text: &str) -> String {
    let word = |word: &str| {
        let is_id = word.starts_with("task_") && word.len() == 37;
        if is_id { "TASK".to_owned() } else { word.to_owned() }
    };
    let text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    match text.split_once("process ") {
        Some((before, after)) => format!("{before}process {}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => text,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_reports_each_planted_fault_with_a_remedy() {
    let Some(mut cluster) = Cluster::make().await else { return };
    // Functions and views that are planted come before those of the server.
    cluster.url += "%2Cpg_catalog";
    let mut one = cluster.start("one").await;
    let key = one.keys[0].clone();
    let print = |printer: &str| json!({"printer_id": printer, "mode": "draft", "idempotency_key": printer});
    let job = call(one.address, &key, "print_page", print("p-3")).await.expect("a job");
    assert_eq!(end(&one, &key, &job).await["status"], "failed_silent");
    cluster.hold_tasks().await;
    call(one.address, &key, "print_page", print("p-4")).await.expect("a job");
    one.kill().await.expect("it runs");
    cluster.release_tasks().await;
    let _open = cluster.server.begin().await;
    for sql in PLANTED {
        cluster.run(sql).await;
    }
    let (code, said) = operate(&cluster.data("one"), &cluster.with_store("doctor --json")).await;
    let found = answer(&said);
    let mut out = format!("exit code {code}\n");
    for (list, text) in [("faults", "found"), ("warnings", "found"), ("remedies", "remedy")] {
        writeln!(out, "\n{list}").expect("text");
        for row in found[list].as_array().expect("a list") {
            let text = steady(row[text].as_str().expect("a text"));
            writeln!(out, "{}: {text}", row["check"].as_str().expect("a name")).expect("text");
        }
    }
    insta::assert_snapshot!(out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_no_other_fault_if_no_server_answers() {
    let Some(mut cluster) = Cluster::make().await else { return };
    let link = LinkRelay::start(cluster.server.socket()).await.expect("a port");
    let folder = socket(&cluster.url).replace('/', "%2F");
    cluster.url = cluster.url.replace(&folder, &format!("127.0.0.1&port={}", link.port));
    let one = cluster.start("one").await;
    // The link is cut while the doctor waits for this view, and stays cut.
    cluster.run("ALTER TABLE audit_anchor RENAME TO anchor").await;
    cluster.run("CREATE VIEW audit_anchor AS SELECT anchor.* FROM anchor CROSS JOIN pg_sleep(1000)").await;
    let direct = cluster.server.url();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let cut = async {
        let waiting = wait_for(async || match cluster.server.count(&direct, waits).await {
            0 => Err("nobody waits for the view".to_owned()),
            _ => Ok(()),
        });
        waiting.await.expect("the doctor reads the view");
        link.set(LinkState::Cut);
    };
    let (amid, ()) = tokio::join!(one.operator.run(["doctor", "--json"]), cut);
    let after = operate(&cluster.data("one"), &cluster.with_store("doctor --json")).await;
    for (is_after, (code, said)) in [(false, amid.expect("an answer")), (true, after)] {
        let found = answer(&said);
        // The server ends with its lease, and then there is nobody to ask.
        if is_after && (code, &found["error"]["code"]) == (5, &json!("unavailable")) {
            continue;
        }
        let checks =
            |list: &str| found[list].as_array().map(|rows| rows.iter().map(|row| row["check"].clone()).collect());
        assert_eq!(
            (code, checks("faults"), checks("remedies")),
            (1, Some(vec![json!("server")]), checks("faults")),
            "{said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_locked_table_hides_is_not_examined_and_the_session_that_locks_it_is_named() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    let lock = async |tables: &str| {
        let sql = format!("SET application_name = 'psql'; LOCK TABLE {tables}");
        cluster.server.begin_at(&cluster.url, &sql).await
    };
    let doctor = async |tables: &str| {
        let _lock = lock(tables).await;
        let (code, said) = one.operator.run(["doctor", "--json"]).await.expect("an answer");
        let found = answer(&said);
        let remedies = found["remedies"].to_string();
        assert!(code == 1 && !remedies.contains("backup") && !remedies.contains("who else can write"), "{said}");
        for row in found["not_examined"].as_array().expect("a list") {
            let why = row["why"].as_str().expect("text");
            assert!(why.contains("(psql, user tests) locks ") && why.contains(tables), "{why}");
        }
        let checks = |list: &str| -> Vec<String> {
            let rows = found[list].as_array().into_iter().flatten();
            rows.map(|row| row["check"].as_str().expect("a name").to_owned()).collect()
        };
        assert!(checks("faults").iter().all(|check| check == "waits"), "{said}");
        checks("not_examined")
    };
    assert_eq!(doctor("audit_anchor").await, ["audit chain", "acts"]);
    assert_eq!(doctor("ledger").await, ["records", "refunds", "charges", "deadlines"]);
    assert_eq!(doctor("api_key").await, ["content", "names", "master key"]);
    one.kill().await.expect("it runs");
    // Without a server, the command cannot open the store.
    let _lock = lock("cluster").await;
    cluster.says("one", "doctor", 5, "see in pg_locks who has a lock").await;
}

/// The statement that plants the fault, the command, and the statement that takes it back.
struct Refused<'a>(&'a str, &'a str, &'a str);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_cannot_be_used_is_refused_with_the_reason() {
    let Some(mut cluster) = Cluster::make().await else { return };
    let (url, data) = (cluster.url.clone(), cluster.data("one"));
    cluster.run("CREATE ROLE replica_account LOGIN PASSWORD 'right'").await;
    says(&data, &cluster.with_store("store grant replica_account"), 0, "").await;
    let replica = format!("app list --store {}", url.replace("tests@", "replica_account@"));
    says(&data, &replica, 0, "").await;
    cluster.url += "%2Cpg_catalog";
    let owner = cluster.with_store("app list");
    let mut out = String::new();
    for Refused(plant, command, undo) in [
        Refused(
            "CREATE FUNCTION current_setting(text) RETURNS text LANGUAGE sql
                 AS $$ SELECT CASE $1 WHEN 'server_version_num' THEN '140011' ELSE pg_catalog.current_setting($1) END $$",
            &owner,
            "DROP FUNCTION current_setting(text)",
        ),
        Refused("UPDATE cluster SET layout = 9", &owner, "UPDATE cluster SET layout = 4"),
        Refused("UPDATE cluster SET layout = 2", &owner, "UPDATE cluster SET layout = 4"),
        Refused("REVOKE INSERT, DELETE ON task FROM replica_account", &replica, "GRANT INSERT, DELETE ON task TO replica_account"),
        Refused("SELECT 0::bigint", "app list --store postgres://shop@127.0.0.1:1/shop", "SELECT 0::bigint"),
        Refused("SELECT 0::bigint", "app list --store postgres://shop:secret@db.example/shop", "SELECT 0::bigint"),
        Refused("SELECT 0::bigint", &url_of_nothing(&owner), "SELECT 0::bigint"),
        Refused("UPDATE cluster SET key = '\\x00'", &owner, "SELECT 0::bigint"),
    ] {
        cluster.run(plant).await;
        let (code, said) = operate(&data, command).await;
        cluster.run(undo).await;
        let said = said.replace(&socket(&url), "SOCKET");
        writeln!(out, "exit code {code}: {said}").expect("text");
    }
    // The server reads its rules again at some moment after it was told to.
    let rules = "DO $$ BEGIN
        EXECUTE format('COPY (SELECT unnest(ARRAY[''local all replica_account scram-sha-256'', ''local all all trust''])) TO %L',
                       current_setting('hba_file'));
        PERFORM pg_reload_conf(); END $$";
    cluster.run(rules).await;
    let password = cluster.data("password");
    fs::write(&password, "wrong").expect("a file");
    fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let wrong = format!("{replica} --store-password-file {}", password.display());
    let refused = wait_for(async || match operate(&data, &wrong).await {
        (0, said) => Err(said),
        (code, said) => Ok(format!("exit code {code}: {}", said.replace(&socket(&url), "SOCKET"))),
    });
    let refused = refused.await.expect("the password is wrong");
    writeln!(out, "{refused}").expect("text");
    fs::write(&password, "right\n").expect("a file");
    // The password is right, and the key of the store is not.
    says(&data, &wrong, 1, "master key").await;
    insta::assert_snapshot!(out);
}

fn socket(url: &str) -> String {
    let (_, host) = url.split_once("host=").expect("a socket");
    host.split('&').next().unwrap_or_default().replace("%2F", "/")
}

/// Names a schema without tables.
fn url_of_nothing(command: &str) -> String {
    let (before, _) = command.split_once("search_path").expect("a schema");
    format!("{before}search_path%3Dpg_temp")
}
