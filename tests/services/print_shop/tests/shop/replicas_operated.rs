//! The commands about several shops on one PostgreSQL. Without PostgreSQL on the machine, these
//! cases are left out.

use crate::process::{call, end, json_of, operate, says};
use crate::replicas::{Cluster, answer, expect_unready, free_place, stop};
use kit::{Instance, wait_for};
use serde_json::{Value, json};
use std::fs;

fn states(list: &Value) -> Vec<(&str, &str)> {
    let rows = list.as_array().expect("a list").iter();
    rows.map(|row| (row["name"].as_str().expect("a name"), row["state"].as_str().expect("a state"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_from_other_folders_read_and_leave_a_shop_that_leads_alone() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    says(&cluster.data("one"), "store begin-again --yes", 1, "stop it first").await;
    for command in ["store begin-again --yes", "cluster accept-loss --yes"] {
        let command = cluster.with_store(&format!("{command} --replica three"));
        says(&cluster.make_folder("three"), &command, 5, "the replica `one` on the machine").await;
    }
    // A command that reads gives a folder no name.
    for look in ["app list", "doctor", "audit verify"] {
        let look = cluster.with_store(&format!("{look} --replica four"));
        let (code, said) = operate(&cluster.make_folder("four"), &look).await;
        assert!(code == 0 && !cluster.data("four").join("replica").exists(), "{code} {said}");
    }
    stop(&mut one).await;
    let two = cluster.start("two").await;
    let list = json_of(&two.operator.data, "cluster list").await;
    assert_eq!(states(&list), [("two", "leading"), ("one", "left")], "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_or_a_start_that_fails_gives_the_lead_back() {
    let Some(cluster) = Cluster::make().await else { return };
    let one = cluster.data("one");
    cluster.make_folder("two");
    let broken = cluster.data("broken.toml");
    fs::write(&broken, "machines = \"/nowhere\"\n").expect("a file");
    let serve = format!("serve --listen 127.0.0.1:0 --machines {}", cluster.data("machines").display());
    let create = "app create late --permission print";
    let break_file = |name: &str| match one.join(name) {
        path if path.is_dir() => fs::remove_dir_all(&path).and_then(|()| fs::write(path, "")),
        path => fs::remove_file(&path).and_then(|()| fs::create_dir(path)),
    };
    for (line, broken, why) in [
        (format!("{create} --config {}", broken.display()), None, "No such file"),
        ("app delete nobody --yes".to_owned(), None, "there is no application"),
        (serve.clone(), Some("audit"), "cannot write to"),
        (serve.clone(), Some("run"), "one/run"),
        (create.to_owned(), None, "one/run"),
    ] {
        broken.map(break_file).transpose().expect("a file");
        let (code, said) = operate(&one, &cluster.with_store(&line)).await;
        assert!(code != 0 && said.contains(why), "{line}: {code} {said}");
        cluster.says("two", "app delete nobody --yes --replica two", 4, "there is no application").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitor_sees_the_lease_of_a_shop_and_the_health_of_the_server() {
    let Some(cluster) = Cluster::make().await else { return };
    let one = cluster.start("one").await;
    // The prefix of this program has two words, and the kit takes one word off.
    let metric = async |shop: &Instance, name: &str| shop.metric(&format!("shop_{name}")).await.expect("a page");
    for (name, value) in [
        ("replica_lease", 1),
        ("store_safe_copies", 0),
        ("store_default_partition_rows", 0),
        ("store_horizon_seconds", 0),
        ("refund_invariant_violations", 0),
    ] {
        assert_eq!(metric(&one, name).await, Some(value), "{name}");
    }
    let list = json_of(&cluster.data("one"), "cluster list").await;
    assert_eq!(metric(&one, "replica_epoch").await, list[0]["epoch"].as_u64());
    assert!(metric(&one, "store_dead_rows{table=\"replica\"}").await.is_some());
    let ready = one.watch("/readyz").await.expect("an answer").body;
    assert_eq!(
        ready,
        "the program serves\nacknowledged data is nowhere: fsync is off, so a crash of the server can lose and damage data\n"
    );
    // Beats need this table, and the test write of the monitor does not.
    cluster.run("ALTER TABLE replica RENAME TO other").await;
    let unready = wait_for(async || {
        let ready = one.watch("/readyz").await.expect("an answer").body;
        if ready.starts_with("the program serves") { Err(ready) } else { Ok(ready) }
    });
    let unready = unready.await.expect("it is not ready");
    assert!(unready.contains("the lease of this process is over"), "{unready}");
    assert_eq!(metric(&one, "replica_lease").await, Some(0));
    cluster.run("ALTER TABLE other RENAME TO replica").await;
    let leased = wait_for(async || match metric(&one, "replica_lease").await {
        Some(1) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    leased.await.expect("it has a lease again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_ends_when_a_copy_that_may_lack_writes_is_the_server_and_none_leads_before_an_operator_accepts_that() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    let key = one.keys[0].clone();
    let print = json!({"printer_id": "p-4", "mode": "draft", "idempotency_key": "first"});
    cluster.hold_tasks().await;
    let job = call(one.address, &key, "print_page", print).await.expect("a job");
    // As a standby would be that does not wait for commits.
    cluster.run("UPDATE cluster SET timeline = '00000000'").await;
    let (status, _) = one.end().await.expect("it runs");
    assert!(!status.success(), "{status}");
    let monitor = free_place();
    let (waiting, _) = cluster.stand_by("one", &monitor).await;
    expect_unready(&monitor, "may lack what was acknowledged to `one`").await;
    says(&cluster.data("one"), "app create late --permission print", 5, "`cluster accept-loss`").await;
    cluster.release_tasks().await;
    // The process here is stopped first.
    drop(waiting);
    let said = cluster.says("one", "cluster accept-loss --yes --json", 0, "").await;
    // The log follows the answer.
    let done = answer(&said);
    assert_eq!((&done["ended_as_timeout"], done["keys"].as_array().map(Vec::len)), (&json!(1), Some(1)), "{said}");
    let mut one = cluster.start("one").await;
    let keys = json_of(&cluster.data("one"), "key list").await;
    assert_eq!((&keys[0]["key_id"], &keys[0]["state"]), (&json!(key.id), &json!("unconfirmed")), "{keys}");
    says(&cluster.data("one"), "key confirm --all", 0, "").await;
    assert_eq!(end(&one, &key, &job).await["status"], "timeout");
    says(&cluster.data("one"), "doctor", 0, "").await;
    one.stop().await.expect("it runs");
    cluster.says("one", "cluster accept-loss --yes", 1, "no loss to accept").await;
    assert!(!cluster.data("machines").join("p-4").exists(), "nothing was sent");
}
