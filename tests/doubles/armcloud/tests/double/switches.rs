//! The switches of tasks, of pads and of the platform, each with its effect. Every switch must have
//! a test.

use crate::harness::Double;
use serde_json::{Value, json};

const FOREVER: u64 = 600_000;

/// The switches for a restart, and the expected status of its task; `did` is true if the restart
/// happens.
struct SwitchCase {
    switches: Value,
    status: i64,
    did: bool,
}

fn case(switches: Value, status: i64, did: bool) -> SwitchCase {
    SwitchCase { switches, status, did }
}

#[tokio::test]
async fn tasks_end_as_they_are_switched_and_act_or_do_not() {
    let double = Double::start(&["--pads", "60", "--set", "online_ms=0"]).await;
    let cases = [
        case(json!({"task_end": -1}), -1, false),
        case(json!({"task_end": -2}), -2, false),
        case(json!({"task_end": -3}), -3, false),
        case(json!({"task_end": -4}), -4, false),
        case(json!({"task_end": -5}), -5, false),
        case(json!({"task_end": -1, "effect": "always"}), -1, true),
        case(json!({"effect": "never"}), 3, false),
        case(json!({"effect_late_ms": 50}), 3, true),
        case(json!({"effect_late_ms": FOREVER}), 3, false),
        case(json!({"task_never_ends": true}), 2, false),
        case(json!({"task_never_ends": true, "effect": "always"}), 2, true),
        case(json!({"task_queued_ms": FOREVER}), 9, false),
        case(json!({"restart_ms": FOREVER}), 1, false),
        case(json!({"task_end": 77}), 77, false),
        case(json!({"restart_ends_in": 14}), 3, true),
    ];
    let pads = double.get("state").await["pads"].clone();
    let pads = pads.as_array().unwrap().iter().filter(|pad| pad["kind"] == "ordinary");
    for (SwitchCase { switches, status, did }, pad) in cases.into_iter().zip(pads) {
        let pad = pad["pad_code"].as_str().unwrap();
        double.set(pad, switches.clone()).await;
        let task = double.submit("restart", pad, json!({})).await;
        let detail = json!({"taskIds": [task]});
        double.until("padTaskDetail", &detail, |answer| answer["data"][0]["taskStatus"] == status).await;
        if did {
            double.wait_for_act(pad).await;
        }
        // A later task ends after anything that the first one could still do.
        double.set(pad, json!({})).await;
        let later = double.submit("setProxy", pad, json!({"enable": false})).await;
        double.wait_for_end(later).await;
        let shown = double.call("padTaskDetail", &detail).await["data"][0].clone();
        assert_eq!(shown["taskStatus"], status, "{switches}");
        let restarts = double.did(pad).await.iter().filter(|did| *did == "restart").count();
        assert_eq!(restarts, usize::from(did), "{switches}");
        let ends_in = if switches.get("restart_ends_in").is_some() { 14 } else { 10 };
        assert_eq!(double.truth(pad).await["pad_status"], ends_in, "{switches}");
    }
}

#[tokio::test]
async fn a_submission_can_be_answered_with_an_existing_task() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let restart = || async { double.call("restart", &json!({"padCodes": [pad]})).await["data"][0].clone() };
    double.set(pad, json!({"submit": "exists_without_id"})).await;
    assert_eq!((&restart().await["taskStatus"], &restart().await["taskId"]), (&json!(-1), &Value::Null));
    double.set(pad, json!({"submit": "exists_while_running", "restart_ms": FOREVER})).await;
    let first = restart().await;
    let second = restart().await;
    assert_eq!((&first["taskStatus"], &second["taskStatus"]), (&json!(1), &json!(-1)));
    assert_eq!(first["taskId"], second["taskId"]);
    double.set(pad, json!({"submit": "exists"})).await;
    assert_eq!(restart().await, second);
    assert_eq!(double.get("state").await["tasks"], 1);
}

#[tokio::test]
async fn switches_change_what_a_task_shows() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    double.set(pad, json!({"task_absent_polls": 2, "end_time": "early", "restart_ms": FOREVER})).await;
    let task = double.submit("restart", pad, json!({})).await;
    let poll = || async { double.call("padTaskDetail", &json!({"taskIds": [task]})).await["data"].clone() };
    assert_eq!([poll().await, poll().await], [json!([]), json!([])]);
    assert!(poll().await[0]["endTime"].is_u64());
    double.set(pad, json!({"end_time": "never"})).await;
    let task = double.submit("setProxy", pad, json!({"enable": false})).await;
    assert_eq!(double.wait_for_end(task).await["endTime"], Value::Null);
    let script = json!({"scriptContent": "echo out"});
    let outputs = [
        (json!({}), json!("out\n"), Value::Null),
        (json!({"output": "empty"}), json!(""), Value::Null),
        (json!({"output": "error_msg"}), json!("Success"), json!("out\n")),
    ];
    for (switches, result, error) in outputs {
        double.set(pad, switches.clone()).await;
        let task = double.submit("asyncCmd", pad, script.clone()).await;
        let ended = double.wait_for_end(task).await;
        assert_eq!((&ended["taskResult"], &ended["errorMsg"]), (&result, &error), "{switches}");
    }
    double.set(pad, json!({"output": "task_result"})).await;
    let at_once = double.call("syncCmd", &json!({"padCode": pad, "scriptContent": "echo out"})).await;
    assert_eq!(at_once["data"][0]["taskResult"], "out\n");
    double.set(pad, json!({"missing_row": {"value": true, "endpoint": "padTaskDetail"}})).await;
    assert_eq!(double.call("padTaskDetail", &json!({"taskIds": [task]})).await["data"], json!([]));
}

