//! The life of applications and keys, as their clients and their operator see it. State files, and
//! the search for an id.

use crate::harness::Key;
use crate::harness::program::{Program, json_of, key_of, operate};
use driver::{KeyPair, call};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::Command;

async fn ask(program: &Program, key: &Key, tool: &str, arguments: &Value) -> String {
    let Key { id, secret } = key;
    if program.status(id, secret).await == 401 {
        return "unauthenticated".to_owned();
    }
    let key = KeyPair { id: id.clone(), secret: secret.clone() };
    match call(program.address, &key, tool, arguments).await.expect("an answer") {
        Ok(_) => "ok".to_owned(),
        Err(failure) => {
            format!("{}: {}", failure["code"].as_str().unwrap_or("?"), failure["message"].as_str().unwrap_or("?"))
        }
    }
}

fn without_times(text: &str) -> String {
    let is_time = |part: &str| part.len() == 24 && part.starts_with("20") && part.ends_with('Z');
    text.split('"').map(|part| if is_time(part) { "TIME" } else { part }).collect::<Vec<_>>().join("\"")
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
        let shown: Vec<_> = shown.map(|name| format!("{name} {}", answer[*name])).collect();
        let _ = writeln!(seen, "$ {step} -> {code}\n  {}", shown.join("\n  "));
        for (name, key) in [("KEY", &key), ("other", &other)] {
            let _ = writeln!(seen, "  {name}: {}", ask(&program, key, "get_device", &read).await);
        }
    }
    let seen = without_times(&seen).replace(&key.id, "KEY");
    insta::assert_snapshot!(seen);

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
    program.kill().await;
    let mut program = program.again(&[]).await;
    assert_eq!(json_of(&data, "app list --deleted").await, deleted, "after a kill too");
    assert_eq!(program.status(&other.id, &other.secret).await, 401);
    assert_eq!(json_of(&data, "doctor").await["healthy"], true);
    program.stop().await;
}

#[tokio::test]
async fn the_use_of_each_secret_is_shown_with_its_age_and_end_and_keys_are_selected_by_it() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    let key = key_of(&data, "demo").await;
    let unused = key_of(&data, "demo").await;
    assert_eq!(program.status(&key.id, &key.secret).await, 200);
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
async fn a_state_file_becomes_commands_and_then_there_is_nothing_to_do() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let program = Program::start_at(Arc::clone(&home), &[]).await;
    let data = program.data.clone();
    let file = home.path().join("state.toml");
    let apply = async |text: &str, flags: &str| {
        fs::write(&file, text).expect("written");
        let (code, said) = operate(&data, format!("apply {} --json {flags}", file.display()).trim_end()).await;
        (code, serde_json::from_str::<Value>(&said).unwrap_or_else(|error| panic!("{error}: {said}")))
    };
    let text = r#"
        [application.shop]
        permissions = ["device", "stream"]
        requests_per_minute = 60
        labels = { owner = "Ada L", customer = "7" }
        sees.device = ["phone-000000*", "!phone-0000007", "phone-0000012"]
        [application.demo]
        permissions = ["device_read"]
        [application."it's"]
        permissions = ["device_read"]
        sees.device = ["*"]
    "#;
    let (code, planned) = apply(text, "--dry-run").await;
    assert_eq!(code, 3, "{planned}");
    insta::assert_snapshot!(format!("{planned:#}"));
    let (code, done) = apply(text, "").await;
    assert_eq!(code, 0, "{done}");
    let lines: Vec<_> = done["done"].as_array().expect("commands").iter().map(|row| row["command"].clone()).collect();
    let would_do: Vec<_> =
        planned["would_do"].as_array().expect("commands").iter().map(|row| &row["command"]).collect();
    assert_eq!(lines.iter().collect::<Vec<_>>(), would_do);
    let acts = json_of(&data, "acts --command apply").await;
    assert_eq!(acts.as_array().expect("acts").len(), lines.len());
    assert_eq!(apply(text, "--dry-run").await, (0, json!({"would_do": []})));
    let shop = json_of(&data, "app show shop").await;
    assert_eq!(shop["devices"], json!(["phone-000000*", "phone-0000012", "!phone-0000007"]));

    // The exported file leads nowhere, and another name renames.
    let exported = json_of(&data, "export").await["state"].as_str().expect("text").to_owned();
    assert_eq!(apply(&exported, "--dry-run").await, (0, json!({"would_do": []})), "{exported}");
    let renamed = exported.replace("[application.\"shop\"", "[application.\"store\"");
    assert_eq!(apply(&renamed, "--dry-run").await, (3, json!({"would_do": [{"command": "app rename shop store"}]})));

    for (wrong, expected) in WRONG_FILES {
        let before = json_of(&data, "export").await;
        let (code, answer) = apply(wrong, "").await;
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        let found = expected.iter().all(|part| said.contains(part));
        let missing_phone = expected[0].starts_with("there is no device");
        let has_place = said.contains("state.toml:") || missing_phone;
        assert!(code == if missing_phone { 4 } else { 1 } && found && has_place, "{wrong}: {answer}");
        assert_eq!(json_of(&data, "export").await, before, "{wrong}");
    }
}

