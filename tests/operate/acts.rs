//! Acts of operators: who may do what over which socket, and the records that each change leaves.

use super::audit::read_trail;
use crate::harness::program::{Program, WATCHED, json_of, key_of, operate, send};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const WAYS: [&str; 3] = ["", "--socket sockets/operate.sock", "--socket sockets/view.sock"];

/// The exit codes of the owner, of a member of the operate group, and of one of the view group.
/// `KEY` stands for a key.
const COMMANDS: [(&str, [i32; 3]); 41] = [
    ("app list", [0, 0, 0]),
    ("app show demo", [0, 0, 0]),
    ("key list", [0, 0, 0]),
    ("key show KEY", [0, 0, 0]),
    ("device list", [0, 0, 0]),
    ("device states --prefix phone-", [0, 0, 0]),
    ("task list", [0, 0, 0]),
    ("refunds", [0, 0, 0]),
    ("acts", [0, 0, 0]),
    ("audit tail", [0, 0, 0]),
    ("audit list", [0, 0, 0]),
    ("audit verify", [0, 0, 0]),
    ("doctor", [0, 0, 0]),
    ("platform list", [0, 0, 0]),
    ("overview", [0, 0, 0]),
    ("console list", [0, 0, 0]),
    ("console --operate", [0, 0, 6]),
    ("console end --all", [0, 0, 6]),
    ("app grant demo stream", [0, 0, 6]),
    ("device assign demo phone-0000001", [0, 0, 6]),
    ("device assign demo --prefix phone-", [0, 0, 6]),
    ("device set demo phone-* !phone-0000007", [0, 0, 6]),
    ("app label demo owner=Ada", [0, 0, 6]),
    ("app call demo list_devices", [0, 0, 0]),
    ("app call demo create_session {\"device_id\":\"phone-0000001\"}", [0, 0, 6]),
    ("app call demo look {\"device_id\":\"phone-0000001\"}", [1, 1, 6]),
    ("app rate demo 299", [0, 0, 6]),
    ("app suspend demo", [0, 0, 6]),
    ("app resume demo", [0, 0, 6]),
    ("app delete nobody --yes", [4, 4, 6]),
    ("key rotate KEY --grace 7d", [0, 0, 6]),
    ("key label KEY contact=ada@example.org", [0, 0, 6]),
    ("key expire KEY 90", [0, 0, 6]),
    ("key suspend KEY", [0, 0, 6]),
    ("key resume KEY", [0, 0, 6]),
    ("key end-old KEY", [0, 1, 6]),
    ("key revoke cpk_0", [4, 4, 6]),
    ("app rename demo demo-read", [1, 1, 6]),
    ("backup data/inside.tar", [1, 6, 6]),
    ("clock accept", [1, 6, 6]),
    ("app revoke demo nothing", [1, 1, 6]),
];

/// Uses the group of this process, because any user can give a file to it.
async fn start() -> (Program, Arc<TempDir>) {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let sockets = home.path().join("sockets");
    fs::create_dir(&sockets).expect("a folder");
    let group = home.path().metadata().expect("a folder").gid().to_string();
    let flags =
        ["--operator-sockets", sockets.to_str().expect("text"), "--operate-group", &group, "--view-group", &group];
    (Program::start_at(Arc::clone(&home), &[&flags[..], WATCHED].concat()).await, home)
}

async fn run(home: &Path, line: &str) -> (i32, Value) {
    let place = |word: &str| match word.starts_with("sockets/") || word.starts_with("data/") {
        true => home.join(word).display().to_string(),
        false => word.to_owned(),
    };
    let line: Vec<_> = line.split_whitespace().map(place).collect();
    let (code, said) = operate(&home.join("data"), &format!("{} --json", line.join(" "))).await;
    (code, serde_json::from_str(&said).unwrap_or_else(|error| panic!("{line:?}: one JSON document: {error}: {said}")))
}

