//! The configuration file of the product: its keys, and starts of the program with it.

use crate::harness::program::{Program, binary, json_of, operator};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;

/// Returns exit code, standard output and standard error.
async fn run(file: &Path, variables: &[(&str, &str)], line: &str) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command.env_clear().args(line.split(' ')).arg("--config").arg(file).envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.kill_on_drop(true).output().await.expect("the program runs");
    let [said, complaints] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (status.code().expect("an exit code"), said, complaints)
}

fn write_config(text: &str) -> (TempDir, PathBuf) {
    let home = TempDir::new().expect("a temporary folder");
    let file = home.path().join("cloudphone.toml");
    std::fs::write(&file, text).expect("a file");
    (home, file)
}

async fn check(text: &str) -> (bool, Value) {
    let (_home, file) = write_config(text);
    let (code, answer, said) = run(&file, &[], "config check --json").await;
    (code == 0, serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{said}")))
}

/// Keys without a default show the form of their value, which is no value.
#[tokio::test]
async fn every_flag_of_the_server_has_a_key_of_its_name_and_of_its_type() {
    let home = TempDir::new().expect("a temporary folder");
    let folder = home.path().join("files");
    operator(home.path()).files(&folder).await.expect("files");
    let sample = std::fs::read_to_string(folder.join("cloudphone.toml")).expect("a file");
    let keys = sample.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(" = "));
    let set = |(name, value)| {
        let value = match (name, value) {
            // Simulated phones cannot have a shared store.
            ("store", _) | (_, r#""FILE""# | r#""GROUP""# | r#""DIR""#) | ("replica", _) => r#""""#,
            ("cell", _) => r#""eu1""#,
            ("toolsets", _) => r#"["screen"]"#,
            (_, r#""ADDRESS:PORT""#) => r#""127.0.0.1:0""#,
            (_, r#""URL""#) => r#""http://127.0.0.1:8081""#,
            (_, r#"["HOST"]"# | r#"["ORIGIN"]"# | r#"["ADDRESS[/BITS]"]"#) => r#"["127.0.0.1"]"#,
            (_, default) => default,
        };
        format!("{name} = {value}\n")
    };
    let file: String = keys.map(set).collect();
    let (sound, answer) = check(&file).await;
    assert!(sound, "{file}{answer:#}");
    let told = answer["flags"].as_array().expect("flags");
    assert!(told.iter().all(|row| row["from"] == "file"), "{answer:#}");
    let (_, page, _) = run(Path::new(""), &[], "serve --help").await;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in told {
        let name = row["flag"].as_str().expect("a flag").replace('-', "_").to_uppercase();
        assert!(words.contains(&format!("[env: CLOUDPHONE_{name}=")), "{name}");
    }
    let rows = page.matches("\n      --").count();
    assert_eq!(rows, told.len() + ["as", "config", "json", "reason", "socket"].len(), "{page}");
}

#[tokio::test]
async fn the_rack_of_the_page_is_a_sound_configuration() {
    let page = include_str!("../../docs/own-phones.md");
    let (_, rack) = page.split_once("## A rack of 40\n\n```toml\n").expect("a block");
    let (sound, answer) = check(rack.split("```").next().expect("its text")).await;
    assert!(sound, "{answer:#}");
}

/// A file of one line; the column, the text and the help of its mistake.
const MISTAKES: [(&str, u64, &str, &str); 10] = [
    ("listen = \"::\"", 10, "`listen` cannot be `::`", "expected an IP address and a port, as in 127.0.0.1:8080"),
    ("sim-sed = \"never shown\"", 1, "unknown key `sim-sed`", "did you mean `sim-seed`?"),
    ("admin-listen = 3", 16, "`admin-listen` has the wrong type", "expected a text in quotes"),
    ("max-connections = 0", 19, "`max-connections` cannot be `0`", "0 is not in 1..=4294967295"),
    ("sim-devices = 0", 15, "`sim-devices` cannot be `0`", "0 is not in 1..=1000000"),
    ("allow-private-proxy = \"no\"", 23, "`allow-private-proxy` has the wrong type", "expected true or false"),
    ("demo = \"yes\"", 8, "`demo` has the wrong type", "expected true or false"),
    (
        "allow-host = \"one.example\"",
        14,
        "`allow-host` is not a list",
        "expected a list, as in `allow-host = [...]`, of a text in quotes each",
    ),
    ("allow-origin = [\"https://a.example\", 4]", 38, "`allow-origin` has the wrong type", "expected a text in quotes"),
    ("log-format = \"xml\"", 14, "`log-format` cannot be `xml`", "possible values are text, json"),
];

#[tokio::test]
async fn the_check_and_a_server_that_does_not_start_report_the_same_mistake() {
    let (_home, file) = write_config("");
    for (text, column, message, help) in MISTAKES {
        std::fs::write(&file, format!("# A\n{text}\n")).expect("a file");
        let (code, answer, _) = run(&file, &[], "config check --json").await;
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let expected = json!([{"line": 2, "column": column, "message": message, "help": help}]);
        assert_eq!((code, &answer["sound"], &answer["mistakes"]), (1, &json!(false), &expected));
        let (code, _, said) = run(&file, &[], "config check").await;
        assert_eq!((code, said.contains("never shown")), (1, false), "{said}");
        assert_eq!(run(&file, &[], "serve").await, (2, String::new(), said));
    }
    std::fs::write(&file, "config = \"other.toml\"").expect("a file");
    let (code, _, said) = run(&file, &[], "serve").await;
    let known = "help: declared are `listen`, `admin-listen`";
    assert!(code == 2 && said.contains("unknown key `config`") && said.contains(known), "{said}");
}

#[tokio::test]
async fn a_file_that_is_no_toml_or_not_there_stops_every_command_that_reads_it() {
    let (_home, file) = write_config("listen = \"x\nallow-host = [\n");
    let nowhere = Path::new("/nowhere/cloudphone.toml");
    for (line, exit) in [("config check", 1), ("serve", 2), ("app list", 2)] {
        let (code, _, said) = run(&file, &[], line).await;
        assert!(code == exit && said.contains("cloudphone.toml:1:12") && said.contains("has a mistake"), "{said}");
        let (code, _, said) = run(nowhere, &[], line).await;
        assert!(code == exit && said.contains("cannot read the configuration file /nowhere/cloudphone.toml"), "{said}");
    }
    let (code, _, said) = run(Path::new(""), &[], "config check").await;
    assert!(code == 1 && said.contains("name it with --config FILE"), "{said}");
    assert_eq!(run(nowhere, &[], "completion bash").await.0, 0, "it reads no file");
}

#[tokio::test]
async fn the_command_line_wins_over_the_environment_that_over_the_file_and_that_over_defaults() {
    let text = "log = \"warn\"\nlog-format = \"json\"\nlisten = \"[::1]:1\"\ndemo = true\n[platform.phone]\n\
                kind = \"simulator\"\n";
    let (home, file) = write_config(text);
    let variables = [("CLOUDPHONE_LOG", "debug"), ("CLOUDPHONE_LOG_FORMAT", "text"), ("CLOUDPHONE_LISTEN", "")];
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
    let platforms = json!([{"name": "phone", "kind": "simulator"}]);
    assert_eq!((code, &answer["sound"], &answer["platform"]), (0, &json!(true), &platforms));
    // The path is relative to the file, not to the folder of the command.
    std::fs::write(&file, "data = \"there\"").expect("a file");
    let (_, answer, _) = run(&file, &[], "config check").await;
    let place = home.path().join("there").display().to_string();
    assert!(answer.contains(&place), "{answer}");
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
        let (code, told, said) = run(Path::new(""), &[(name, text)], "app list --data /nowhere").await;
        (code, told.starts_with('{'), said)
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
