//! JSON in a text in JSON, and so on: a reader that reads each text with a fresh limit of depth
//! exhausts its stack.

use super::call::client;
use super::verify::{ok, serve_octets};
use crate::harness::bridge::Bridge;
use crate::harness::program::{Program, send};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use toolwarrant::base::json;

/// Nests texts, each with `deep` lists. Escapes that grow by a constant keep the whole short.
fn nest_texts(name: &str, levels: usize, deep: usize) -> String {
    let text = (0..levels).fold("{}".to_owned(), |inner, _| {
        let text = format!("{}{inner}{}", "[".repeat(deep), "]".repeat(deep));
        let text = text.replace('\\', "\\u005c").replace('"', "\\u0022");
        format!(r#"{{"{name}":"{text}"}}"#)
    });
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    text
}

const NAME: &str = "$serde_json::private::RawValue";

pub(super) fn hostile() -> [String; 3] {
    [
        nest_texts(NAME, 40, 120),
        format!("[{}]", nest_texts(NAME, 200, 60)),
        format!(r#"{{"a":{}}}"#, nest_texts("\\u0024serde_json:\\u003aprivate::RawV\\u0061lue", 40, 100)),
    ]
}

#[test]
fn no_member_has_a_private_name_however_it_is_written_and_other_texts_are_read_as_ever() {
    let escaped = (0..NAME.len()).map(|at| format!("{}\\u{:04x}{}", &NAME[..at], NAME.as_bytes()[at], &NAME[at + 1..]));
    let all: String = NAME.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
    for name in escaped.chain([NAME.to_owned(), all, "$serde_json::private::Number".to_owned()]) {
        for text in [
            format!(r#"{{"{name}":"[]"}}"#),
            format!(r#"[{{"a\\":"\"{{","b":[{{"c":1,"{name}" {}: "[]"}}]}}]"#, "\t\n\r "),
            format!(r#"{{"a":"{name}","b":{{"{name}":7}}}}"#),
        ] {
            let read = [json::read::<Value>(&text).err(), json::read_bytes::<Value>(text.as_bytes()).err()];
            let skipped = [json::read::<Box<RawValue>>(&text).err(), json::read::<IgnoredAny>(&text).err()];
            for error in read.into_iter().chain(skipped) {
                assert!(error.is_some_and(|error| error.to_string().contains("a name of a member begins")), "{text}");
            }
        }
    }
    for text in [
        format!(r#"{{"a":"{NAME}","b$":["{NAME}"]," {NAME}":1}}"#),
        r#"{"\\u0024serde_json::private::RawValue":"{}","$":"\\","\u0024":"\ud83d\ude00"}"#.to_owned(),
        format!("{}{}", "[".repeat(127), "]".repeat(127)),
        format!(r#"{{"a":"{NAME}"#),
        r#"{"$":"\"#.to_owned(),
        r#"{"$\ud800":1}"#.to_owned(),
        "[".repeat(128),
        "{} x$".to_owned(),
    ] {
        let expected = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
        assert_eq!(json::read(&text).map_err(|error| error.to_string()), expected, "{text}");
        assert_eq!(json::read_bytes(text.as_bytes()).map_err(|error| error.to_string()), expected, "{text}");
    }
    assert!(json::convert::<Value>(&json!({"a": {NAME: "{}"}})).is_err());
    assert!(
        json::read::<IgnoredAny>(&" ".repeat(json::BYTES_MAX + 1))
            .is_err_and(|error| error.to_string().contains("longer"))
    );
}

#[tokio::test]
async fn no_text_within_a_text_ends_the_server() {
    let home = tempfile::TempDir::new().expect("a folder");
    let (sockets, group) = (home.path().join("sockets"), home.path().metadata().expect("a folder").gid().to_string());
    fs::create_dir(&sockets).expect("a folder");
    let folder = sockets.to_str().expect("text");
    let program =
        Program::start(&["--operator-sockets", folder, "--operate-group", &group, "--view-group", &group]).await;
    let ways = [sockets.join("view.sock"), sockets.join("operate.sock"), program.data.join("admin.sock")];
    for nested in hostile() {
        for socket in &ways {
            for line in [
                format!(
                    r#"{{"program":"cloudphone","command":{{"own":{{"command":{nested},"patience":{{"secs":1,"nanos":0}}}}}},"claims":{{}}}}"#
                ),
                format!(r#"{{"program":"cloudphone","command":{nested},"claims":{{}}}}"#),
                nested.clone(),
            ] {
                let answer = send(socket, &line).expect("an answer");
                assert_eq!(answer["Err"]["code"], "refused", "{answer}");
            }
        }
        for body in
            [nested.clone(), format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{nested}}}}}"#)]
        {
            let request = program.keys[0].request(&body, "connection: close\r\n");
            let answer = kit::exchange(program.address, request.as_bytes()).await.expect("an answer");
            assert_eq!(answer.status, 400);
        }
        program.call("list_devices", json!({"limit": 1})).await.expect("it serves");
    }
}

#[tokio::test]
async fn no_text_within_a_text_ends_a_client() {
    let program = Program::start(&[]).await;
    let key = &program.keys[0];
    for nested in hostile() {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{nested},"error":{nested}}}"#);
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": nested}]}});
        for body in [body, nested.clone(), text.to_string()] {
            let url = format!("{}/mcp", serve_octets(ok(&body)).await);
            for way in [&["call", "list_devices"][..], &["call", "list_devices", "--v1"]] {
                let said = client(&url, key, way).await;
                assert!(said.code == 1 || body.contains("content"), "{} {}", said.code, said.err);
            }
            let mut bridge = Bridge::with_key(&url, key);
            bridge.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
            bridge.ask(format!(r#"{{"jsonrpc":"2.0","id":1,"method":{nested}}}"#)).await;
            assert!(bridge.end().await.1.success());
        }
    }
}