#[tokio::test]
async fn each_command_is_judged_by_the_socket_and_leaves_an_act_or_a_line() {
    let (program, home) = start().await;
    let home = home.path();
    for name in ["operate.sock", "view.sock"] {
        let mode = home.join("sockets").join(name).metadata().expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
    }
    let key = program.keys[1].id.clone();
    // The newest are first.
    let records = async || {
        let acts = json_of(&program.data, "acts --limit 1000").await.as_array().expect("acts").clone();
        let found = json_of(&program.data, "audit list --limit 10000").await;
        let lines = found["lines"].as_array().expect("lines").iter();
        let refusals = lines.filter(|line| line.get("command").is_some() && line["outcome"] != "ok");
        (acts, refusals.cloned().collect::<Vec<_>>())
    };
    let mut before = records().await;
    for (command, codes) in COMMANDS {
        for (way, expected) in WAYS.into_iter().zip(codes) {
            let (code, answer) = run(home, &format!("{} {way}", command.replace("KEY", &key))).await;
            assert_eq!(code, expected, "{command} {way}: {answer}");
            let reads = codes == [0, 0, 0];
            // The owner's `backup` has its act before it is refused.
            let acted = !reads && (code == 0 || (command.starts_with("backup") && code == 1));
            let after = records().await;
            let counts = [after.0.len() - before.0.len(), after.1.len() - before.1.len()];
            assert_eq!(counts, [usize::from(acted), usize::from(code != 0)], "{command} {way}");
            if acted && code == 0 {
                assert_eq!(after.0[0]["act_id"], answer["act_id"], "{command} {way}");
            }
            if code != 0 {
                let codes = json!({"1": "refused", "4": "not_found", "6": "not_allowed"});
                assert_eq!(answer["error"]["code"], codes[code.to_string()], "{command} {way}");
                let line = &after.1[0];
                assert_eq!(line["outcome"], answer["error"]["code"]);
                let words: Vec<_> = command.split(' ').take(2).collect();
                assert!(words.join(" ").starts_with(line["command"].as_str().expect("text")), "{line}");
            }
            before = after;
        }
    }
    assert_eq!(run(home, "doctor").await.1["faults"], json!([]));
}

#[tokio::test]
async fn a_link_into_the_console_has_at_most_the_rights_of_its_socket() {
    let (program, home) = start().await;
    for way in WAYS {
        let (code, link) = run(home.path(), &format!("console {way}").trim_end().replace("  ", " ")).await;
        assert_eq!((code, &link["role"]), (0, &json!("view")), "{way}");
        let latest = json_of(&program.data, "acts --limit 1").await;
        assert_eq!((&latest[0]["command"], &latest[0]["act_id"]), (&json!("console"), &link["act_id"]), "{way}");
    }
    let (_, link) = run(home.path(), &format!("console --operate {}", WAYS[1])).await;
    assert_eq!(link["role"], "operate", "also for the owner's user");
}

#[tokio::test]
async fn a_leak_is_closed_and_who_did_it_why_and_when_can_be_read_everywhere() {
    let (mut program, home) = start().await;
    let data = program.data.clone();
    let key = key_of(&data, "demo").await;
    let revoke = format!("key revoke {} --as carol --reason leaked {}", key.id, WAYS[1]);
    let (code, answer) = run(home.path(), &revoke).await;
    assert_eq!((code, program.status(&key).await), (0, 401));
    let act = &answer["act_id"];
    let shown = json_of(&data, &format!("key show {}", key.id)).await;
    let [latest, made] = &shown["latest_acts"].as_array().expect("acts")[..] else { panic!("{shown}") };
    assert_eq!([&latest["command"], &made["command"]], ["key revoke", "key create"]);
    assert_eq!((&latest["act_id"], &latest["reason"], &latest["claims"]), (act, &json!("leaked"), &json!("as carol")));
    json_of(&data, "app create another --permission stream").await;
    assert_eq!(
        json_of(&data, "acts --limit 1").await[0]["claims"],
        Value::Null,
        "the name of an application is no claim"
    );
    assert_eq!((&latest["channel"], &made["channel"]), (&json!("operate.sock"), &json!("owner's socket")));
    assert_eq!(latest["changes"], json!({"live_secrets": {"before": 1, "after": 0}}));
    let lines = json_of(&data, &format!("audit list --on {}", key.id)).await;
    let lines = lines["lines"].as_array().expect("lines");
    assert_eq!((lines.len(), &lines[0]["act_id"]), (2, act));
    assert_eq!(lines[0]["operator"]["claims"], json!({"as": "carol", "reason": "leaked"}));
    assert!(!json!([shown, lines]).to_string().contains(&key.secret), "no secret is in an act");

    program.stop().await;
    let (code, answer) = run(home.path(), "app rename demo shop --reason typo").await;
    assert_eq!(code, 0, "{answer}");
    let acts = json_of(&data, "acts --on shop --limit 1").await;
    let expected = json!({"name": {"before": "demo", "after": "shop"}});
    assert_eq!((&acts[0]["channel"], &acts[0]["changes"]), (&json!("no server"), &expected));
    let newest = json_of(&data, "audit list --limit 1").await;
    assert_eq!(newest["lines"][0]["act_id"], answer["act_id"]);
    assert_eq!(json_of(&data, "audit verify").await["sound"], true);
    assert_eq!(json_of(&data, "doctor").await["faults"], json!([]));
}

