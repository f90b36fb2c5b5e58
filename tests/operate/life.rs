//! The life of applications and keys, as their clients and their operator see it, and the search
//! for an id.

use crate::harness::Key;
use crate::harness::program::{Program, json_of, key_of, operate, says};
use kit::call;
use serde_json::{Value, json};
use std::fmt::Write;

async fn ask(program: &Program, key: &Key, tool: &str, arguments: &Value) -> String {
    if program.status(key).await == 401 {
        return "unauthenticated".to_owned();
    }
    match call(program.address, key, tool, arguments).await.expect("an answer") {
        Ok(_) => "ok".to_owned(),
        Err(failure) => {
            format!("{}: {}", failure["code"].as_str().unwrap_or("?"), failure["message"].as_str().unwrap_or("?"))
        }
    }
}

#[tokio::test]
async fn each_step_of_a_life_is_in_force_at_once_for_clients_and_shown_to_operators() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    json_of(&data, "app create shop --permission device").await;
    json_of(&data, "device assign shop phone-0000001").await;
    let (key, other) = (key_of(&data, "shop").await, key_of(&data, "shop").await);
    let restart = json!({"device_id": "phone-0000001", "action": "restart"});
    let read = json!({"device_id": "phone-0000001"});
    let mut seen = String::new();
    let steps = [
        "app suspend shop",
        "app resume shop",
        "app rate shop 299",
        "app label shop owner=Ada customer=7",
        "app label shop customer=",
        "key label KEY contact=ada",
        "key suspend KEY",
        "key resume KEY",
        "key expire KEY 12h",
        "key expire KEY never",
        "key rotate KEY --grace 7d",
        "key end-old KEY",
        "app delete shop",
        "app delete shop --yes",
    ];
    for step in steps {
        // A task is in flight while the step is taken.
        let _ = ask(&program, &other, "set_power", &restart).await;
        let (code, said) = operate(&data, &format!("{} --json", step.replace("KEY", &key.id))).await;
        let answer: Value = serde_json::from_str(&said).expect("JSON");
        let shown = ["suspended_at", "requests_per_minute", "labels", "state", "live_secrets", "expires_at", "error"];
        let shown = shown.iter().filter(|name| !answer[**name].is_null());
        let value = |name: &str| if name.ends_with("_at") { json!("TIME") } else { answer[name].clone() };
        let shown: Vec<_> = shown.map(|name| format!("{name} {}", value(name))).collect();
        let _ = writeln!(seen, "$ {step} -> {code}\n  {}", shown.join("\n  "));
        for (name, key) in [("KEY", &key), ("other", &other)] {
            let _ = writeln!(seen, "  {name}: {}", ask(&program, key, "get_device", &read).await);
        }
    }
    insta::assert_snapshot!(seen.replace(&key.id, "KEY"));

    // The name is free, and its next owner has nothing of its former one.
    json_of(&data, "app create shop --permission device_read").await;
    let next = json_of(&data, "app show shop").await;
    assert_eq!((&next["devices"], &next["keys"], &next["labels"]), (&json!([]), &json!([]), &json!({})));
    assert_eq!(json_of(&data, "task list --app shop").await["tasks"], json!([]));
    let deleted = json_of(&data, "app list --deleted").await;
    let (id, name) = (deleted[0]["id"].as_str().expect("text"), deleted[0]["name"].as_str().expect("text"));
    assert!(name.starts_with("shop (deleted 20"), "{name}");
    let tasks = json_of(&data, &format!("task list --app {id}")).await;
    assert_eq!(tasks["tasks"][0]["application"], name);
    assert!(json_of(&data, &format!("acts --on {id}")).await.as_array().expect("acts").len() >= 5);
    let ended = kit::wait_for(async || {
        let page = json_of(&data, &format!("task list --app {id} --limit 100")).await;
        let tasks = page["tasks"].as_array().expect("tasks");
        if tasks.iter().all(|task| task["status"] == "success") { Ok(()) } else { Err(page.to_string()) }
    });
    ended.await.expect("each goes on to its end");
    program.kill().await;
    let mut program = program.again(&[]).await;
    assert_eq!(json_of(&data, "app list --deleted").await, deleted, "after a kill too");
    assert_eq!(program.status(&other).await, 401);
    assert_eq!(json_of(&data, "doctor").await["healthy"], true);
    program.stop().await;
}

#[tokio::test]
async fn the_use_of_each_secret_is_shown_with_its_age_and_end_and_keys_are_selected_by_it() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    let key = key_of(&data, "demo").await;
    let unused = key_of(&data, "demo").await;
    assert_eq!(program.status(&key).await, 200);
    json_of(&data, &format!("key rotate {} --grace 7d", key.id)).await;
    let selected = async |flags: &str| {
        let rows = json_of(&data, format!("key list demo {flags}").trim_end()).await;
        let ids = rows.as_array().expect("keys").iter().map(|row| row["key_id"].as_str().expect("text").to_owned());
        [&key, &unused].map(|key| ids.clone().any(|id| id == key.id))
    };
    assert_eq!(selected("").await, [true, true]);
    assert_eq!(selected("--unused-for 0s").await, [true, true]);
    assert_eq!(selected("--unused-for 1h").await, [false, false]);
    assert_eq!(selected("--ends-within 8d").await, [true, false]);
    assert_eq!(selected("--ends-within 6d").await, [false, false]);
    assert_eq!(selected("--older-than 1h").await, [false, false]);
    assert_eq!(selected("--state live").await, [true, true]);
    assert_eq!(selected("--state suspended").await, [false, false]);
    let shown = json_of(&data, &format!("key show {}", key.id)).await;
    let [latest, older] = &shown["secrets"].as_array().expect("secrets")[..] else { panic!("{shown}") };
    assert!(latest["last_used_at"].is_null() && latest["ends_at"].is_null(), "{shown}");
    assert_eq!((&older["last_used_from"], &shown["last_used_from"]), (&json!("127.0.0.1"), &json!("127.0.0.1")));
    assert!(older["ends_at"].is_string() && older["last_used_at"] == shown["last_used_at"], "{shown}");
    // A stop stores it.
    program.stop().await;
    let stored = json_of(&data, &format!("key show {}", key.id)).await;
    assert_eq!(stored["last_used_at"], shown["last_used_at"]);
}