#[tokio::test]
async fn a_dead_shell_says_nothing_or_fails_or_hangs_and_so_does_a_pad_that_is_not_up() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let script = json!({"scriptContent": "echo out"});
    for (shell, status) in [("silent", 3), ("fails", -1)] {
        double.set(pad, json!({"shell": shell})).await;
        let task = double.submit("asyncCmd", pad, script.clone()).await;
        let ended = double.wait_for_end(task).await;
        assert_eq!((&ended["taskStatus"], ended["taskResult"].as_str().unwrap_or_default()), (&json!(status), ""));
    }
    double.set(pad, json!({"shell": {"value": "hangs", "calls": 1}, "sync_limit_ms": 100})).await;
    let hangs = double.call("syncCmd", &json!({"padCode": pad, "scriptContent": "echo out"})).await;
    assert_eq!(hangs["code"], 110_012);
    assert_eq!(double.shell(pad, "echo out").await, "out\n");
    double.set(pad, json!({"restart_ends_in": 14})).await;
    let task = double.submit("restart", pad, json!({})).await;
    double.wait_for_end(task).await;
    assert_eq!(double.shell(pad, "echo out").await, "");
    double.set(pad, json!({"offline_command": "fails"})).await;
    let task = double.submit("asyncCmd", pad, script.clone()).await;
    assert_eq!(double.wait_for_end(task).await["taskStatus"], -1);
    double.set(pad, json!({"offline_command": "110031"})).await;
    let refused = double.call("asyncCmd", &json!({"padCodes": [pad], "scriptContent": "echo"})).await;
    assert_eq!(refused["code"], 110_031);
    assert_eq!(double.did(pad).await, ["command", "restart"]);
}

#[tokio::test]
async fn each_pad_has_times_of_its_own() {
    let double = Double::start(&["--set", "task_ms=600000", "--set", "online_ms=600000"]).await;
    let (pad, timing) = (&double.pads[0], &double.pads[6]);
    double.set(timing, json!({"power_ms": FOREVER})).await;
    double.set(&double.pads[1], json!({"command_ms": FOREVER})).await;
    let slow = double.submit("setProxy", pad, json!({"enable": false})).await;
    double.call("timingPadOff", &json!({"padCodes": [timing]})).await;
    let command = double.submit("asyncCmd", &double.pads[1], json!({"scriptContent": "echo"})).await;
    let quick = double.submit("restart", pad, json!({})).await;
    double.wait_for_end(quick).await;
    let tasks = double.call("padTaskDetail", &json!({"taskIds": [slow, command]})).await["data"].clone();
    assert_eq!([&tasks[0]["taskStatus"], &tasks[1]["taskStatus"]], [1, 1]);
    assert_eq!(
        (double.truth(timing).await["online"].clone(), double.truth(pad).await["online"].clone()),
        (json!(true), json!(false))
    );
}

#[tokio::test]
async fn lists_lag_and_show_what_they_are_told_to() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[6];
    let infos = json!({"page": 1, "rows": 10, "padCodes": [pad]});
    let status = || async { double.call("infos", &infos).await["data"]["pageData"][0]["padStatus"].clone() };
    double.set(pad, json!({"lag_ms": FOREVER})).await;
    double.call("timingPadOff", &json!({"padCodes": [pad]})).await;
    double.wait_for_act(pad).await;
    assert_eq!((status().await, double.truth(pad).await["pad_status"].clone()), (json!(10), json!(18)));
    double.set(pad, json!({})).await;
    assert_eq!(status().await, 18);
    double.set(pad, json!({"pad_status": 14, "cvm_status": 106, "online": 1})).await;
    let seat = double.call("userPadList", &json!({"padCode": pad})).await["data"][0].clone();
    let details = double.call_at("/openapi/open/pad/padDetails", &infos).await["data"]["pageData"][0].clone();
    assert_eq!((status().await, &seat["cvmStatus"], &details["online"]), (json!(14), &json!(106), &json!(1)));
    double.set(pad, json!({"missing_row": true})).await;
    assert_eq!(double.call("infos", &json!({"page": 1, "rows": 100})).await["data"]["total"], 11);
    double.set(pad, json!({"unknown_pad": true})).await;
    assert_eq!(double.call("userPadList", &json!({})).await["data"].as_array().unwrap().len(), 11);
    let (proxied, proxy) = (&double.pads[0], json!({"enable": true, "ip": "203.0.113.7", "port": 1080}));
    let task = double.submit("setProxy", proxied, proxy).await;
    double.wait_for_end(task).await;
    let shown =
        async |member: &str| double.call("userPadList", &json!({"padCode": proxied})).await["data"][0][member].clone();
    assert_eq!(shown("proxyIp").await, Value::Null);
    double.set(proxied, json!({"proxy_in_list": true})).await;
    assert_eq!([shown("proxyIp").await, shown("publicIp").await], ["203.0.113.7", "203.0.113.7"]);
    double.set(proxied, json!({"public_address": "198.51.100.9"})).await;
    assert_eq!(shown("publicIp").await, "198.51.100.9");
}