#[tokio::test]
async fn the_doctor_finds_an_act_without_its_line_and_a_line_without_its_act() {
    let program = Program::start_and_stop().await;
    let data = program.data.clone();
    let database = data.join("cloudphone.db");
    let acts = json_of(&data, "acts").await;
    let [first, second] = [3, 2].map(|n| acts[n]["act_id"].as_str().expect("text").to_owned());
    let edit = |sql: &str, id: &str| {
        let changed = Connection::open(&database).expect("a database").execute(sql, [id]).expect("changed");
        assert_eq!(changed, 1);
    };
    let faults = async || {
        let (_, said) = operate(&data, "doctor --json").await;
        let found: Value = serde_json::from_str(&said).expect("JSON");
        let faults = found["faults"].as_array().expect("faults").clone();
        faults
            .into_iter()
            .filter(|fault| fault["check"] == "acts")
            .map(|fault| fault["found"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(faults().await, Vec::<String>::new());
    edit("DELETE FROM act WHERE id = ?1", &first);
    edit("UPDATE act SET id = 'act_0', act = replace(act, ?1, 'act_0') WHERE id = ?1", &second);
    let found = faults().await.join("\n");
    assert!(found.contains("act_0 has no line") && found.contains(&format!("names {first}")), "{found}");

    // An act whose line a kill has prevented is no fault. The next start writes the line.
    edit("UPDATE audit_anchor SET acts = (SELECT number - 1 FROM act WHERE id = ?1)", "act_0");
    assert!(!faults().await.join("\n").contains("act_0 has"));
    let mut program = program.again(&[]).await;
    let (_, said) = operate(&data, "doctor --json").await;
    assert!(!said.contains("act_0 has") && said.contains(&format!("names {second}")), "{said}");
    program.stop().await;
    assert_eq!(read_trail(&data).matches("\"act_id\":\"act_0\"").count(), 1);
}

#[tokio::test]
async fn a_request_of_another_version_or_program_is_refused_by_name() {
    let program = Program::start(&[]).await;
    let show = |app: &str| json!({"app": {"show": {"app": app}}});
    let mut unknown = show("demo");
    unknown["app"]["show"]["since"] = json!(1);
    let request = |command: &Value| json!({"program": "cloudphone", "command": command, "claims": {}});
    let range = json!({"acts": {"since": {"span": {"secs": 3_600, "nanos": 0}}, "until": null, "limit": 5}});
    let mut more = request(&show("demo"));
    more["dry_run"] = json!(true);
    let strange = json!({"program": "print-shop", "command": show("demo"), "claims": {}});
    let (mismatch, message) = ("are of different versions", "/Err/message");
    for (request, place, expected) in [
        (request(&show("demo")), "/Ok/json/name", "demo"),
        (request(&range), "/Ok/json/0/act_id", "act_"),
        (show("demo"), message, mismatch),
        (json!("doctor?"), message, mismatch),
        (request(&show("nobody")), message, "there is no application `nobody`"),
        (request(&json!({"app": {"fly": {"app": "demo"}}})), message, mismatch),
        (request(&unknown), message, mismatch),
        (more, message, mismatch),
        (strange, message, "this is a server of cloudphone, and the command is for print-shop"),
    ] {
        let answer = send(&program.data.join("admin.sock"), &request).expect("an answer");
        let said = answer.pointer(place).and_then(Value::as_str).unwrap_or_default();
        assert!(said.contains(expected), "{request}: {answer}");
    }
}
