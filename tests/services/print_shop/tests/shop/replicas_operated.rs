//! The commands about several shops on one PostgreSQL. Without PostgreSQL on the machine, these
//! cases are left out.

use crate::process::{call, json_of, operate};
use crate::replicas::{Cluster, end};
use driver::{Instance, wait_for};
use serde_json::{Value, json};

/// Returns the names and states of the runs that a list shows.
fn states(list: &Value) -> Vec<(&str, &str)> {
    let rows = list.as_array().expect("a list").iter();
    rows.map(|row| (row["name"].as_str().expect("a name"), row["state"].as_str().expect("a state"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_that_is_asked_to_drain_stops_in_order_and_its_next_run_serves() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    let (code, said) = operate(&cluster.data("one"), "store begin-again --yes").await;
    assert!(code == 1 && said.contains("stop all of them first"), "{code} {said}");
    let begin = cluster.with_store("store begin-again --yes --replica three");
    let (code, said) = operate(&cluster.make_folder("three"), &begin).await;
    assert!(code == 1 && said.contains("not over yet: one;"), "{code} {said}");
    let list = cluster.with_store("app list --replica one");
    let (code, said) = operate(&cluster.make_folder("four"), &list).await;
    assert!(code == 0 && !cluster.data("four").join("replica").exists(), "{code} {said}");
    // The replica of a folder does not carry out the commands of another one.
    let other = cluster.with_store("app list --replica one");
    let (code, said) = operate(&cluster.data("three"), &other).await;
    assert!(code == 1 && said.contains("belongs to the replica `three`"), "{code} {said}");
    // Where no server has run yet, the trail has no folder.
    for look in ["doctor", "audit verify"] {
        let look = cluster.with_store(&format!("{look} --replica five"));
        let (code, said) = operate(&cluster.make_folder("five"), &look).await;
        assert_eq!(code, 0, "{said}");
    }
    let (code, said) = operate(&cluster.data("one"), "cluster drain three").await;
    assert!(code == 4 && said.contains("`cluster list` shows"), "{code} {said}");
    let asked = json_of(&cluster.data("one"), "cluster drain one --reason move").await;
    assert_eq!(asked["state"], "asked to stop", "{asked}");
    let (status, last) = one.end().await.expect("it runs");
    assert!(status.success() && last.is_empty(), "{status} {last}");
    // A command does not write to the audit trail of a replica that is elsewhere.
    let create = cluster.with_store("app create other --permission print --replica one");
    let (code, said) = operate(&cluster.make_folder("four"), &create).await;
    assert!(code == 1 && said.contains("`one` is in another folder"), "{code} {said}");
    let two = cluster.start("two").await;
    let list = json_of(&two.operator.data, "cluster list").await;
    assert_eq!(states(&list), [("one", "left"), ("two", "serving")], "{list}");
    let acts = json_of(&two.operator.data, "acts --limit 1").await;
    let changes = json!({"replica": {"before": "one serving", "after": "one asked to stop"}});
    assert_eq!((&acts[0]["command"], &acts[0]["changes"]), (&json!("cluster drain"), &changes), "{acts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitor_sees_the_lease_of_a_shop_and_the_health_of_the_server() {
    let Some(cluster) = Cluster::make().await else { return };
    let one = cluster.start("one").await;
    // The prefix of this program has two words, and the driver takes one word off.
    let metric = async |shop: &Instance, name: &str| shop.metric(&format!("shop_{name}")).await.expect("a page");
    for (name, value) in [
        ("replica_lease", 1),
        ("replicas", 1),
        ("tasks_without_owner", 0),
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
    assert!(unready.contains("the lease of this replica is over"), "{unready}");
    assert_eq!(metric(&one, "replica_lease").await, Some(0));
    cluster.run("ALTER TABLE other RENAME TO replica").await;
    let leased = wait_for(async || match metric(&one, "replica_lease").await {
        Some(1) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    leased.await.expect("it has a lease again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_stops_when_the_server_has_lost_a_write_and_its_next_run_goes_on_once_an_operator_accepts_that() {
    let Some(cluster) = Cluster::make().await else { return };
    let mut one = cluster.start("one").await;
    let key = one.keys[0].clone();
    let print = json!({"printer_id": "p-4", "mode": "draft", "idempotency_key": "first"});
    cluster.hold_tasks().await;
    let job = call(one.address, &key, "print_page", print).await.expect("a job");
    let refused =
        operate(&cluster.make_folder("three"), &cluster.with_store("cluster accept-loss --yes --replica three")).await;
    assert!(refused.0 != 0, "{refused:?}");
    // As a standby that lacked the acceptance would be.
    cluster.run("UPDATE cluster SET timeline = '00000000'").await;
    cluster.run("UPDATE writer SET batches = batches - 1 WHERE number = 0 AND batches > 0").await;
    let unready = wait_for(async || {
        let ready = one.watch("/readyz").await.expect("an answer").body;
        if ready.contains("accept-loss") { Ok(ready) } else { Err(ready) }
    });
    let unready = unready.await.expect("it is not ready");
    assert!(unready.contains("misses writes that were acknowledged to it"), "{unready}");
    cluster.release_tasks().await;
    // The process here is stopped first.
    one.kill().await.expect("it runs");
    let (code, said) = operate(&cluster.data("one"), &cluster.with_store("cluster accept-loss --yes --json")).await;
    assert_eq!(code, 0, "{said}");
    // The log follows the answer.
    let mut answers = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let done = answers.next().expect("an answer").expect("JSON");
    assert_eq!((&done["ended_as_timeout"], done["keys"].as_array().map(Vec::len)), (&json!(1), Some(1)), "{said}");
    let one = cluster.start("one").await;
    let keys = json_of(&cluster.data("one"), "key list").await;
    assert_eq!((&keys[0]["key_id"], &keys[0]["state"]), (&json!(key.id), &json!("unconfirmed")), "{keys}");
    let (code, said) = operate(&cluster.data("one"), "key confirm --all").await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(end(&one, &key, &job).await["status"], "timeout");
    let (code, said) = operate(&cluster.data("one"), "doctor").await;
    assert_eq!(code, 0, "{said}");
    let (code, said) =
        operate(&cluster.make_folder("three"), &cluster.with_store("cluster accept-loss --yes --replica three")).await;
    assert!(code != 0 && said.contains("no loss to accept"), "{said}");
}