#[tokio::test]
async fn pages_lie_as_they_are_switched() {
    let double = Double::start(&[]).await;
    let page = |page: u64| {
        let double = &double;
        async move { double.call("infos", &json!({"page": page, "rows": 8})).await["data"].clone() }
    };
    let first = page(1).await["pageData"].clone();
    double.set_all(json!({"pages": "rows_are_the_size"})).await;
    assert_eq!(page(2).await["rows"], 4);
    double.set_all(json!({"pages": "total_is_zero"})).await;
    assert_eq!(page(1).await["total"], 0);
    double.set_all(json!({"pages": "shifted"})).await;
    assert_eq!(page(2).await["pageData"][0], first[7]);
    double.set_all(json!({"pages": "endless"})).await;
    assert!(page(90).await["totalPage"].as_u64() > Some(90));
    double.set_all(json!({"records": true})).await;
    assert_eq!(double.call("userPadList", &json!({})).await["data"]["records"].as_array().unwrap().len(), 12);
}

#[tokio::test]
async fn a_restart_loses_the_proxy_or_changes_the_boot_id_and_proc_is_unreadable_where_switched() {
    let double = Double::start(&["--set", "online_ms=0"]).await;
    let (pad, neighbour) = (&double.pads[0], &double.pads[1]);
    let proxy = json!({"enable": true, "ip": "203.0.113.7", "port": 1080});
    let task = double.submit("setProxy", pad, proxy).await;
    double.wait_for_end(task).await;
    let restart = || async {
        let task = double.submit("restart", pad, json!({})).await;
        double.wait_for_end(task).await;
        double.truth(pad).await
    };
    let kept = restart().await;
    assert!(kept["proxy"].is_object());
    double.set(pad, json!({"restart_clears_proxy": true, "boot_id_changes": true})).await;
    let lost = restart().await;
    assert!(lost["proxy"].is_null() && lost["boot_id"] != kept["boot_id"]);
    assert_eq!(double.truth(neighbour).await["boot_id"], lost["boot_id"]);
    double.set(neighbour, json!({"proc_unreadable": true})).await;
    let read = double.shell(neighbour, "cat /proc/1/stat; printf %s $?").await;
    assert_eq!(read, "cat: /proc/1/stat: Permission denied\n1");
    double.set(neighbour, json!({"wget_refuses_quiet": true})).await;
    let refused = double.shell(neighbour, "toybox wget -q -O - http://127.0.0.1:1/").await;
    assert_eq!(refused, "wget: Unknown option 'q' (see \"wget --help\")\n");
}

#[tokio::test]
async fn power_of_a_timing_pad_answers_with_tasks_and_a_refusal_says_what_it_is_told_to() {
    let double = Double::start(&["--set", "timing_answer=tasks"]).await;
    let off = double.call("timingPadOff", &json!({"padCodes": [double.pads[6]]})).await;
    double.wait_for_end(off["data"][0]["taskId"].as_u64().unwrap()).await;
    double.set(&double.pads[0], json!({"code": 500, "code_text": "country is not supported"})).await;
    assert_eq!(double.call("padInfo", &json!({"padCode": double.pads[0]})).await["msg"], "country is not supported");
}

/// A new switch must occur in a test.
#[tokio::test]
async fn every_switch_is_shown_by_a_test() {
    let double = Double::start(&[]).await;
    let tests = [
        include_str!("adb.rs"),
        include_str!("answers.rs"),
        include_str!("control.rs"),
        include_str!("operations.rs"),
        include_str!("phones.rs"),
        include_str!("switches.rs"),
    ]
    .concat();
    for row in double.get("switches").await["known"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let shown = [format!("\"{name}\":"), format!("\"{name}=")].iter().any(|way| tests.contains(way));
        assert!(shown, "no test sets `{name}`");
    }
}
