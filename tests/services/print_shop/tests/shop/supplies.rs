//! The parts of the shop other than its tools: configuration file, own commands, background work,
//! and upstreams.

use crate::process::{Shop, json_of, operate, program};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

const SUPPLIERS: &str = "[supplier.north]\npack = 500\n[supplier.empty]\npack = 0\n";

fn write_config(text: &str) -> (TempDir, PathBuf) {
    let home = TempDir::new().expect("a temporary folder");
    let file = home.path().join("shop.toml");
    std::fs::write(&file, text).expect("a file");
    (home, file)
}

/// Returns exit code, standard output and standard error.
async fn run(file: &Path, variables: &[(&str, &str)], line: &str) -> (i32, String, String) {
    let mut command = program();
    command.args(line.split_whitespace()).arg("--config").arg(file).envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().await.expect("the program runs");
    let [said, complaints] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (status.code().expect("an exit"), said, complaints)
}

const MISTAKEN: [&str; 13] = [
    "listen = \"127.0.0.1\"",
    "lisen = \"never shown\"",
    "admin-listen = 3",
    "max-connections = 0",
    "demo = \"yes\"",
    "allow-host = \"one.example\"",
    "allow-origin = [\"https://one.example\", 4]",
    "log-format = \"xml\"",
    "config = \"other.toml\"",
    "[supplier.North]\npack = 2",
    "[supplier.north]\npack = 20000",
    "[supplier.south]\npack = 3\nsecret = \"never shown\"",
    "[supplier.west]\npack = 1\naccount_file = \"west\"",
];

#[tokio::test]
async fn the_check_and_a_server_that_does_not_start_report_the_same_mistake() {
    let (home, file) = write_config("");
    let west = home.path().join("west");
    std::fs::write(&west, "never shown").expect("a file");
    std::fs::set_permissions(&west, PermissionsExt::from_mode(0o640)).expect("a mode");
    let mut shown = String::new();
    for mistaken in MISTAKEN {
        std::fs::write(&file, mistaken).expect("a file");
        let (code, _, said) = run(&file, &[], "config check").await;
        assert_eq!((code, said.contains("never shown")), (1, false), "{said}");
        shown += &said.replace(&home.path().display().to_string(), "HOME");
        assert_eq!(run(&file, &[], "serve").await, (2, String::new(), said.clone()));
    }
    insta::assert_snapshot!(shown);
    std::fs::write(&file, "# A\nlisen = 1\n").expect("a file");
    assert_eq!(run(&file, &[], "").await.0, 2);
    let (code, answer, _) = run(&file, &[], "config check --json").await;
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let expected =
        json!([{"line": 2, "column": 1, "message": "unknown key `lisen`", "help": "did you mean `listen`?"}]);
    assert_eq!((code, &answer["sound"], &answer["mistakes"]), (1, &json!(false), &expected));
}

#[tokio::test]
async fn a_file_that_is_no_toml_or_not_there_stops_every_command_that_reads_it() {
    let (_home, file) = write_config("listen = \"x\nallow-host = [\n");
    for (line, exit) in [("config check", 1), ("serve", 2), ("app list", 2)] {
        let (code, _, said) = run(&file, &[], line).await;
        assert!(code == exit && said.contains("shop.toml:1:12") && said.contains("has a mistake"), "{line}: {said}");
        let (code, _, said) = run(Path::new("/nowhere/shop.toml"), &[], line).await;
        assert!(
            code == exit && said.contains("cannot read the configuration file /nowhere/shop.toml"),
            "{line}: {said}"
        );
    }
    let (code, _, said) = run(Path::new(""), &[], "config check").await;
    assert!(code == 1 && said.contains("name it with --config FILE"), "{said}");
    assert_eq!(run(Path::new("/nowhere/shop.toml"), &[], "completion bash").await.0, 0, "it reads none");
}

#[tokio::test]
async fn the_command_line_wins_over_the_environment_that_over_the_file_and_that_over_defaults() {
    let text = format!("log = \"warn\"\nlog-format = \"json\"\nlisten = \"[::1]:1\"\ndemo = true\n{SUPPLIERS}");
    let (home, file) = write_config(&text);
    let variables = [("PRINT_SHOP_LOG", "debug"), ("PRINT_SHOP_LOG_FORMAT", "text"), ("PRINT_SHOP_LISTEN", "")];
    let (code, answer, said) = run(&file, &variables, "--log trace config check --json").await;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{said}"));
    let of = |flag: &str| {
        let mut rows = answer["flags"].as_array().expect("flags").iter();
        rows.find(|row| row["flag"] == flag).map(|row| json!([row["value"], row["from"]])).unwrap_or_default()
    };
    assert_eq!(of("log"), json!(["trace", "command line"]));
    assert_eq!(of("log-format"), json!(["text", "environment"]));
    assert_eq!(of("listen"), json!(["[::1]:1", "file"]), "an empty variable is none");
    assert_eq!(of("demo"), json!(["true", "file"]));
    assert_eq!(of("data"), json!(["data", "default"]));
    assert_eq!(of("config"), Value::Null);
    let suppliers = json!([{"supplier": "north", "pack": 500}, {"supplier": "empty", "pack": 0}]);
    assert_eq!((code, &answer["sound"], &answer["supplier"]), (0, &json!(true), &suppliers));
    // The path is relative to the file, not to the folder of the command.
    std::fs::write(&file, "data = \"there\"").expect("a file");
    let (_, answer, _) = run(&file, &[], "config check").await;
    let place = home.path().join("there").display().to_string();
    assert!(answer.contains(&place), "{answer}");
}

