//! The configuration file of the product: its keys, and starts of the program with it.

use crate::harness::program::{Program, binary, json_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;

async fn check(text: &str) -> (bool, Value) {
    let home = TempDir::new().expect("a temporary folder");
    let file = home.path().join("cloudphone.toml");
    std::fs::write(&file, text).expect("a file");
    let output = Command::new(binary()).env_clear().args(["config", "check", "--json", "--config"]).arg(file).output();
    let output = output.await.expect("the program runs");
    let answer = serde_json::from_slice(&output.stdout);
    (output.status.success(), answer.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

#[tokio::test]
async fn every_flag_of_the_server_has_a_key_of_its_name_and_of_its_type() {
    let output = Command::new(binary()).env_clear().args(["serve", "--help"]).output().await;
    let page = String::from_utf8(output.expect("the program runs").stdout).expect("text");
    let blocks: Vec<_> =
        page.split("\n      --").map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let rows = blocks.iter().skip(1).map(|row| {
        let after = |begin: &str| row.split_once(begin).map_or("", |(_, rest)| rest);
        let between = |begin, end| after(begin).split_once(end).map_or("", |(value, _): (&str, &str)| value);
        let (flag, about) = row.split_once(' ').expect("a help");
        let name = flag.split_once('[').map_or(flag, |(name, _)| name);
        assert!(row.contains(&format!("[env: CLOUDPHONE_{}=]", name.replace('-', "_").to_uppercase())), "{row}");
        let has_value = flag != name || about.starts_with('<');
        (name, if has_value { between("<", '>') } else { "" }, between("[default: ", ']'))
    });
    let rows: Vec<_> = rows.filter(|(name, ..)| !["as", "config", "json", "reason", "socket"].contains(name)).collect();
    let mut file = String::new();
    for (name, value, default) in &rows {
        let written = match (*value, *default) {
            ("", _) => "true".to_owned(),
            ("HOST" | "ORIGIN" | "ADDRESS[/BITS]", "") => r#"["127.0.0.1"]"#.to_owned(),
            ("ADDRESS:PORT", "") => r#""127.0.0.1:0""#.to_owned(),
            // Simulated phones cannot have a shared store.
            ("URL", "") if *name == "store" => "\"\"".to_owned(),
            ("URL", "") => r#""http://127.0.0.1:8081""#.to_owned(),
            (_, "") if *name == "cell" => "\"eu1\"".to_owned(),
            ("BOOL", "") => "true".to_owned(),
            ("NAME", "") if *name == "toolsets" => r#"["screen"]"#.to_owned(),
            ("N" | "DAYS" | "BYTES" | "SECONDS" | "BOOL", default) => default.to_owned(),
            (_, default) => format!("{default:?}"),
        };
        writeln!(file, "{name} = {written}").expect("text");
    }
    let (sound, answer) = check(&file).await;
    assert!(sound, "{file}{answer:#}");
    let told = answer["flags"].as_array().expect("flags");
    assert!(told.iter().all(|row| row["from"] == "file"), "{answer:#}");
    let told: BTreeSet<_> = told.iter().filter_map(|row| row["flag"].as_str()).collect();
    assert_eq!(told, rows.iter().map(|(name, ..)| *name).collect::<BTreeSet<_>>());
}

#[tokio::test]
async fn the_rack_of_the_page_is_a_sound_configuration() {
    let page = include_str!("../../docs/own-phones.md");
    let (_, rack) = page.split_once("## A rack of 40\n\n```toml\n").expect("a block");
    let (sound, answer) = check(rack.split("```").next().expect("its text")).await;
    assert!(sound, "{answer:#}");
}

#[tokio::test]
async fn a_mistake_in_a_flag_of_the_simulated_phones_comes_with_help() {
    for (text, help) in [
        ("sim-devices = 0", "0 is not in 1..=1000000"),
        ("allow-private-proxy = \"no\"", "expected true or false"),
        ("sim-sed = 1", "did you mean `sim-seed`?"),
    ] {
        let (sound, answer) = check(text).await;
        assert_eq!((sound, &answer["mistakes"][0]["help"]), (false, &json!(help)), "{answer}");
    }
}

#[tokio::test]
async fn a_flag_without_the_one_that_goes_with_it_is_refused_wherever_it_is() {
    for (half, both) in [
        ("echo-listen = \"127.0.0.1:0\"\n", "--echo-listen and --echo-url"),
        ("tls-key = \"key.pem\"\ntls-cert = \"\"\n", "--tls-cert and --tls-key"),
    ] {
        let (sound, answer) = check(half).await;
        let told = answer["error"]["message"].as_str().expect("text");
        assert!(!sound && told.starts_with(&format!("{both} go together; give both, or neither")), "{answer:#}");
    }
}

#[tokio::test]
async fn a_variable_of_a_switch_takes_usual_words_and_a_mistake_names_the_variable() {
    let run = async |name: &str, text: &str| {
        let mut command = Command::new(binary());
        command.env_clear().args(["app", "list", "--data", "/nowhere"]).env(name, text);
        let output = command.output().await.expect("the program runs");
        let [told, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        (output.status.code().expect("an exit code"), told.starts_with('{'), said)
    };
    for (text, is_json) in [("1", true), ("yes", true), ("True", true), ("0", false), ("no", false), ("", false)] {
        let (code, told_json, said) = run("CLOUDPHONE_JSON", text).await;
        assert_eq!((code, told_json), (4, is_json), "{text:?}: {said}");
    }
    for name in ["CLOUDPHONE_DEMO", "CLOUDPHONE_ALLOW_PRIVATE_PROXY", "CLOUDPHONE_MAX_CONNECTIONS"] {
        for text in ["", "1"] {
            assert_eq!(run(name, text).await.0, 4, "{name}={text}");
        }
        let (code, _, said) = run(name, "maybe").await;
        assert!(code == 2 && said.contains(&format!("invalid value 'maybe' for '{name}'")), "{said}");
    }
}

#[tokio::test]
async fn a_program_and_its_commands_use_the_same_file() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let file = home.path().join("cloudphone.toml");
    std::fs::write(&file, "sim-devices = 5\nallow-private-proxy = false\n").expect("a file");
    let flags = ["--config", file.to_str().expect("text")];
    let mut program = Program::start_at(home.clone(), &flags).await;
    let proxy = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": "10.0.0.1", "port": 1080});
    let refused = program.call("set_proxy", proxy).await.expect_err("the file forbids it");
    assert!(refused["message"].to_string().contains("private"), "{refused}");
    let data = program.data.clone();
    let devices = async |data: &Path, line: &str| json_of(data, line).await.as_array().map(Vec::len);
    assert_eq!(devices(&data, "device list").await, Some(5), "the server's");
    program.stop().await;
    let line = format!("device list --config {}", file.display());
    assert_eq!(devices(&data, &line).await, Some(5), "the file's");
}
