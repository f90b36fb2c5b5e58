//! Each condition in which a phone can be, and a program that is gone, as clients and the operator
//! see it.

use super::super::{FAST, Site, findings, id, list_all};
use super::table_of;
use crate::harness::double::Double;
use crate::harness::program::{Program, steady};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::rc::Rc;
use tokio::task::LocalSet;

fn conditions() -> [(&'static str, Value); 7] {
    let udev = "no permissions (user in plugdev group; are your udev rules wrong?); see [http://adb.example]";
    [
        ("runs", json!({})),
        ("is off", json!({})),
        ("is unauthorized", json!({"adb_state": "unauthorized"})),
        ("has no permissions", json!({"adb_state": udev})),
        ("is in recovery", json!({"adb_state": "recovery"})),
        ("has Android 6", json!({"adb_old": true})),
        ("has no nc", json!({"tools": ["curl"]})),
    ]
}

#[tokio::test]
async fn each_condition_of_a_phone_is_told_to_clients_with_its_reason_and_to_the_operator_with_its_remedy() {
    let conditions = conditions();
    let (double, site) = (Double::start(7, FAST).await, Site::new());
    let (codes, address) = (double.codes().await, double.adb().to_string());
    // Only the program that sets proxies is removed later.
    let set_proxy = site.path("set-proxy").display().to_string();
    fs::copy("/bin/true", &set_proxy).expect("a program");
    let mut config = table_of(&double, &json!(["*"]));
    for action in ["start", "stop", "status", "clear-proxy"] {
        let _ = writeln!(config, "{action} = {:?}", double.program(action));
    }
    let _ = writeln!(config, "set-proxy = [\"{set_proxy}\"]\nproxy-seconds = 1");
    site.configure(&config);
    for ((condition, switches), code) in conditions.iter().zip(&codes) {
        double.switch(Some(code), switches).await;
        if *condition == "is off" {
            double.post(&format!("pads/{code}/act/stop")).await.expect("it stops");
        }
    }
    let (program, local) = (Rc::new(site.start(7, &[]).await), LocalSet::new());
    let describing = conditions.into_iter().zip(&codes).map(|((condition, _), code)| {
        let (program, id) = (Rc::clone(&program), id("rack", code));
        local.spawn_local(async move { describe(&program, condition, &id).await })
    });
    let describing: Vec<_> = describing.collect();
    local.await;
    let mut said = String::new();
    for described in describing {
        said += &described.await.expect("no panic");
    }
    let check = async |what: &str, said: &mut String| {
        let checked = kit::wait_for(async || match site.operate("platform check rack").await {
            (_, text) if text.contains("does not answer") => Err(text),
            answer => Ok(answer),
        });
        let (code, text) = checked.await.expect("the phones answer");
        let found = findings(&steady(&text, site.home.path()).replace(&address, "SERVER"));
        let lines = found.lines().filter(|line| !line.starts_with("start of a phone"));
        let _ = writeln!(said, "== platform check, {what}: exit {code}\n{}", lines.collect::<Vec<_>>().join("\n"));
    };
    check("with all programs", &mut said).await;
    fs::remove_file(&set_proxy).expect("it was there");
    check("without `set-proxy`", &mut said).await;
    Rc::into_inner(program).expect("all tasks have ended").stop().await;
    let (code, text) = site.operate("config check").await;
    let text =
        steady(&text, site.home.path()).lines().filter(|line| !line.contains("^^")).collect::<Vec<_>>().join("\n");
    let _ = writeln!(said, "== config check: exit {code}\n{text}");
    site.configure(&table_of(&double, &json!([codes[0], "missing"])));
    check("of two phones", &mut said).await;
    drop(double);
    check("without the server", &mut said).await;
    insta::assert_snapshot!(said.replace(&codes[0], "CODE"));
}

async fn describe(program: &Program, condition: &str, id: &str) -> String {
    let mut said = String::new();
    let phone = kit::wait_for(async || {
        let phone = program.call("get_device", json!({"device_id": id})).await.expect("it is known");
        // On a busy machine, a phone may miss its time, and is read again.
        if phone.to_string().contains("does not answer") { Err(phone.to_string()) } else { Ok(phone) }
    });
    let phone = phone.await.expect("the phone answers");
    let listed = list_all(program).await.into_iter().find(|phone| phone["device_id"] == id).expect("it is listed");
    let _ = writeln!(said, "== a phone that {condition}: {} in the list, {}", listed["state"], phone["state"]);
    let _ = writeln!(said, "{}\n{:#}", phone["capabilities"], phone["notes"]);
    let proxy = json!({"device_id": id, "scheme": "socks5", "host": "203.0.113.7", "port": 1080});
    let action = if condition == "is off" { "boot" } else { "restart" };
    for (tool, arguments) in [("set_proxy", proxy), ("set_power", json!({"device_id": id, "action": action}))] {
        match program.call(tool, arguments).await {
            Ok(accepted) => {
                let task = program.task(&accepted["task_id"]).await;
                let is_seen = task["status"] == "success";
                let observed = if is_seen { json!("the effect") } else { task["evidence"]["observed"].clone() };
                let _ = writeln!(said, "{tool}: {} {observed}", task["status"]);
            }
            Err(error) => drop(writeln!(said, "{tool}: {} {}", error["code"], error["message"])),
        }
    }
    said
}
