//! The commands `call` and `sign`, over `/mcp` and over its signed twin.

use crate::harness::program::{Program, binary, key_of, operate};
use crate::harness::{self, Key};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::future::pending;
use std::process::Output;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use toolwarrant_signing::{Request, header, sign};

pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

pub(super) async fn client(url: &str, key: &Key, arguments: &[&str]) -> Said {
    let mut command = Command::new(binary());
    command.args(arguments).env_clear().env("CLOUDPHONE_URL", url);
    command.env("CLOUDPHONE_KEY", format!("{}:{}", key.id, key.secret)).kill_on_drop(true);
    let Output { status, stdout, stderr } = command.output().await.expect("the program runs");
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    for text in [&out, &err] {
        assert!(!text.contains(&key.secret) && !text.contains("panicked"), "{text}");
    }
    Said { code: status.code().expect("an exit"), out, err }
}

const CALLS: &[&[&str]] = &[
    &["list_devices", "limit=2"],
    &["list_devices", "limit=2", "cursor=", "capability=power"],
    &["get_device", "device_id=phone-0000001"],
    &["get_device", "device_id=phone 1/\u{fc}?#%"],
    &["get_device"],
    &["get_device", "device_id=phone-0000001", "device=red"],
    &["get_device", "phone-0000001"],
    &["get_device", "device_id=phone-0000001", "device_id=phone-0000002"],
    &["list_devices", "limit=many"],
    &["list_devices", "limit=0"],
    &["set_power", "device_id=phone-0000001", "action=fly"],
    &["get_task", "task_id=task_00000000000000000000000000000000", "wait_seconds=0"],
    &["reboot_everything"],
];

#[tokio::test]
async fn a_call_answers_the_same_over_the_endpoint_and_over_its_signed_twin() {
    let program = Program::start(&[]).await;
    let url = program.url.clone();
    let mut shown = String::new();
    let all: Vec<_> = CATALOGUE.tools.iter().map(|tool| tool.name).collect();
    for arguments in CALLS {
        let mut seen = Vec::new();
        for way in [&[][..], &["--v1"]] {
            let Said { code, out, err } = client(&url, &program.keys[0], &[&["call"], *arguments, way].concat()).await;
            let exit = if code == 0 { String::new() } else { format!("exit {code}\n") };
            seen.push(format!("{out}{err}{exit}"));
        }
        let [endpoint, signed] = &seen[..] else { panic!("two ways") };
        writeln!(shown, "$ cloudphone call {}\n{endpoint}", arguments.join(" ")).expect("text");
        if signed != endpoint {
            writeln!(shown, "with --v1:\n{signed}").expect("text");
        }
    }
    insta::assert_snapshot!(shown.replace(&all.join(", "), "TOOLS"));
}

#[tokio::test]
async fn a_key_of_another_write_is_no_success_although_the_server_answers_with_its_task() {
    let (server, keys) =
        harness::mute_phones(vec![harness::Tenant::with(toolwarrant::contract::PermissionSet(u64::MAX))]).await;
    let boot = |device| ["call", "set_power", "action=restart", "idempotency_key=k", device, "--wait"];
    let first = client(&server.url, &keys[0][0], &boot("device_id=phone-0000001")[..5]).await;
    let other = client(&server.url, &keys[0][0], &boot("device_id=phone-0000011")).await;
    assert_eq!((first.code, other.code), (0, 1), "{} {}", other.out, other.err);
    assert!(other.out.contains("Nothing of this call was sent"), "{}", other.out);
}

