//! The program as users start it: its output, the commands pasted from it, its stop, and its
//! messages after a wrong start.

use super::audit::read_trail;
use crate::harness::program::{Program, binary, operate, refusal, says, start};
use crate::harness::writes::open_database;
use kit::{Process, Start};
use serde_json::{Value, json};
use std::fs::File;
use tempfile::TempDir;
use tokio::process::Command;

#[tokio::test]
async fn the_printed_curl_line_works_as_pasted() {
    if kit::lacks("curl") {
        return;
    }
    let home = TempDir::new().expect("a temporary folder");
    let mut program = Process::start(start(&home).command().expect("a log")).expect("it starts");
    let welcome = program.until("Ctrl-C").await.expect("it serves");
    let (_, after) = welcome.split_once("Try it:").expect("a line to paste");
    let (curl, _) = after.split_once("Connect a client").expect("its end");
    let output = Command::new("sh").arg("-c").arg(curl).output().await.expect("a shell");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains("phone-0000001") && answer.contains("\"isError\":false"), "{curl}\n{answer}");
    assert!(!answer.contains("phone-0000004"), "it has its arguments: {curl}\n{answer}");
    let (status, last) = program.stop().await.expect("it ends");
    assert!(status.success() && last == "cloudphone has stopped\n", "{last}");
}

#[tokio::test]
async fn with_json_it_prints_one_line_with_the_keys_that_it_made_and_nothing_else() {
    let home = TempDir::new().expect("a temporary folder");
    for (flags, monitor, applications) in
        [(&[][..], false, &[][..]), (&["--demo", "--admin-listen", "127.0.0.1:0"], true, &["demo", "demo-read"])]
    {
        let mut program = Start::new(binary(), home.path()).flags(flags).spawn().expect("it starts");
        let greeting = program.greeting().await.expect("JSON");
        let members: Vec<_> = greeting.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["url", "listens", "monitor", "keys"]);
        assert_eq!(greeting["url"], format!("http://{}/mcp", greeting["listens"].as_str().expect("an address")));
        assert_eq!(greeting["monitor"].is_string(), monitor, "{greeting}");
        let made: Vec<_> = greeting["keys"].as_array().expect("keys").iter().map(|key| &key["application"]).collect();
        assert_eq!(made, applications);
        let (status, last) = program.stop().await.expect("it ends");
        assert!(status.success() && last.is_empty(), "{last}");
    }
}

#[tokio::test]
async fn a_budget_goes_on_after_a_stop() {
    let home = TempDir::new().expect("a temporary folder");
    let mut first = start(&home).ready().await.expect("it starts");
    let data = first.operator.data.clone();
    assert_eq!(operate(&data, "app create frugal --permission device_read --requests-per-minute 3").await.0, 0);
    let key = first.operator.key("frugal").await.expect("a key");
    let list = async |address| {
        let answer = kit::call(address, &key, "list_devices", &json!({})).await.expect("an answer");
        answer.map_err(|failure| failure["code"].clone()).map(drop)
    };
    for _ in 0..3 {
        assert_eq!(list(first.address).await, Ok(()));
    }
    assert_eq!(operate(&data, "ready").await, (0, "ready  true\n".to_owned()));
    first.stop().await.expect("it ends");
    says(&data, "ready", 5, "no server uses the folder").await;
    let next = start(&home).ready().await.expect("it starts");
    assert_eq!(list(next.address).await, Err(json!("rate_limited")));
}

