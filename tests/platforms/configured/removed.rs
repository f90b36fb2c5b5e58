//! Writes whose platform is removed from the configuration, and a phone whose pad the platform
//! replaces.

use super::{end, id, lab, list_all, until};
use rusqlite::Connection;
use serde_json::{Value, json};

#[tokio::test]
async fn without_its_platform_an_unsent_write_fails_uncharged_and_a_sent_one_ends_as_timeout() {
    let (site, double, mut program) = lab(3, "", &[]).await;
    let codes = double.codes().await;
    // The first pad never answers the reading before a restart. The second never reports the end of
    // its restart. The third does not even acknowledge its restart.
    double.switch(Some(&codes[0]), &json!({"shell": "hangs"})).await;
    double.switch(Some(&codes[1]), &json!({"task_never_ends": {"value": true, "endpoint": "restart"}})).await;
    double.switch(Some(&codes[2]), &json!({"stall_answer_ms": {"value": 600_000, "endpoint": "restart"}})).await;
    let restart = |code: &str| json!({"device_id": id("lab", code), "action": "restart"});
    let unsent = program.call("set_power", restart(&codes[0])).await.expect("accepted");
    let sent = program.call("set_power", restart(&codes[1])).await.expect("accepted");
    let unanswered = program.call("set_power", restart(&codes[2])).await.expect("accepted");
    let is_accepted = async || double.requests("restart").await.iter().any(|line| line["pads"] == json!([codes[1]]));
    until(async || is_accepted().await && double.count_restarts(&codes[2]).await == 1).await;
    program.kill().await;

    site.configure("[platform.phone]\nkind = \"simulator\"\n");
    let database = Connection::open(site.path("data/cloudphone.db")).expect("a database");
    let earlier = "UPDATE task SET state = json_set(state, '$.deadline_at', \
                   strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch')) \
                   WHERE id IN (SELECT task_id FROM ledger)";
    assert_eq!(database.execute(earlier, []).expect("moved"), 2);
    drop(database);
    program = site.start(24, &[]).await;
    let end = async |task: &Value| program.task(&task["task_id"]).await;
    let (unsent, sent, unanswered) = tokio::join!(end(&unsent), end(&sent), end(&unanswered));
    let seen = [unsent, sent, unanswered].map(|task| format!("{} {}", task["status"], task["evidence"]["observed"]));
    insta::assert_snapshot!(seen.join("\n"));
    assert_eq!(site.ledger().into_iter().collect::<Vec<_>>(), [("charge".to_owned(), 2)]);
    let gone = program.call("get_device", json!({"device_id": id("lab", &codes[0])})).await.expect_err("no platform");
    assert_eq!(gone["code"], "not_found");
}

#[tokio::test]
async fn a_phone_keeps_its_id_when_its_pad_is_replaced_and_writes_go_to_the_new_one() {
    let (_site, double, program) = lab(2, "", &[]).await;
    let before = list_all(&program).await;
    let codes = double.codes().await;
    let phone = id("lab", &codes[0]);
    let new = double.replace(&codes[0]).await;
    assert_ne!(new, codes[0]);
    let task = end(&program, "set_power", json!({"device_id": phone, "action": "restart"})).await;
    assert_eq!(task["status"], "success", "{task}");
    assert_eq!((double.count_restarts(&codes[0]).await, double.count_restarts(&new).await), (0, 1));
    let ids = |phones: &[Value]| phones.iter().map(|phone| phone["device_id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&list_all(&program).await), ids(&before));
}