/// The server has `demo`, `demo-read`, `shop` and `it's`.
const WRONG_FILES: [(&str, &[&str]); 40] = [
    ("x = 1", &["unknown key `x`", "declared are `application`"]),
    ("x = 1\n[y]\nz = 2", &["2 mistakes", "`x`", "`y`"]),
    ("application = 1", &["`application` is not a table"]),
    ("[application]\nshop = 1", &["invalid type"]),
    ("[application.a]", &["a new application needs a permission", "add `permissions"]),
    ("[application.a]\npermissions = []", &["a new application needs a permission"]),
    ("[application.a]\npermissions = \"device\"", &["expected a sequence"]),
    ("[application.a]\npermissions = [1]", &["expected a string"]),
    ("[application.a]\npermissions = [\"fly\"]", &["unknown permission `fly`", "device_read"]),
    ("[application.a]\npermissions = [\"fly\", \"swim\"]", &["2 mistakes", "`fly`", "`swim`"]),
    ("[application.demo]\npermissions = [\"Device\"]", &["unknown permission `Device`"]),
    ("[application.demo]\nrequests_per_minute = 0", &["expected at least 1 request"]),
    ("[application.demo]\nrequests_per_minute = -1", &["invalid"]),
    ("[application.demo]\nrequests_per_minute = 4294967296", &["invalid"]),
    ("[application.demo]\nrequests_per_minute = 1.5", &["invalid type"]),
    ("[application.demo]\nrequests_per_minute = \"many\"", &["invalid type"]),
    ("[application.\" \"]\npermissions = [\"device\"]", &["cannot have this name"]),
    ("[application.\"a\\nb\"]\npermissions = [\"device\"]", &["cannot have this name"]),
    ("[application.\"a (deleted 2026-11-24)\"]\npermissions = [\"device\"]", &["cannot have this name"]),
    ("[application.app_1]\npermissions = [\"device\"]", &["cannot have this name"]),
    ("[application.a]\nid = \"app_0\"", &["there is no application `app_0`", "leave `id` out"]),
    ("[application.a]\nid = 7", &["expected a string"]),
    ("[application.demo]\nlabels = { A = \"b\" }", &["cannot be the name of a label", "a-z"]),
    ("[application.demo]\nlabels = { a = 1 }", &["expected a string"]),
    ("[application.demo]\nlabels = \"a=b\"", &["expected a map"]),
    ("[application.demo]\nlabels = { a = \"\\u0007\" }", &["not printable"]),
    (
        "[application.demo.labels]\na=\"1\"\nb=\"1\"\nc=\"1\"\nd=\"1\"\ne=\"1\"\nf=\"1\"\ng=\"1\"\nh=\"1\"\ni=\"1\"\nj=\"1\"\nk=\"1\"\nl=\"1\"\nm=\"1\"\nn=\"1\"\no=\"1\"\np=\"1\"\nq=\"1\"",
        &["17 labels"],
    ),
    ("[application.demo]\nsees.phone = []", &["unknown resource `phone`", "device"]),
    ("[application.demo]\nsees = 1", &["invalid type"]),
    ("[application.demo]\nsees.device = \"*\"", &["expected a sequence"]),
    ("[application.demo]\nsees.device = [\"PHONE\"]", &["is no device id", "`*` for all devices"]),
    ("[application.demo]\nsees.device = [\"!phone-0000001\"]", &["no prefix grants this device"]),
    ("[application.demo]\nsees.device = [\"*\", \"!phone-*\"]", &["it must be `!` and one id"]),
    ("[application.demo]\nsees.device = [\"A*\"]", &["no device id can begin with"]),
    ("[application.demo]\nsees.device = [\"phone-9999999\"]", &["there is no device `phone-9999999`"]),
    ("[application.demo]\ncolour = 1", &["unknown key `colour`"]),
    ("[application.demo]\npermission = [\"device\"]", &["unknown key `permission`", "permissions"]),
    ("[application.demo]\n[application.demo]", &["state.toml:2"]),
    ("[application", &["state.toml:1"]),
    ("x = 1\n[application.a]\npermissions = [\"fly\"]\nsees.device = [\"A\"]", &["3 mistakes", "`fly`", "\"A\""]),
];

