//! A working platform: its phones, its check, and its evidence before and after the check.

use super::{FAST, Site, assert_nowhere, count_requests, echo, end, findings, id, lab, list_all, until};
use crate::harness::double::{Double, KEYS, table};
use crate::harness::program::{start, steady};
use crate::harness::writes::describe_task;
use kit::Process;
use serde_json::{Value, json};

fn normalize(text: &str, site: &Site) -> String {
    let is_start = |word: &str| {
        let start = word.trim_end_matches(';').split_once('@').and_then(|(start, _)| start.split_once(':'));
        start.is_some_and(|(boot, ticks)| boot.len() == 8 && !ticks.is_empty() && ticks.parse::<u64>().is_ok())
    };
    let minutes = |line: &str| {
        let (before, after) = line.split_once("clock is ")?;
        let (seconds, after) = after.split_once(' ')?;
        let whole = (seconds.parse::<i64>().ok()? + 30).div_euclid(60) * 60;
        Some(format!("{before}clock is {whole} {after}"))
    };
    let line = |line: &str| match line.rsplit_once(' ') {
        Some((row, _)) if row.starts_with("lab armcloud ") => format!("{row} AGE"),
        _ if line.starts_with("clock ") => minutes(line).expect("a clock"),
        _ => line.split(' ').map(|word| if is_start(word) { "START" } else { word }).collect::<Vec<_>>().join(" "),
    };
    let text = steady(text, site.home.path());
    let told = text.lines().filter(|line| !line.starts_with("TIME "));
    told.map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn ten_lines_of_configuration_serve_a_platform_beside_the_simulator() {
    let site = Site::new();
    let double = Double::start(3, FAST).await;
    // This call writes the credential files.
    table("lab", &double, &site.home);
    let platform = format!(
        "sim-devices = 2\n[platform.phone]\nkind = \"simulator\"\n[platform.lab]\nkind = \"armcloud\"\nbase-url = \"{}\"\n\
         prefix = \"/vcpcloud/api/padApi\"\naccess-key-file = \"lab.access\"\nsecret-key-file = \"lab.secret\"\n",
        double.url
    );
    site.configure(&(echo() + &platform));
    let mut program = site.start(5, &[]).await;
    let listed = list_all(&program).await;
    insta::assert_snapshot!("list", listed.iter().map(|phone| format!("{phone}\n")).collect::<String>());

    let codes = double.codes().await;
    let restart = json!({"device_id": id("lab", &codes[0]), "action": "restart"});
    let proxy =
        json!({"device_id": id("lab", &codes[1]), "scheme": "socks5", "host": "proxy.example.com", "port": 1080});
    let password = "correct-horse-battery";
    let secret = json!({"device_id": id("lab", &codes[2]), "scheme": "http", "host": "proxy.example.com", "port": 8080,
        "username": "user", "password": password});
    let waits = program.call("set_proxy", secret).await.expect("accepted");
    let (restarted, proxied) = tokio::join!(end(&program, "set_power", restart), end(&program, "set_proxy", proxy));
    assert_eq!(restarted["status"], "success", "{restarted}");
    insta::assert_snapshot!("proxied", describe_task(proxied));

    let mut transcript = String::new();
    for line in ["platform list", "platform check lab", "platform check phone", "platform check nowhere"] {
        let (code, text) = site.operate(line).await;
        let text = normalize(&text, &site);
        transcript += &format!("$ cloudphone {line}\n{text}\nexit {code}\n\n");
    }
    insta::assert_snapshot!("commands", transcript);

    let (_, shown) = site.operate(&format!("task show {}", waits["task_id"].as_str().expect("text"))).await;
    program.stop().await;
    let secrets = KEYS.map(|(_, key)| key).into_iter().chain([password]).collect::<Vec<_>>();
    let config = site.path("cloudphone.toml").display().to_string();
    let again = start(&site.home).flags(&["--config", &config]).command().expect("a log");
    let welcome = Process::start(again).expect("it starts").until("Ctrl-C").await.expect("it serves");
    let outputs = [&welcome, &shown, &transcript, &restarted.to_string()];
    assert!(secrets.iter().all(|secret| outputs.iter().all(|text| !text.contains(secret))));
    for which in ["access", "secret"] {
        std::fs::remove_file(site.path(&format!("lab.{which}"))).expect("the credentials' own file");
    }
    assert_nowhere(site.home.path(), &secrets);
}

#[tokio::test]
async fn a_missing_effect_is_refunded_once_a_check_has_shown_that_readings_follow_and_not_before() {
    let (site, double, program) = lab(3, &echo(), &[]).await;
    let codes = double.codes().await;
    double.switch(None, &json!({"effect": {"value": "never", "endpoint": "restart"}})).await;
    double.switch(Some(&codes[0]), &json!({"effect": "always"})).await;
    let swallowed = |code: &str| json!({"device_id": id("lab", code), "action": "restart"});
    let task = program.call("set_power", swallowed(&codes[1])).await.expect("accepted");
    let name = task["task_id"].as_str().expect("text");
    // After the reading from before, two show the same start, long after it should have changed.
    until(async || count_requests(&double, "asyncCmd").await >= 3).await;
    until(async || site.operate(&format!("task show {name}")).await.1.contains("here, that proves no absence")).await;
    let before = program.call("get_task", json!({"task_id": name, "wait_seconds": 0})).await.expect("a task");
    assert_eq!((&before["status"], site.ledger().get("refund")), (&json!("dispatched"), None), "{before}");

    let line = format!("platform check lab --write {} --proxy http://192.0.2.7:3128", id("lab", &codes[0]));
    let (code, asked) = site.operate(&line).await;
    assert!(code == 1 && asked.contains("there is no terminal:") && asked.contains("--yes"), "{asked}");
    assert_eq!(count_requests(&double, "restart").await, 1, "nothing is sent without a yes");
    let (code, text) = site.operate(&format!("{line} --yes")).await;
    insta::assert_snapshot!(format!("exit {code}\n{}", normalize(&text, &site)));

    let after = end(&program, "set_power", swallowed(&codes[2])).await;
    assert_eq!((&after["status"], site.ledger().get("refund")), (&json!("failed_silent"), Some(&1)), "{after}");
}

#[tokio::test]
async fn a_restart_that_was_seen_proves_later_readings_and_one_that_a_busy_platform_did_not_make_is_not_charged() {
    let (site, double, program) = lab(2, "", &[]).await;
    let code = double.codes().await.swap_remove(0);
    let restart = json!({"device_id": id("lab", &code), "action": "restart"});
    let seen = end(&program, "set_power", restart.clone()).await;
    assert_eq!((&seen["status"], site.ledger().get("refund")), (&json!("success"), None), "{seen}");
    double.switch(Some(&code), &json!({"effect": {"value": "never", "endpoint": "restart"}})).await;
    let swallowed = end(&program, "set_power", restart.clone()).await;
    assert_eq!((&swallowed["status"], site.ledger().get("refund")), (&json!("failed_silent"), Some(&1)), "{swallowed}");
    for (refusal, reversals) in [(json!({"code": 1218}), 1), (json!({"http_status": 429}), 2)] {
        let (kind, value) = refusal.as_object().and_then(|refusal| refusal.iter().next()).expect("a switch");
        let switch = json!({kind: {"value": value, "endpoint": "restart", "calls": 1}});
        double.switch(Some(&code), &switch).await;
        let busy = end(&program, "set_power", restart.clone()).await;
        let reported = &busy["evidence"]["reported"];
        assert_eq!((&busy["status"], reported), (&json!("failed"), &json!("busy")), "{busy}");
        assert!(busy["next_step"].as_str().is_some_and(|next| next.contains("in a minute")), "{busy}");
        assert_eq!(site.ledger().get("reversal"), Some(&reversals), "{busy}");
    }
}

#[tokio::test]
async fn a_check_reads_an_own_address_again_and_proves_restarts_without_a_proxy() {
    let (site, double, _program) = lab(2, &echo(), &[]).await;
    let [first, code] = <[String; 2]>::try_from(double.codes().await).expect("two phones");
    let phone = id("lab", &code);
    // A screen that is broken on one phone says nothing of another one.
    double.switch(Some(&first), &json!({"code": {"value": 120_008, "endpoint": "stsTokenByPadCode"}})).await;
    let broken = id("lab", &first);
    let (exit, text) = site.operate(&format!("platform check lab --write {broken} --yes")).await;
    assert!(exit == 1 && text.contains(&format!("not done on {broken}")), "{text}");
    assert_eq!(count_requests(&double, "restart").await, 0);
    let (exit, text) = site.operate(&format!("platform check lab --write {phone} --yes")).await;
    assert!(exit == 0 && text.contains("restart") && !text.contains("proxy, there"), "{text}");
    let proven = site.read_knowledge("lab");
    assert!(proven["start"].is_string() && proven["exit"].is_null(), "{proven}");
    let check = async |switches: Value| {
        double.switch(Some(&code), &switches).await;
        site.operate(&format!("platform check lab --write {phone} --proxy socks5://203.0.113.7:1080 --yes")).await
    };
    for address in ["127.99.0.7", "127.99.0.8"] {
        let (exit, text) = check(json!({"own_address": address})).await;
        assert!(exit == 0 && text.contains(&format!("after clear_proxy: {address}, as before")), "{text}");
        assert_eq!(site.read_knowledge(&phone)["own_address"], json!({"read": address}));
    }
    let (exit, text) = check(json!({"own_address": "127.99.0.9", "public_address": "127.99.0.10"})).await;
    assert!(exit == 1 && text.contains("the platform shows another address of this phone"), "{text}");
    assert_eq!(site.read_knowledge(&phone)["own_address"], json!({"read": "127.99.0.8"}));
}

#[tokio::test]
async fn a_check_writes_by_tasks_that_need_the_phone_free_and_a_missing_effect_withdraws_its_proof() {
    let (site, double) = (Site::new(), Double::start(2, FAST).await);
    site.configure(&site.table("lab", &double));
    let [free, busy] = <[String; 2]>::try_from(double.codes().await).expect("two phones");
    let check = async |code: &str| site.operate(&format!("platform check lab --write {} --yes", id("lab", code))).await;
    let offline = check(&free).await;
    assert!(offline.0 == 1 && offline.1.contains("not done: no server runs here"), "{offline:?}");
    let program = site.start(2, &[]).await;
    double.switch(Some(&busy), &json!({"effect": {"value": "never", "endpoint": "restart"}})).await;
    let restart = json!({"device_id": id("lab", &busy), "action": "restart"});
    let task = program.call("set_power", restart).await.expect("accepted");
    let refused = check(&busy).await;
    let why = format!("not done: the write {} is in flight there", task["task_id"].as_str().expect("text"));
    assert!(refused.0 == 1 && refused.1.contains(&why), "{refused:?}");
    assert_eq!(check(&free).await.0, 0);
    assert!(site.read_knowledge("lab")["start"].is_string());
    double.switch(Some(&free), &json!({"effect": {"value": "never", "endpoint": "restart"}})).await;
    let missed = check(&free).await;
    assert!(missed.0 == 1 && missed.1.contains("ended as failed_silent"), "{missed:?}");
    let proofs = ["lab", &id("lab", &free)].map(|entry| site.read_knowledge(entry)["start"].clone());
    assert_eq!((proofs, site.ledger().get("refund")), ([Value::Null, Value::Null], Some(&1)));
    let (_, listed) = site.operate("task list").await;
    assert_eq!(listed.matches("platform check").count(), 2, "{listed}");
}

#[tokio::test]
async fn a_check_explains_each_step_that_fails() {
    let site = Site::new();
    let double = Double::start(2, FAST).await;
    let table = site.table("lab", &double);
    let with_echo = echo() + &table;
    let wrong = with_echo.replace("lab.secret", "lab.access");
    let cases: &[(&str, &str, Value)] = &[
        ("a wrong secret", &wrong, json!({})),
        ("another access key", &with_echo, json!({"code": 2_031})),
        ("an address that is not on the allow list", &with_echo, json!({"code": 1_116})),
        ("an account without these calls", &with_echo, json!({"code": 100_001})),
        ("a prefix that the host does not have", &with_echo, json!({"http_status": 404})),
        ("a clock that is an hour off", &with_echo, json!({"clock_skew_s": 3_600})),
        ("a clock that is two minutes off", &with_echo, json!({"clock_skew_s": 120})),
        ("no phone that runs", &with_echo, json!({"pad_status": 18, "cvm_status": 99})),
        ("a forwarder in front of the callback listener", &with_echo, json!({"forwarder": "127.99.0.1"})),
        ("commands that show nothing", &with_echo, json!({"shell": "silent"})),
        ("no echo", &table, json!({})),
        ("no session", &with_echo, json!({"code": {"value": 120_008, "endpoint": "stsTokenByPadCode"}})),
        ("a platform that is down", &with_echo, json!({"refuse_connections": true})),
    ];
    let mut transcript = String::new();
    for (name, config, switches) in cases {
        site.configure(config);
        double.switch(None, switches).await;
        let (code, text) = site.operate("platform check lab").await;
        let sound = text.lines().find(|line| line.starts_with("sound ")).expect("a line");
        assert_eq!(sound.ends_with("true"), code == 0, "{text}");
        transcript += &format!("{name}: exit {code}\n{}\n", findings(&normalize(&text, &site)));
    }
    insta::assert_snapshot!(transcript);
}
