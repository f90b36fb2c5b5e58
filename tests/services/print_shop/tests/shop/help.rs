//! The first texts for a person: the help, the welcome and the README.

use crate::process::{Shop, program};
use kit::ProgramOperator;
use print_shop::machines::{Habit, PRINTERS, TRAYS, USAGE};
use std::fmt::Write;
use tempfile::TempDir;
use tokio::process::Command;

const README: &str = include_str!("../../README.md");

#[tokio::test]
async fn help_speaks_of_this_services_permissions_resources_and_machines() {
    let mut out = String::new();
    for line in ["", "app create ", "printer ", "tray assign ", "task list "] {
        let output = program().args(line.split_whitespace()).arg("--help").output().await.expect("the program runs");
        writeln!(out, "$ print-shop {line}--help\n{}", String::from_utf8_lossy(&output.stdout)).expect("text");
    }
    insta::assert_snapshot!(out);
}

#[tokio::test]
async fn the_files_of_an_installation_have_the_names_of_this_service() {
    let home = TempDir::new().expect("a temporary folder");
    let operator = ProgramOperator { program: env!("CARGO_BIN_EXE_print-shop").into(), data: home.path().join("data") };
    insta::assert_snapshot!(operator.files(&home.path().join("files")).await.expect("files"));
}

#[test]
fn the_table_of_machines_is_whole() {
    let (printers, trays) = USAGE.split_once("fill_tray on").expect("two tables");
    let (_, printers) = printers.split_once("print_page on").expect("two tables");
    for (machines, table) in [(PRINTERS, printers), (TRAYS, trays)] {
        let rows = table.lines().filter_map(|line| line.trim_start().split_once("  ")).map(|(id, _)| id);
        let rows: Vec<_> = rows.filter(|id| id.starts_with("p-")).collect();
        assert_eq!(rows, machines.iter().map(|machine| machine.id).collect::<Vec<_>>());
        let unplugged = machines.iter().filter(|machine| machine.habit == Habit::Unplugged).count();
        assert_eq!(table.matches("(upstream_unavailable)").count(), unplugged);
    }
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
    shell.args(["-c", &script]).env("PRINT_SHOP_DATA", &shop.data).env("PRINT_SHOP_URL", &shop.url);
    shell.env("PRINT_SHOP_KEY", format!("{}:{}", shop.demo.id, shop.demo.secret));
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