#[tokio::test]
async fn waiting_prints_the_end_of_the_task_and_tells_by_the_exit_code_whether_it_succeeded() {
    let (server, key, _) = harness::cast().await;
    for (device, status, code) in [("phone-0000001", "success", 0), ("phone-0000013", "failed_silent", 1)] {
        let device_id = format!("device_id={device}");
        let proxy = ["call", "set_proxy", &device_id, "scheme=socks5", "host=proxy.example.com", "port=1080", "--wait"];
        let call = client(&server.url, &key, &proxy);
        tokio::pin!(call);
        let said = loop {
            tokio::select! {
                said = &mut call => break said,
                () = tokio::task::yield_now() => server.clock.advance(Duration::from_millis(100)),
            }
        };
        let task: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
        assert_eq!((&task["status"], &task["terminal"], said.code), (&json!(status), &json!(true), code), "{task}");
    }
    let audit = server.audit().await;
    let polls: Vec<_> = audit.lines().filter(|line| line.contains("\"get_task\"")).collect();
    let holds = polls.iter().all(|line| line.contains("\"wait_seconds\":25"));
    assert!(polls.len() >= 2 && holds, "{polls:?}");
}

#[tokio::test]
async fn a_refused_call_shows_every_field_of_the_error_and_json_prints_one_document() {
    let program = Program::start(&[]).await;
    let url = program.url.clone();
    let write = ["call", "set_power", "device_id=phone-0000018", "action=restart", "--json"];
    let first = client(&url, &program.keys[0], &write).await;
    let task = serde_json::from_str::<Value>(&first.out).expect("JSON")["task_id"].clone();
    for way in [&[][..], &["--v1"]] {
        let other = [&["call", "clear_proxy", "device_id=phone-0000018"], way].concat();
        let Said { code, out, err } = client(&url, &program.keys[0], &other).await;
        assert!(code == 75 && out.is_empty() && err.contains(&format!("\n  task_id: {task}\n")), "{err}");
        let Said { code, out, err } = client(&url, &program.keys[0], &[&other[..], &["--json"]].concat()).await;
        let error: Value = serde_json::from_str(&out).expect("one document");
        assert_eq!((code, &*err, &error["code"], &error["task_id"]), (75, "", &json!("device_busy"), &task), "{error}");
        assert!(error["message"].is_string() && error["retryable"] == true && error["retry_after_seconds"].is_u64());
    }
    // An error of the client itself is a document as well.
    for (url, arguments, expected) in
        [(&*url, ["reboot_everything", "--json"], "invalid_argument"), ("ftp://x", ["list_devices", "--json"], "setup")]
    {
        let Said { code, out, err } = client(url, &program.keys[0], &[&["call"], &arguments[..]].concat()).await;
        let error: Value = serde_json::from_str(&out).expect("one document");
        assert_eq!((code, &*err, &error["code"]), (1, "", &json!(expected)), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_that_a_repeat_can_mend_has_an_exit_code_of_its_own() {
    let mut program = Program::start(&[]).await;
    operate(&program.data, "app create frugal --permission device_read --requests-per-minute 1").await;
    let key = key_of(&program.data, "frugal").await;
    let url = program.url.clone();
    let page = ["call", "list_devices"];
    let mut seen = Vec::new();
    for way in [&[][..], &[], &["--v1"]] {
        let Said { code, err, .. } = client(&url, &key, &[&page[..], way].concat()).await;
        seen.push((code, err.split(": ").next().unwrap_or_default().to_owned()));
    }
    let wrong = Key { secret: "cps_wrong".to_owned(), ..key };
    for way in [&[][..], &["--v1"]] {
        let Said { code, err, .. } = client(&url, &wrong, &[&page[..], way].concat()).await;
        seen.push((code, err.split(": ").next().unwrap_or_default().to_owned()));
    }
    program.stop().await;
    let Said { code, err, .. } = client(&url, &wrong, &page).await;
    seen.push((code, err.split(": ").next().unwrap_or_default().to_owned()));
    let expected = [
        (0, ""),
        (75, "rate_limited"),
        (75, "rate_limited"),
        (1, "unauthenticated"),
        (1, "unauthenticated"),
        (75, "unreachable"),
    ];
    assert_eq!(seen, expected.map(|(code, error)| (code, error.to_owned())));
}

#[tokio::test]
async fn a_signed_read_that_a_server_takes_a_moment_later_is_signed_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = async {
        let mut heads = BTreeSet::new();
        for status in ["503 Busy\r\nRetry-After: 0", "200 OK"] {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.expect("a request");
            assert!(heads.insert(head[..length].to_vec()), "it has a nonce of its own");
            let form = "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close";
            stream.write_all(format!("HTTP/1.1 {status}\r\n{form}\r\n\r\n{{}}").as_bytes()).await.expect("sent");
        }
        pending::<Said>().await
    };
    let key = Key { id: "cpk_1".to_owned(), secret: "cps_1".to_owned() };
    let said = tokio::select! {
        said = client(&url, &key, &["call", "list_devices", "--v1"]) => said,
        said = serving => said,
    };
    assert_eq!(said.code, 0, "{}", said.err);
}

#[tokio::test]
async fn a_signature_is_that_of_the_canonical_request_which_can_be_shown() {
    let home = TempDir::new().expect("a temporary folder");
    let body = home.path().join("body");
    std::fs::write(&body, "{\"action\":\"boot\"}\n").expect("written");
    let key = Key { id: "cpk_1".to_owned(), secret: "cps_1_secret".to_owned() };
    let (timestamp, nonce) = ("1800000000", "0123456789abcdef");
    let flags = ["--timestamp", timestamp, "--nonce", nonce, "--show"];
    let cases = [
        ("GET", "/v1/devices?limit=2&cursor=%2F", "", false),
        ("GET", "/v1/devices?", "", false),
        ("PUT", "/v1/devices/phone-0000001/power", "k-1", true),
    ];
    for (method, target, idempotency_key, with_body) in cases {
        let mut line = vec!["sign", method, target];
        line.extend(flags);
        let path = body.display().to_string();
        line.extend(if with_body { vec!["--body", &path] } else { vec![] });
        line.extend(if idempotency_key.is_empty() { vec![] } else { vec!["--idempotency-key", idempotency_key] });
        let Said { code, out, err } = client("", &key, &line).await;
        assert_eq!(code, 0, "{err}");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let body: &[u8] = if with_body { b"{\"action\":\"boot\"}\n" } else { b"" };
        let request = Request { key_id: &key.id, timestamp, nonce, method, path, query, idempotency_key, body };
        assert_eq!(err, format!("{}\n", request.canonical()));
        let mut expected = format!("X-Api-Key: cpk_1\nX-Timestamp: {timestamp}\nX-Nonce: {nonce}\n");
        writeln!(expected, "X-Signature: {}", header(&sign(&key.secret, &request.canonical()))).expect("text");
        if with_body {
            expected += "Idempotency-Key: k-1\nContent-Type: application/json\n";
        }
        assert_eq!(out, expected);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_signed_is_refused_with_the_expected_form() {
    let key = Key { id: "cpk_1".to_owned(), secret: "cps_1_secret".to_owned() };
    let cases: &[(&[&str], &str)] = &[
        (&["get", "/v1/devices"], "written in capital letters"),
        (&["GET", "v1/devices"], "it begins with /"),
        (&["GET", "https://api.example"], "it begins with /"),
        (&["GET", "/v1/a b"], "contains no space"),
        (&["GET", "/v1/a#b"], "the target is the path and the query"),
        (&["GET", "/v1/a", "--timestamp", "1"], "10 digits"),
        (&["GET", "/v1/a", "--nonce", "short"], "--nonce has 16 to 64"),
        (&["GET", "/v1/a", "--idempotency-key", "a b"], "--idempotency-key contains no space"),
        (&["PUT", "/v1/a", "--body", "/nowhere"], "cannot read /nowhere"),
        (&["GET"], "<TARGET>"),
    ];
    for (arguments, expected) in cases {
        let Said { code, out, err } = client("", &key, &[&["sign"], *arguments].concat()).await;
        assert!(code != 0 && out.is_empty() && err.contains(expected), "{arguments:?}: {err}");
    }
}

#[tokio::test]
async fn each_command_of_a_client_says_how_it_is_used() {
    let mut out = String::new();
    for command in ["call", "sign"] {
        let help = Command::new(binary()).args([command, "--help"]).env_clear().output().await.expect("it runs");
        writeln!(out, "$ cloudphone {command} --help\n{}", String::from_utf8_lossy(&help.stdout)).expect("text");
    }
    insta::assert_snapshot!(out);
}
