//! Starts of a bridge: the sources of its key, the servers that it accepts, and the messages after
//! a wrong start.

use super::fake::Fake;
use super::{any_key, empty_result, request};
use crate::harness::bridge::{Bridge, Start};
use crate::harness::program::{Program, binary};
use crate::harness::{Key, write};
use crate::wire::tls::TlsPair;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

#[tokio::test]
async fn a_wrong_start_is_refused_with_a_remedy() {
    let home = TempDir::new().expect("a temporary folder");
    let at = |name: &str| home.path().join(name).display().to_string();
    let pair = "key_1:secret_of_mine";
    for (name, text, mode) in [
        ("world", pair, 0o644),
        ("group", pair, 0o640),
        ("writable", pair, 0o602),
        ("empty", "", 0o600),
        ("half", "secret_of_mine", 0o600),
        ("json", r#"{"key_id": "key_1"}"#, 0o600),
        ("utf16", "k", 0o600),
    ] {
        write(&home.path().join(name), text, mode);
    }
    fs::write(at("utf16"), b"\xff\xfek\0").expect("written");
    fs::write(at("long"), vec![b'x'; 5000]).expect("written");
    fs::set_permissions(at("long"), fs::Permissions::from_mode(0o600)).expect("changed");
    let file = |name: &str| vec!["--key-file".to_owned(), at(name)];
    let url = |url: &str| vec!["--url".to_owned(), url.to_owned()];
    let cases = [
        ("", vec![]),
        ("secret_of_mine", vec![]),
        ("", file("world")),
        ("", file("group")),
        ("", file("writable")),
        ("", file("empty")),
        ("", file("half")),
        ("", file("json")),
        ("", file("utf16")),
        ("", file("long")),
        ("", file("nowhere")),
        ("", vec!["--key-file".to_owned(), home.path().display().to_string()]),
        (pair, file("world")),
        (pair, url("http://example.com/mcp")),
        (pair, url("https://key_1:secret@example.com/mcp")),
        (pair, url("example.com")),
        (pair, vec!["--secret".to_owned(), "x".to_owned()]),
    ];
    let mut out = String::new();
    for (key, flags) in cases {
        let mut command = Command::new(binary());
        command.arg("bridge").args(&flags).env_clear().env("CLOUDPHONE_KEY", key).stdin(Stdio::null());
        let output = command.output().await.expect("it runs");
        let [answers, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        assert!(answers.is_empty() && !told.contains("secret_of_mine"), "{answers}{told}");
        let code = output.status.code().expect("an exit");
        let key = if key.is_empty() { "" } else { "CLOUDPHONE_KEY=.. " };
        writeln!(out, "$ {key}cloudphone bridge {}\n{told}exit {code}\n", flags.join(" ")).expect("text");
    }
    insta::assert_snapshot!(out.replace(&home.path().display().to_string(), "HOME"));
}

#[tokio::test]
async fn url_and_key_come_from_the_environment_too_and_a_file_goes_before_a_variable() {
    let mut fake = Fake::listen().await;
    let home = TempDir::new().expect("a temporary folder");
    let file = home.path().join("key");
    write(&file, "key_of_file:s", 0o400);
    let file = file.display().to_string();
    for (key_file, expected) in [("", "key_of_variable"), (&*file, "key_of_file")] {
        let environment = [
            ("CLOUDPHONE_URL", &*fake.url),
            ("CLOUDPHONE_KEY_FILE", key_file),
            ("CLOUDPHONE_KEY", "key_of_variable:s"),
        ];
        let mut bridge = Bridge::start(Start { url: "", flags: &[], environment: &environment, secret: ":s" });
        bridge.send(request(1, "ping", json!({}))).await;
        let request = fake.next().await;
        assert_eq!(request.header("x-api-key"), Some(expected));
        request.answer(200, empty_result(&json!(1))).await;
    }
}

#[tokio::test]
async fn proxies_get_no_plain_request_and_of_encrypted_ones_the_host_alone() {
    // Plain http goes directly to this machine, in spite of the proxy variables.
    let mut fake = Fake::listen().await;
    let trap = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let proxy = format!("http://user:pass@{}", trap.local_addr().expect("an address"));
    let key = any_key();
    let pair = format!("{}:{}", key.id, key.secret);
    let all = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let mut environment = vec![("CLOUDPHONE_KEY", &*pair)];
    environment.extend(all.map(|name| (name, &*proxy)));
    let mut bridge =
        Bridge::start(Start { url: &fake.url, flags: &[], environment: &environment, secret: &key.secret });
    bridge.send(request(1, "ping", json!({}))).await;
    fake.next().await.answer(200, empty_result(&json!(1))).await;
    assert_eq!(bridge.next().await, empty_result(&json!(1)));

    // For https, the bridge asks the proxy for a tunnel.
    let url = "https://server.example/mcp";
    let mut bridge = Bridge::start(Start { url, flags: &[], environment: &environment, secret: &key.secret });
    bridge.send(request(1, "ping", json!({}))).await;
    let (mut stream, _) = trap.accept().await.expect("a connection");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut head).await.expect("a request"), 0);
    }
    let head = String::from_utf8(head).expect("text");
    assert!(head.starts_with("CONNECT server.example:443 HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains(&key.secret) && !head.contains(&key.id), "{head}");
    stream.write_all(b"HTTP/1.1 403 no\r\n\r\n").await.expect("it reads");
    drop(stream);
    let answer = bridge.next().await;
    assert_eq!(answer["error"]["data"]["code"], "unreachable", "{answer}");
    assert!(!answer.to_string().contains("pass") && !bridge.take_stderr().contains("user:pass"), "{answer}");
}

#[tokio::test]
async fn a_server_is_trusted_if_the_system_trusts_the_issuer_of_its_certificate() {
    let (pair, other) = (TlsPair::new(), TlsPair::new());
    let program = Program::start(&pair.flags().each_ref().map(String::as_str)).await;
    let (port, Key { id, secret }) = (program.address.port(), &program.keys[0]);
    let key = format!("{id}:{secret}");
    for (host, roots, expected) in [
        ("localhost", &pair, None),
        ("localhost", &other, Some("untrusted_server")),
        // The name differs from the one in the certificate.
        ("127.0.0.1", &pair, Some("untrusted_server")),
    ] {
        let (url, roots) = (format!("https://{host}:{port}/mcp"), roots.certificate().display().to_string());
        let environment = [("CLOUDPHONE_KEY", &*key), ("SSL_CERT_FILE", &*roots)];
        let mut bridge = Bridge::start(Start { url: &url, flags: &[], environment: &environment, secret });
        let answer = bridge.ask(request(1, "ping", json!({}))).await;
        assert_eq!(answer["error"]["data"]["code"].as_str(), expected, "{answer}");
    }
}

const DOCUMENT: &str = include_str!("../../../docs/clients.md");

fn blocks(heading: &str, language: &str) -> Vec<&'static str> {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {heading}\n")).expect("a section");
    let section = section.split("\n## ").next().expect("its text");
    let begin = format!("```{language}\n");
    let blocks = section.split(&*begin).skip(1);
    blocks.map(|block| block.split("\n```").next().expect("an end")).collect()
}