#[tokio::test]
async fn own_commands_answer_the_same_with_a_server_and_without_one() {
    let mut shop = Shop::start_with(SUPPLIERS).await;
    let file = shop.data.with_file_name("shop.toml");
    let orders = [
        ("supply list --json", 0, r#""pack": 500"#),
        ("supply order north --yes", 0, "the van has brought 500 sheets"),
        ("supply order empty --yes", 1, "the van has brought 0 sheets"),
        ("supply order east --yes", 1, "there is no supplier east"),
        ("supply order north", 1, "there is no terminal: Order and pay for a pack of north? Add --yes"),
    ];
    for running in [true, false] {
        if !running {
            shop.stop().await;
        }
        for (line, code, part) in orders {
            let (found, said, complaints) = run(&file, &[], line).await;
            let said = said + &complaints;
            assert!(found == code && said.contains(part), "{line}: {found} {said}");
        }
    }
    // Without the file, a server has no suppliers. A command of the shop's own also works in a
    // folder that does not exist yet.
    let (code, said) = operate(&shop.data.with_file_name("new"), "supply list").await;
    assert_eq!((code, said.trim()), (0, "none"));
}

#[tokio::test]
async fn the_monitor_shows_each_upstream_and_stays_ready_while_one_is_down() {
    let shop = Shop::start_with(&format!("admin-listen = \"127.0.0.1:0\"\n{SUPPLIERS}")).await;
    let file = shop.data.with_file_name("shop.toml");
    run(&file, &[], "supply order north --yes").await;
    let get = async |path: &str| {
        let answer = shop.watch(path).await.expect("an answer");
        (answer.status, answer.body)
    };
    let down = "the program serves\nthe upstream empty (paper) cannot be reached, or refuses the credentials: its targets were never read\n";
    assert_eq!(get("/readyz").await, (200, down.to_owned()));
    let (_, page) = get("/metrics").await;
    let shown: Vec<_> = page.lines().filter(|line| line.starts_with("print_shop_upstream_")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    print_shop_upstream_reachable{upstream="empty"} 0
    print_shop_upstream_reachable{upstream="north"} 1
    print_shop_upstream_age_seconds{upstream="north"} 0
    print_shop_upstream_targets{upstream="empty"} 0
    print_shop_upstream_targets{upstream="north"} 1
    print_shop_upstream_waiting{upstream="empty"} 0
    print_shop_upstream_waiting{upstream="north"} 0
    print_shop_upstream_unserved_calls{upstream="empty"} 0
    print_shop_upstream_unserved_calls{upstream="north"} 0
    print_shop_upstream_refused_total{upstream="empty"} 0
    print_shop_upstream_refused_total{upstream="north"} 0
    print_shop_upstream_calls_total{upstream="empty",outcome="ok"} 0
    print_shop_upstream_calls_total{upstream="north",outcome="ok"} 1
    "#);
}

#[tokio::test]
async fn the_reason_why_a_machine_is_unavailable_is_in_the_log_and_the_doctors_report() {
    let shop = Shop::start().await;
    let look = async || json_of(&shop.data, "doctor").await;
    assert_eq!(look().await["warnings"], Value::Null);
    for (tool, arguments) in
        [("get_printer", json!({"printer_id": "p-gone"})), ("get_tray", json!({"tray_id": "p-gone"}))]
    {
        let refused = shop.call(tool, arguments).await.expect_err("it is unplugged");
        assert_eq!(refused["code"], "upstream_unavailable");
        assert!(!refused.to_string().contains("plug"), "the reason is for the operator: {refused}");
    }
    let found = look().await;
    assert_eq!((&found["healthy"], &found["warnings"][0]["check"]), (&json!(true), &json!("upstream")), "{found}");
    let warned = found["warnings"][0]["found"].as_str().expect("a finding");
    assert!(warned.contains("`get_printer`") && warned.contains("the plug is out"), "{warned}");
    let log = std::fs::read_to_string(shop.data.with_file_name("log")).expect("a log");
    assert_eq!(log.matches("the plug is out").count(), 1, "one call is logged a minute: {log}");
}
