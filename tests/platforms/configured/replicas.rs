//! Several replicas of the program on one PostgreSQL, with one account of a platform. Without
//! PostgreSQL on the machine, this case is left out.

use super::{FAST, id, list_all, until};
use crate::harness::double::{Double, table};
use crate::harness::program::{Program, operate, start};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use tempfile::TempDir;
use test_postgres::TestPostgres;

/// Starts a replica in its folder, with the account of the double.
async fn start_replica(home: &Arc<TempDir>, name: &str, url: &str, double: &Double) -> Program {
    let config = home.path().join("cloudphone.toml");
    let account = table("lab", double, home).replace("power-seconds = 10", "power-seconds = 1");
    fs::write(&config, account).expect("a file");
    let flags = ["--store", url, "--replica", name, "--drain-seconds", "0", "--config", config.to_str().expect("text")];
    Program::start_as(Arc::clone(home), start(home).flags(&flags)).await
}

/// Returns the ids of the phones that a replica shows.
async fn ids(program: &Program) -> Vec<Value> {
    list_all(program).await.into_iter().map(|phone| phone["device_id"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_a_killed_replica_is_ended_by_another_with_evidence_and_one_of_them_lists() {
    let Some(server) = TestPostgres::start() else { return };
    let url = server.schema().await.expect("the server runs").url;
    let double = Double::start(3, FAST).await;
    let homes = [(); 2].map(|()| Arc::new(TempDir::new().expect("a temporary folder")));
    let data = homes.each_ref().map(|home| home.path().join("data"));
    let (code, said) = operate(&data[0], &format!("store init --replica one --store {url}")).await;
    assert_eq!(code, 0, "{said}");
    fs::DirBuilder::new().mode(0o700).create(&data[1]).expect("a folder");
    fs::copy(data[0].join("master.key"), data[1].join("master.key")).expect("the key of the first");

    // The simulated phones exist in one process.
    let (code, said) = operate(&data[0], &format!("serve --listen 127.0.0.1:0 --store {url}")).await;
    assert!(code == 2 && said.contains("the simulated phones exist in this process alone"), "{code} {said}");

    let mut one = start_replica(&homes[0], "one", &url, &double).await;
    let mut two = start_replica(&homes[1], "two", &url, &double).await;
    two.keys = one.keys.clone();
    until(async || list_all(&one).await.len() == 3 && list_all(&two).await.len() == 3).await;
    assert_eq!(ids(&one).await, ids(&two).await);
    let codes = double.codes().await;
    let restart = json!({"device_id": id("lab", &codes[0]), "action": "restart"});
    let accepted = one.call("set_power", restart).await.expect("accepted");
    until(async || !double.requests("restart").await.is_empty()).await;
    one.kill().await;
    let task = two.task(&accepted["task_id"]).await;
    assert_eq!((&task["status"], &task["evidence"]["reported"]), (&json!("success"), &json!("success")), "{task}");
    let done = double.journal("did", &codes[0]).await;
    assert_eq!(done.iter().filter(|line| line["operation"] == "restart").count(), 1, "{done:?}");
    // The phones stay current, because the other replica lists them.
    let lists = double.requests("infos").await.len();
    until(async || double.requests("infos").await.len() > lists).await;
    assert_eq!(list_all(&two).await.len(), 3);
}
