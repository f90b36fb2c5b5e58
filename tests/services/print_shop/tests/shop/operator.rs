//! The commands of an operator, with the same output with and without a running server.

use crate::process::{Shop, json_of, operate};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

const COMMANDS: &[&str] = &[
    "app create feeder --permission service",
    "key create feeder",
    "tray assign feeder p-1 p-3",
    "printer assign feeder p-2",
    "app show feeder",
    "app grant feeder print",
    "app revoke feeder service",
    "tray unassign feeder p-3",
    "app list",
    "key list feeder",
    "printer list --limit 3",
    "tray list --after p-2",
    "task list",
    "refunds",
    "tools",
    "tools get_job",
    "audit tail",
    "doctor",
    // Mistakes, with their alternatives.
    "app create other --permission fly",
    "app create other --permission device",
    "tray assign feeder p-5",
    "printer assign feeder p-9",
    "device list",
    "task show nonsense",
];

#[tokio::test]
async fn commands_answer_the_same_with_a_server_and_without_one() {
    let mut seen = Vec::new();
    for running in [true, false] {
        let mut shop = Shop::start().await;
        // The lines of the acts of the first start come before those of the calls.
        while json_of(&shop.data, "audit tail").await.as_array().is_none_or(|lines| lines.len() < 2) {}
        let (page, paper) = (json!({"printer_id": "p-2", "mode": "draft"}), json!({"tray_id": "p-9", "sheets": 1}));
        for (tool, arguments) in [("print_page", page), ("fill_tray", paper)] {
            shop.call(tool, arguments).await.expect_err("for the audit: a call without an effect");
        }
        // Stops the server, so that its audit is complete. The second half serves the same folder.
        if !running {
            shop.stop().await;
        }
        let mut out = String::new();
        for line in COMMANDS.iter().filter(|line| !(running && line.starts_with("audit"))) {
            let (code, text) = operate(&shop.data, line).await;
            let exit = if code == 0 { String::new() } else { format!("exit {code}\n") };
            let text = steady(&text, &shop.data).replace("owner's socket", "CHANNEL").replace("no server", "CHANNEL");
            writeln!(out, "$ print-shop {line}\n{text}\n{exit}").expect("text");
        }
        seen.push(out);
    }
    let without_audit: Vec<_> = seen[1].split("$ print-shop ").filter(|said| !said.starts_with("audit")).collect();
    assert_eq!(seen[0], without_audit.join("$ print-shop "));
    insta::assert_snapshot!(seen[1]);
}

/// The list of tasks distinguishes a printer and a tray with the same id.
#[tokio::test]
async fn a_task_is_listed_with_the_resource_that_it_is_on() {
    let shop = Shop::start().await;
    for (tool, arguments) in [
        ("print_page", json!({"printer_id": "p-1", "mode": "draft"})),
        ("fill_tray", json!({"tray_id": "p-1", "sheets": 1})),
    ] {
        let job = shop.call(tool, arguments).await.expect("a job");
        shop.end(&job).await;
    }
    let tasks = json_of(&shop.data, "task list --target p-1").await["tasks"].take();
    let told: Vec<_> =
        tasks.as_array().expect("tasks").iter().map(|task| json!([task["resource"], task["target"]])).collect();
    assert_eq!(told, [json!(["tray", "p-1"]), json!(["printer", "p-1"])]);
    let shown = json_of(&shop.data, &format!("task show {}", tasks[1]["task_id"].as_str().expect("an id"))).await;
    assert_eq!((&shown["status"], &shown["evidence"]["checked"]), (&json!("success"), &json!("page_counter")));
}

/// Returns the text without the parts that differ from run to run: ids, secrets, times and the
/// folder. Several blanks become one.
fn steady(text: &str, folder: &Path) -> String {
    let text = text.replace(&folder.display().to_string(), "DATA");
    let hex = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let word = |word: &str| {
        let (name, rest) = word.split_once('_').unwrap_or(("", word));
        match name {
            "act" | "app" | "key" | "secret" | "task" if rest.len() >= 16 => format!("{name}_0"),
            _ if word.len() >= 20 && word.ends_with('Z') => "TIME".to_owned(),
            _ if word.len() >= 10 && hex(word.split('-').next().unwrap_or_default()) => "REQUEST".to_owned(),
            _ => word.to_owned(),
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
