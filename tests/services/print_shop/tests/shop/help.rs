//! The first texts for a person: the help, the welcome and the README.

use crate::process::{Shop, operator, program};
use std::fmt::Write;
use tempfile::TempDir;
use tokio::process::Command;

const README: &str = include_str!("../../README.md");

#[tokio::test]
async fn help_speaks_of_this_services_permissions_resources_and_machines() {
    let mut out = String::new();
    for line in ["", "app create ", "printer ", "tray assign ", "task list "] {
        let output = program().args(line.split_whitespace()).arg("--help").output().await.expect("the program runs");
        let help = String::from_utf8(output.stdout).expect("text");
        // The first one has the flags that every command has.
        let own = if line.is_empty() { &help } else { help.split("      --data <DIR>").next().expect("a text") };
        writeln!(out, "$ print-shop {line}--help\n{own}").expect("text");
    }
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn the_files_of_an_installation_have_the_names_of_this_service() {
    let home = TempDir::new().expect("a temporary folder");
    let operator = operator(&home.path().join("data"));
    let text = operator.files(&home.path().join("files")).await.expect("files");
    let files: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("=== ")).collect();
    let own = ["rules.yml", "service", "sysusers", "tmpfiles", "toml"].map(|kind| format!("print-shop.{kind}"));
    assert!(own.iter().all(|name| files.contains(&&**name)) && files.len() == own.len() + 3, "{files:?}");
    for named in ["COPY print-shop ", "PRINT_SHOP_DATA=/var/lib/print-shop", "increase(print_shop_tool_calls_total"] {
        assert!(text.contains(named), "{named}: {text}");
    }
    assert!(!text.to_lowercase().contains("cloudphone"), "{text}");
}

/// Leaves out the commands that start the program: the test does that itself, on its own port and
/// folder.
#[tokio::test]
async fn the_readme_can_be_followed() {
    let shop = Shop::start().await;
    let blocks: Vec<_> = README.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or("")).collect();
    let (started, blocks) = blocks.split_at(2);
    assert!(started[0].contains("cargo run --package print-shop\n") && started[1].contains("PRINT_SHOP_KEY="));
    let script = blocks.concat().replace("cargo run --quiet --package print-shop --", env!("CARGO_BIN_EXE_print-shop"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("PRINT_SHOP_DATA", &shop.operator.data).env("PRINT_SHOP_URL", &shop.url);
    shell.env("PRINT_SHOP_KEY", format!("{}:{}", shop.demo().id, shop.demo().secret));
    let output = shell.output().await.expect("a shell");
    let [said, complaints] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{said}{complaints}");
    let ends: Vec<_> = said.lines().filter(|line| line.starts_with("{\"task_id\"")).collect();
    for (end, status) in ends.iter().zip(["success", "failed_silent", "timeout"]) {
        assert!(end.contains(&format!("\"status\":\"{status}\"")), "{end}");
        assert_eq!(end.contains("refunded_at"), status == "failed_silent", "{end}");
    }
    assert_eq!(ends.len(), 3, "{said}{complaints}");
    assert!(said.contains("healthy"), "{said}");
}