#[tokio::test]
async fn the_commands_of_the_document_work_as_written() {
    if kit::lacks("curl") {
        return;
    }
    let program = Program::start(&[]).await;
    let home = TempDir::new().expect("a temporary folder");
    let calls = blocks("Calling by hand", "sh").join("\n");
    let contract = blocks("Know when the contract changes", "sh").join("\n");
    let parts = [blocks("A key of its own", "sh")[0], blocks("The bridge", "sh")[0], &calls, &contract];
    // Removes the parts that take real time. Waits first, because the server refuses signatures
    // from the second of its start.
    let script = parts.join("\n").replace(" --wait", "").replace("127.0.0.1:8080", &program.address.to_string());
    let begin = "cloudphone() { \"$PROGRAM\" \"$@\"; }\ntoolwarrant() { \"${PROGRAM%/*}/toolwarrant\" \"$@\"; }\nuntil CLOUDPHONE_KEY=$DEMO cloudphone call list_devices --v1; do :; done";
    let mut shell = Command::new("sh");
    shell.args(["-euc", &format!("{begin}\n{script}")]).current_dir(home.path()).env("PROGRAM", binary());
    shell.env("CLOUDPHONE_DATA", &program.data).env("CLOUDPHONE_URL", &program.url);
    let output = shell.env("DEMO", format!("{}:{}", program.keys[0].id, program.keys[0].secret)).output().await;
    let output = output.expect("a shell");
    let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(output.status.success(), "{said}{told}");
    for part in [
        r#""tools":[{"name":"list_devices""#,
        r#""status":"dispatched""#,
        r#""power_actions""#,
        r#""next_cursor""#,
        "nothing has changed",
    ] {
        assert!(said.contains(part), "{part}: {said}{told}");
    }
    let mode = fs::metadata(home.path().join("bridge.key")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_configurations_of_the_document_are_sound() {
    let read = |section, wanted: usize, is_sound: &dyn Fn(&Value) -> bool| {
        let json = blocks(section, "json").into_iter().map(|block| serde_json::from_str::<Value>(block).expect(block));
        let toml = blocks(section, "toml").into_iter().map(|block| toml::from_str::<Value>(block).expect(block));
        let all: Vec<_> = json.chain(toml).collect();
        assert_eq!(all.len(), wanted, "{section}");
        for file in all {
            let servers = ["mcpServers", "servers", "mcp_servers"].iter().find_map(|name| file.get(name));
            assert!(is_sound(&servers.expect("servers")["cloudphone"]), "{section}: {file}");
        }
    };
    let bearer = |server: &Value| {
        let header = server["headers"]["Authorization"].as_str().is_some_and(|value| value.starts_with("Bearer $"));
        header || server["bearer_token_env_var"] == "CLOUDPHONE_KEY"
    };
    let url = |server: &Value| server.get("httpUrl").or(server.get("url")) == Some(&json!("http://127.0.0.1:8080/mcp"));
    read("A command", 3, &|server| server["args"] == json!(["stdio", "--adb"]) && server["command"].is_string());
    read("The URL and a key", 5, &|server| url(server) && bearer(server));
    read("The bridge", 1, &|server| server["args"].as_array().is_some_and(|args| args.contains(&json!("--key-file"))));
}
