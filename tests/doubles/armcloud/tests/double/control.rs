//! The control interface, as tests use it.

use crate::harness::Double;
use serde_json::json;

#[tokio::test]
async fn a_wrong_switch_is_refused_with_what_is_allowed() {
    let double = Double::start(&[]).await;
    let cases = [
        (json!({"drop_after": true}), "there is no switch `drop_after`; the switches are stall_ms, drop_before_acting"),
        (json!({"drop_after_acting": 1}), "`drop_after_acting` must be true or false, not 1"),
        (json!({"shape": "round"}), "`shape` must be one of array_instead_of_object"),
        (json!({"tools": ["curl", "ssh"]}), "`tools` must be a list of some of curl, wget, nc"),
        (
            json!({"code": {"value": 500, "endpoint": "reboot"}}),
            "`endpoint` of `code` must be one of infos, userPadList",
        ),
        (json!({"code": {"value": 500, "calls": 0}}), "`calls` of `code` must be a number from 1"),
        (json!({"code": {"value": 500, "times": 3}}), "`code` has no `times`; the members are value, calls, endpoint"),
        (
            json!({"lag_ms": {"value": 5, "calls": 3}}),
            "`lag_ms` cannot be limited by `calls`: it stays in force until it is set again",
        ),
        (json!({"refuse_connections": true}), "`refuse_connections` is for the whole platform"),
        (json!([]), "the body must be a JSON object"),
    ];
    for (switches, why) in cases {
        let (status, answer) = double.put(&format!("pads/{}/switches", double.pads[0]), &switches).await;
        let error = answer["error"].as_str().unwrap().to_owned();
        assert!(status == 400 && error.contains(why), "{switches}: {error}");
    }
    let (status, _) = double.put("pads/AC1/switches", &json!({})).await;
    assert_eq!(status, 404);
    assert_eq!(double.get(&format!("pads/{}/switches", double.pads[0])).await, json!({}));
}

#[tokio::test]
async fn a_switch_for_some_calls_is_used_up_and_a_pads_own_goes_before_that_of_all() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let body = json!({"padCode": pad});
    let code = || async { double.call("padInfo", &body).await["code"].as_i64().unwrap() };
    double.set_all(json!({"code": 500})).await;
    double.set(pad, json!({"code": {"value": 503, "calls": 2}})).await;
    assert_eq!(double.call("infos", &json!({"page": 1, "rows": 1})).await["code"], 500);
    assert_eq!([code().await, code().await, code().await], [503, 503, 500]);
    double.set_all(json!({})).await;
    assert_eq!(code().await, 200);
}

#[tokio::test]
async fn a_platform_that_is_down_refuses_connections_until_it_is_up_again() {
    let double = Double::start(&[]).await;
    let body = json!({"page": 1, "rows": 1});
    for _ in 0..3 {
        double.set_all(json!({"refuse_connections": true})).await;
        let error = double.send("infos", &body).await.expect_err("the platform is down");
        assert!(error.is_connect(), "{error:?}");
        let adb = double.greeting["adb"].as_str().unwrap();
        assert!(tokio::net::TcpStream::connect(adb).await.is_err(), "its adb server is down, too");
        double.set_all(json!({})).await;
        assert_eq!(double.call("infos", &body).await["code"], 200);
        assert!(tokio::net::TcpStream::connect(adb).await.is_ok());
    }
}

#[tokio::test]
async fn a_call_under_way_ends_when_the_platform_goes_down() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    double.set(pad, json!({"stall_answer_ms": 600_000})).await;
    let body = json!({"padCodes": [pad]});
    let (answer, ()) = tokio::join!(double.send("restart", &body), async {
        double.wait_for_act(pad).await;
        double.set_all(json!({"refuse_connections": true})).await;
    });
    let error = answer.expect_err("the platform is down");
    assert!(!error.is_timeout(), "{error:?}");
}

#[tokio::test]
async fn the_journal_says_of_each_request_what_became_of_it_and_is_also_a_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("journal");
    let double = Double::start(&["--journal", file.to_str().unwrap()]).await;
    let pad = &double.pads[0];
    double.set(pad, json!({"drop_after_acting": {"value": true, "calls": 1}})).await;
    double.send("restart", &json!({"padCodes": [pad]})).await.expect_err("no answer");
    let last = double.get("journal").await["last"].as_u64().unwrap();
    let task = double.submit("restart", pad, json!({})).await;
    double.wait_for_end(task).await;
    double.shell(pad, "echo 'a word'").await;
    let all = double.get("journal").await;
    let entries = all["entries"].as_array().unwrap();
    let dropped = &entries[0];
    assert_eq!(dropped["endpoint"], "restart");
    assert_eq!(
        (&dropped["accepted"], &dropped["answer"], &dropped["pads"]),
        (&json!(true), &json!("dropped"), &json!([pad]))
    );
    assert_eq!(dropped["tasks"].as_array().unwrap().len(), 1);
    let command = entries.iter().find(|entry| entry["operation"] == "command");
    // A pad that is still offline does not run the command.
    assert!(command.is_none_or(|command| command["script"] == "echo 'a word'"));
    let later = double.get(&format!("journal?after={last}")).await;
    assert_eq!(later["entries"][0]["n"], last + 1);
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count() as u64, double.get("journal").await["last"].as_u64().unwrap());
    assert!(double.get("journal?since=1").await["error"].as_str().unwrap().contains("after=N"));
}

#[tokio::test]
async fn the_same_seed_makes_the_same_fleet() {
    let shown = |seed: &'static str| async move {
        let double = Double::start(&["--seed", seed]).await;
        let state = double.get("state").await;
        state["pads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pad| (pad["android"].clone(), pad["boot_id"].clone()))
            .collect::<Vec<_>>()
    };
    let (first, again, other) = (shown("7").await, shown("7").await, shown("8").await);
    assert!(first == again && first != other);
}
