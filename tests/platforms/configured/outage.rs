//! A platform that is down or refuses the credentials: its effect on other platforms, its cost, and
//! the reports about it.

use super::{FAST, Site, echo, id, lab, list_all, until};
use crate::harness::double::Double;
use crate::harness::program::{Program, WATCHED, get, key_of};
use crate::harness::{Key, members};
use rusqlite::Connection;
use serde_json::{Value, json};

async fn wait_for_breaker(program: &Program, platform: &str) {
    until(async || {
        let of_it =
            list_all(program).await.into_iter().filter(|phone| phone["device_id"].to_string().contains(platform));
        let phones: Vec<Value> = of_it.collect();
        for phone in &phones {
            program.call("get_device", json!({"device_id": phone["device_id"]})).await.expect("it is known");
        }
        phones.iter().all(|phone| phone["state"] == "unknown")
    })
    .await;
}

async fn states(program: &Program) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    list_all(program).await.iter().map(|phone| (text(&phone["device_id"]), text(&phone["state"]))).collect()
}

async fn key_seeing(site: &Site, name: &str, phone: &str) -> Key {
    let (code, said) = site.operate(&format!("app create {name} --permission device_read")).await;
    assert_eq!(code, 0, "{said}");
    let (code, said) = site.operate(&format!("device assign {name} {phone}")).await;
    assert_eq!(code, 0, "{said}");
    key_of(&site.path("data"), name).await
}

#[tokio::test]
async fn a_platform_that_is_down_takes_nothing_from_another_and_is_named() {
    let site = Site::new();
    let (den, lab) = tokio::join!(Double::start(2, FAST), Double::start(2, FAST));
    site.configure(&[site.table("den", &den), site.table("lab", &lab)].concat());
    let mut program = site.start(4, WATCHED).await;
    let known = states(&program).await;
    let (dens, labs) = (id("den", &den.codes().await[0]), id("lab", &lab.codes().await[0]));
    let some = key_seeing(&site, "some", &dens).await;
    let none = key_seeing(&site, "none", &labs).await;

    den.switch(None, &json!({"refuse_connections": true})).await;
    wait_for_breaker(&program, "den-").await;
    let expected = known.iter().map(|(id, state)| match id.starts_with("den-") {
        true => (id.clone(), "unknown".to_owned()),
        false => (id.clone(), state.clone()),
    });
    assert_eq!(states(&program).await, expected.collect::<Vec<_>>());
    let shown = program.call("get_device", json!({"device_id": dens})).await.expect("it is known");
    insta::assert_snapshot!("phone", members(&shown));
    let restart = |phone: &str| json!({"device_id": phone, "action": "restart"});
    let refused = program.call("set_power", restart(&dens)).await.expect_err("nobody could carry it out");
    // The pause of the guard, of which a part is over.
    let seconds = refused["retry_after_seconds"].as_u64().expect("seconds");
    assert!((1..=30).contains(&seconds), "{refused}");
    let told = members(&refused).replace(&format!("Wait {seconds} s"), "Wait N s");
    insta::assert_snapshot!("refused", told.replace(&format!(": {seconds}\n"), ": N\n"));
    assert!(site.ledger().is_empty() && den.requests("restart").await.is_empty());
    program.call("set_power", restart(&labs)).await.expect("the other platform is whole");
    let (status, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    assert!(status == 200 && ready.contains("the upstream den (armcloud) cannot be reached"), "{ready}");
    assert!(!ready.contains("upstream lab"), "{ready}");
    let metric = async |name: &str| program.metric(name).await.expect("a page");
    for (name, values) in [("reachable", [0, 1]), ("targets", [2, 2]), ("waiting", [0, 0])] {
        for (of, value) in ["den", "lab"].into_iter().zip(values) {
            assert_eq!(metric(&format!("upstream_{name}{{upstream=\"{of}\"}}")).await, Some(value), "{name} {of}");
        }
    }
    assert_eq!(metric("upstream_refused_total{upstream=\"lab\"}").await, Some(0));
    assert!(metric("upstream_age_seconds{upstream=\"lab\"}").await.is_some());
    assert!(metric("upstream_calls_total{upstream=\"lab\",outcome=\"answered\"}").await.is_some_and(|calls| calls > 0));

    program.stop().await;
    program = site.start(4, &[]).await;
    let ids = |states: &[(String, String)]| states.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let again = states(&program).await;
    assert_eq!(ids(&again), ids(&known));
    assert!(again.iter().filter(|(id, _)| id.starts_with("den-")).all(|(_, state)| state == "unknown"), "{again:?}");

    // Without its ledger, the platform counts as never listed.
    program.stop().await;
    let database = Connection::open(program.data.join("cloudphone.db")).expect("a database");
    database.execute("DELETE FROM file WHERE name LIKE 'phones/den%'", ()).expect("its ledger");
    drop(database);
    program = site.start(2, WATCHED).await;
    let (_, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    assert!(ready.contains("the upstream den (armcloud) cannot be reached") && ready.contains("never read"), "{ready}");
    assert_eq!(program.metric("upstream_age_seconds{upstream=\"den\"}").await.expect("a page"), None);
    for (key, told) in [(&program.keys[0], true), (&some, true), (&none, false)] {
        let page = kit::call(program.address, key, "list_devices", &json!({})).await;
        let page = page.expect("an answer").expect("a page");
        let next = page["next_step"].as_str().unwrap_or_default();
        assert_eq!(next.contains("platform `den` could not be listed yet"), told, "{page}");
    }
    let unread = program.call("get_device", json!({"device_id": dens})).await.expect_err("nobody knows it");
    assert_eq!(unread["code"], "upstream_unavailable", "{unread}");
}

#[tokio::test]
async fn a_check_asks_anew_and_a_mended_mistake_is_over() {
    let (site, double, program) = lab(1, &echo(), &[]).await;
    let phone = id("lab", &double.codes().await[0]);
    for (mistake, told) in [("code", 2031), ("http_status", 404)] {
        double.switch(None, &json!({mistake: told})).await;
        if mistake == "code" {
            // The first check confirms the refusal, after which the pause is long.
            until(async || {
                site.operate("platform check lab").await;
                let asked = program.call("create_session", json!({"device_id": phone})).await;
                asked.is_err_and(|error| matches!(error["retry_after_seconds"].as_u64(), Some(600..=900)))
            })
            .await;
        }
        let (code, said) = site.operate("platform check lab").await;
        assert!(code == 1 && said.contains(&format!("{told}")), "{said}");
        double.switch(None, &json!({})).await;
        let (code, said) = site.operate("platform check lab").await;
        assert!(code == 0 && said.contains("the platform accepts them"), "{said}");
        program.call("create_session", json!({"device_id": phone})).await.expect("the platform is called again");
    }
}