#[tokio::test]
async fn names_of_a_state_file_are_taken_in_an_order_in_which_each_is_free() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let program = Program::start_at(Arc::clone(&home), &[]).await;
    let file = home.path().join("state.toml");
    let ids: Vec<_> = json_of(&program.data, "app list").await.as_array().expect("rows").clone();
    let id = |name: &str| ids.iter().find(|row| row["name"] == name).expect("an application")["id"].clone();
    let (demo, read) = (id("demo"), id("demo-read"));
    let apply = async |text: String| {
        fs::write(&file, text).expect("written");
        operate(&program.data, &format!("apply {} --json", file.display())).await
    };
    let (code, said) = apply(format!("[application.demo]\nid = {read}\n[application.demo-read]\nid = {demo}\n")).await;
    assert!(code == 1 && said.contains("has this name") && said.contains("swap"), "{said}");
    let (code, said) = apply(format!("[application.demo]\nid = {read}\n[application.zoo]\nid = {demo}\n")).await;
    assert!(code == 0 && said.find("demo zoo") < said.find("demo-read demo"), "{said}");
}

#[tokio::test]
async fn a_state_file_that_never_ends_or_is_no_text_is_refused_by_its_name() {
    let home = TempDir::new().expect("a temporary folder");
    let [endless, pipe, long, bytes] = ["endless", "pipe", "long", "bytes"].map(|name| home.path().join(name));
    symlink("/dev/zero", &endless).expect("a link");
    assert!(Command::new("mkfifo").arg(&pipe).status().await.expect("mkfifo").success());
    fs::write(&long, vec![b'#'; (1 << 20) + 1]).expect("written");
    fs::write(&bytes, b"# \xe9").expect("written");
    let size = "expected a file of at most 1048576 bytes";
    for (file, expected) in [(endless, size), (pipe, size), (long, size), (bytes, "it is not UTF-8 at byte offset 2")] {
        let (code, said) = operate(home.path(), &format!("apply {}", file.display())).await;
        assert!(code == 1 && said.contains(&format!("{}: {expected}", file.display())), "{said}");
    }
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

fn write_state(home: &TempDir, applications: usize) -> String {
    let file = home.path().join("state.toml");
    let one = |n| format!("[application.s{n}]\npermissions = [\"device\"]\nlabels = {{ owner = \"o{n}\" }}\n");
    fs::write(&file, (0..applications).map(one).collect::<String>()).expect("written");
    format!("apply {} --json", file.display())
}

#[tokio::test]
async fn a_server_that_stops_finishes_the_commands_that_it_has_begun_and_answers_them() {
    let mut program = Program::start(&[]).await;
    let (data, apply) = (program.data.clone(), write_state(&program.home, 60));
    // A connection without a command keeps no stop waiting.
    let _idle = UnixStream::connect(data.join("admin.sock")).await.expect("a socket");
    let applied = tokio::spawn(async move { operate(&data, &apply).await });
    while json_of(&program.data, "app list").await.as_array().expect("applications").len() < 3 {}
    program.stop().await;
    let (code, said) = applied.await.expect("an answer");
    assert_eq!(code, 0, "{said}");
    assert!(!program.log().contains("did not stop"), "{}", program.log());
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