#[tokio::test]
async fn it_stops_when_asked_and_its_audit_is_whole() {
    let mut program = Program::start(&["--sim-devices", "5"]).await;
    let session = program.call("create_session", json!({"device_id": "phone-0000001"})).await.expect("a session");
    let still = |after: &str| {
        let token = session["token"].as_str().expect("a token");
        let head = format!("host: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
        format!("GET /screen/still?after={after} HTTP/1.1\r\n{head}")
    };
    let first = kit::exchange(program.address, still("0").as_bytes()).await.expect("a picture");
    let held = still(first.header("x-still").expect("a number"));
    let address = program.address;
    tokio::spawn(async move { kit::exchange(address, held.as_bytes()).await });
    for _ in 0..20 {
        let page = kit::call(program.address, &program.keys[1], "list_devices", &json!({})).await;
        assert!(page.expect("an answer").expect("a page").to_string().contains("phone-0000005"));
    }
    program.stop().await;
    assert!(!program.log().contains("the grace period is over"), "a held picture keeps no stop waiting");
    let text = read_trail(&program.data);
    assert_eq!(text.matches("\"tool\":\"list_devices\"").count(), 20);
    assert!(text.contains(r#""event":"closed","mode":"control","reads":1"#), "{text}");
}

#[tokio::test]
async fn a_wrong_start_says_what_is_wrong_and_which_flag_mends_it() {
    let running = Program::start(&[]).await;
    let taken = running.address.to_string();
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let cases: &[(&[&str], &str)] = &[
        (&["--listen", &taken], "another program listens there; choose another with --listen"),
        (&["--listen", "192.0.2.1:80"], "this machine has no such address; choose another with --listen"),
        (&["--listen", "nonsense"], "invalid value 'nonsense' for '--listen <ADDRESS:PORT>'"),
        (&["--listen", "127.0.0.1:9", "--admin-listen", "127.0.0.1:9"], "share a port; each needs one of its own"),
        (
            &["--listen", "127.0.0.1:0", "--console-listen", "0.0.0.0:9"],
            "--console-listen 0.0.0.0:9 is beyond this machine",
        ),
        (&["--listen", "0.0.0.0:9", "--console-listen", "127.0.0.1:9"], "share a port"),
        (&["--data", file], "for '--data <DIR>': it is a file; a folder is expected"),
        (&["--listen", "127.0.0.1:0", "--data", "/dev/null/data"], "choose another folder with --data"),
        (&["--sim-devices", "0"], "0 is not in 1..=1000000"),
        (&["--sim-device", "3"], "a similar argument exists: '--sim-devices'"),
    ];
    for (flags, expected) in cases {
        let said = refusal(flags).await;
        assert!(said.contains(expected), "{flags:?} said: {said}");
    }
    // With this code, a manager does not start the program again.
    for flag in ["--public-url ftp://x", "--allow-origin example.com", "--trust-proxy 0.0.0.0/0"] {
        let line = format!("--listen 127.0.0.1:0 {flag}");
        says(&folder.path().join("data"), &line, 2, &flag.replacen(' ', " `", 1)).await;
    }
}

#[tokio::test]
async fn a_start_that_fails_makes_no_demo_keys_so_the_next_one_shows_them() {
    let home = TempDir::new().expect("a temporary folder");
    let nowhere = home.path().join("nowhere").display().to_string();
    let failed = start(&home).flags(&["--operator-sockets", &nowhere, "--operate-group", "0"]).ready().await;
    let said = format!("{:#}", failed.expect_err("there is no folder for sockets"));
    assert!(said.contains(&format!("there is no folder {nowhere}; create it")), "{said}");
    assert_eq!(start(&home).ready().await.expect("it starts").keys.len(), 2);
}

#[tokio::test]
async fn with_json_a_start_that_fails_prints_one_document_with_the_reason() {
    let running = Program::start(&[]).await;
    let home = TempDir::new().expect("a temporary folder");
    let (fresh, free) = (home.path().join("data"), "--listen 127.0.0.1:0");
    for (data, flags, expected) in [
        (&running.data, free.to_owned(), (5, "unavailable")),
        (&fresh, "--listen 192.0.2.1:80".to_owned(), (1, "refused")),
        (&fresh, format!("{free} --tls-cert nowhere.pem --tls-key nowhere.pem"), (1, "refused")),
        (&fresh, format!("{free} --operate-group 0"), (1, "refused")),
        (&fresh, format!("{free} --view-group no-group --operator-sockets {}", home.path().display()), (1, "refused")),
    ] {
        let (code, said) = operate(data, &format!("{flags} --json")).await;
        let failure: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{flags}: {error}: {said}"));
        assert_eq!((code, failure["error"]["code"].as_str().expect("a code")), expected, "{said}");
    }
}

#[tokio::test]
async fn a_proxy_in_a_private_network_is_the_operators_to_allow() {
    for (flags, allowed) in
        [(&[][..], true), (&["--allow-private-proxy"], true), (&["--allow-private-proxy=false"], false)]
    {
        let program = Program::start(flags).await;
        let proxy = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": "10.0.0.1", "port": 1080});
        let answer = program.call("set_proxy", proxy).await;
        assert_eq!(answer.is_ok(), allowed, "{flags:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_master_key_that_is_not_this_folders_is_refused_at_the_start() {
    let program = Program::start_and_stop().await;
    std::fs::write(program.data.join("master.key"), format!("{}\n", "ab".repeat(32))).expect("written");
    let why = "the master key is not the one that this data was made with";
    says(&program.data, "--listen 127.0.0.1:0", 1, why).await;
}

#[tokio::test]
async fn an_emptied_database_is_refused_at_the_start_and_left_as_it_is() {
    let program = Program::start_and_stop().await;
    let database = program.data.join("cloudphone.db");
    File::create(&database).expect("emptied");
    let why = "cloudphone.db is empty, but there is a master key; restore a backup";
    says(&program.data, "--listen 127.0.0.1:0", 1, why).await;
    assert_eq!(database.metadata().expect("a file").len(), 0);
    std::fs::remove_file(&database).expect("removed");
    let why = "it is missing; it held everything until";
    let said = says(&program.data, "--listen 127.0.0.1:0", 1, why).await;
    assert!(said.contains("`restore`"), "{said}");
    std::fs::remove_file(database.with_extension("watermark")).expect("removed");
    assert_eq!(program.again(&[]).await.keys.len(), 2, "it begins anew");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing() {
    // A pipe without a reader, or a full disk that also holds the log, is the same for the program.
    let full = File::options().write(true).open("/dev/full").expect("a full device");
    let program = Program::start_by(|start| start.log(full)).await;
    let write = async |phone: u32| {
        let arguments = json!({"device_id": format!("phone-{phone:07}"), "action": "boot"});
        program.call("set_power", arguments).await.map_err(|failure| failure["code"].clone())
    };
    write(1).await.expect("accepted");
    // Another process holds the lock of the database longer than the store waits, which the store
    // logs.
    let db = open_database(&program.data);
    db.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    assert_eq!(write(7).await, Err(json!("overloaded")));
    db.execute_batch("ROLLBACK").expect("no lock");
    write(8).await.expect("it writes again");
}