#[tokio::test]
async fn every_id_is_found_with_what_belongs_to_it() {
    let program = Program::start(&[]).await;
    let data = program.data.clone();
    let task =
        program.call("set_power", json!({"device_id": "phone-0000001", "action": "restart"})).await.expect("a task");
    let task = task["task_id"].as_str().expect("text").to_owned();
    let found = async |id: &str| json_of(&data, &format!("find {id}")).await;
    let of_task = found(&task).await;
    let (shown, line) = (&of_task["task"], &of_task["lines"][0]);
    assert_eq!((&shown["arguments"]["action"], &line["task_id"]), (&json!("restart"), &json!(task)));
    assert_eq!((&line["from"], &line["request_id"]), (&json!("127.0.0.1"), &shown["request_id"]));
    let [key, request] = ["key_id", "request_id"].map(|name| shown[name].as_str().expect("text").to_owned());
    assert_eq!(found(&request).await["task"]["task_id"], json!(task));
    let of_key = found(&key).await;
    assert_eq!((&of_key["kind"], &of_key["lines"][0]["tool"]), (&json!("key"), &json!("set_power")));
    let act = of_key["acts"][0]["act_id"].as_str().expect("text");
    assert_eq!(found(act).await["act"]["command"], "serve");
    let of_app = found("demo").await;
    assert_eq!((&of_app["kind"], &of_app["tasks"][0]["task_id"]), (&json!("application"), &json!(task)));
    let of_phone = found("phone-0000001").await;
    assert_eq!(of_phone["seen_by"], json!([{"resource": "device", "applications": ["demo", "demo-read"]}]));
    assert_eq!(operate(&data, "find nothing").await.0, 4);
    json_of(&data, "app create phone-0000002 --permission device").await;
    json_of(&data, "device set phone-0000002 phone-000000* !phone-0000003").await;
    for (terms, why) in [
        ("PHONE", "is no device id"),
        ("!phone-0000001", "no prefix grants this device"),
        ("* !phone-*", "it must be `!` and one id"),
        ("A*", "no device id can begin with"),
    ] {
        says(&data, &format!("device set phone-0000002 {terms}"), 1, why).await;
    }
    let of_phone = found("phone-0000002").await;
    let shown = (&of_phone["kind"], &of_phone["lines"]);
    assert_eq!(shown, (&json!("target"), &json!([])), "an application of that name does not hide it");
    for (flags, count) in [("", 24), (" --prefix phone-000000", 9), (" --app phone-0000002", 8)] {
        let states = json_of(&data, &format!("device states{flags}")).await;
        let sum: u64 = states["states"].as_object().expect("states").values().filter_map(Value::as_u64).sum();
        assert_eq!((&states["count"], sum), (&json!(count), count), "{flags}");
        assert!(states["offers"]["power"].as_u64().is_some_and(|offers| offers <= count), "{states}");
    }
    // A prefix that is granted again brings no exception back; the id does.
    for (command, count) in [("--prefix phone-0", 23), ("--all", 23), ("phone-0000003", 24)] {
        json_of(&data, &format!("device assign phone-0000002 {command}")).await;
        assert_eq!(json_of(&data, "device states --app phone-0000002").await["count"], count, "{command}");
    }
    let listed = async |flags: &str| json_of(&data, &format!("task list {flags}")).await;
    for (flags, count) in [
        ("--tool set_power --status success --status dispatched --status failed", 1),
        ("--tool set_proxy", 0),
        ("--resource device --device phone-0000001 --app demo --since 1h", 1),
        ("--until 1h", 0),
    ] {
        let page = listed(flags).await;
        assert_eq!(page["tasks"].as_array().expect("tasks").len(), count, "{flags}: {page}");
        assert!(page["examined"].as_u64().expect("a number") <= 1);
    }
    let (code, said) = operate(&data, "task list --status done --json").await;
    let failure: Value = serde_json::from_str(&said).expect("JSON");
    assert!(code == 2 && failure["error"]["code"] == "usage" && said.contains("failed_silent"), "{said}");
}

#[tokio::test]
async fn an_unknown_name_is_no_empty_list_and_a_key_names_the_act_that_deleted_its_application() {
    let program = Program::start(&[]).await;
    let data = program.data.clone();
    for line in
        ["task list --app x", "refunds --app x", "acts --on x", "audit list --app x", "key list x", "task show x"]
    {
        assert_eq!(operate(&data, line).await.0, 4, "{line}");
    }
    let key = program.keys[1].id.clone();
    json_of(&data, "app delete demo-read --yes --reason left").await;
    let shown = json_of(&data, &format!("key show {key}")).await;
    let latest = &shown["latest_acts"][0];
    assert_eq!((&latest["command"], &latest["reason"]), (&json!("app delete"), &json!("left")), "{shown}");
    assert_eq!(json_of(&data, &format!("find {key}")).await["acts"][0], *latest);
}
