//! The comparison of `contract verify`, against servers of the product and against answers that no
//! server of this framework gives.

use super::nested::hostile;
use crate::harness::{contract, open_phones};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwarrant_contract::{VerifyOptions, verify};
use toolwarrant_gate::{digest, document};
use toolwarrant_reader::ContractRecord;

const PATH: &str = "/v1/contract.json";

/// Returns the exit code and the text, without the parts that differ from run to run.
async fn compare(against: &Path, url: &str, json: bool) -> (u8, String) {
    let options = VerifyOptions { against: against.to_owned(), json, url: url.to_owned() };
    let (text, code) = match verify(&options).await {
        Ok(answer) => answer,
        Err(error) if json => (error.json(), 2),
        Err(error) => (format!("{error}\n"), 2),
    };
    let folder = against.parent().expect("a folder").display().to_string();
    let host = url.split('/').nth(2).unwrap_or(url);
    (code, text.replace(&folder, "FOLDER").replace(host, "HOST"))
}

fn record_of(spec: &str) -> ContractRecord {
    ContractRecord::of(&contract(spec))
}

/// By these facts, the server has changed since the trusted record.
#[tokio::test]
async fn a_server_whose_contract_has_changed_is_found_and_a_change_that_hurts_is_a_failure() {
    let (server, _) = open_phones().await;
    let (folder, record) = (TempDir::new().expect("a folder"), record_of("spec"));
    let mut shown = String::new();
    let summary = record.facts["tool.get_device.summary"].as_str().expect("text").replace(" whole", ", whole");
    let trusted = [
        ("the same contract", vec![], 0),
        ("a changed comma", vec![("tool.get_device.summary", json!(summary))], 0),
        ("a changed hint", vec![("tool.set_power.hint.destructive", json!(false))], 1),
        (
            "a removed argument",
            vec![
                ("tool.get_device.argument.depth.type", json!("integer")),
                ("tool.get_device.argument.depth.doc", json!("How much to show.")),
                ("tool.get_device.argument.depth.optional", json!(true)),
            ],
            1,
        ),
        ("another permission", vec![("tool.set_power.permission", json!("device_read"))], 1),
    ];
    for (what, facts, expected) in trusted {
        let mut other = record.clone();
        for (fact, value) in facts {
            assert_ne!(other.facts.insert(fact.to_owned(), value.clone()), Some(value), "{fact} is another");
        }
        // The text of a record serves as well as a document.
        let (name, text) = match other == record {
            true => ("contract.toml", other.text()),
            false => ("contract.json", document(&other, None).to_string()),
        };
        let file = folder.path().join(name);
        fs::write(&file, text).expect("written");
        let (code, said) = compare(&file, &server.url, false).await;
        assert_eq!(code, expected, "{what}: {said}");
        writeln!(shown, "{what}: exit {code}\n{said}").expect("text");
        let (again, said) = compare(&file, &server.url.replace("/mcp", PATH), true).await;
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((again, &said["sound"]), (code, &json!(code == 0)), "{said}");
        assert_eq!(said["now"]["digest"], digest(&record));
    }
    insta::assert_snapshot!(shown);
}

/// Answers each connection with these octets. Returns the URL.
pub(super) async fn serve_octets(octets: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1_024]).await;
            let _ = stream.write_all(&octets).await;
        }
    });
    url
}

pub(super) fn ok(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn a_comparison_that_did_not_happen_is_never_a_success() {
    let folder = TempDir::new().expect("a folder");
    let (record, shop) = (record_of("spec"), record_of("tests/services/print_shop/spec"));
    let sound = folder.path().join("contract.json");
    let text = document(&record, None).to_string();
    fs::write(&sound, &text).expect("written");
    let rows = [
        ("another service", ok(&document(&shop, None).to_string())),
        (
            "a changed fact under the same digest",
            ok(&text.replace("\"tool.set_power.effect\":\"task\"", "\"tool.set_power.effect\":\"read\"")),
        ),
        ("a newer format", ok(&text.replacen("\"format\":1", "\"format\":2", 1))),
        ("no facts", ok(r#"{"format":1,"service":"service-cloudphone","digest":"","facts":{}}"#)),
        ("a fact that is a list of objects", ok(&text.replacen("\"facts\":{", "\"facts\":{\"a\":[{}],", 1))),
        ("a fact with a line end in its key", ok(&text.replacen("\"facts\":{", "\"facts\":{\"a = 1\\nb\":1,", 1))),
        ("a page", ok("<html>")),
        ("a half", ok(&text[..900])),
        ("an older server", b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}".to_vec()),
        ("another place", b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ("texts within texts", ok(&hostile()[2])),
        ("five megabytes", ok(&" ".repeat(5 << 20))),
        ("an end without an answer", Vec::new()),
    ];
    let mut shown = String::new();
    for (what, octets) in rows {
        let url = serve_octets(octets).await;
        let (code, said) = compare(&sound, &url, false).await;
        assert_eq!(code, 2, "{what}: {said}");
        writeln!(shown, "{what}\n{said}").expect("text");
        let (code, said) = compare(&sound, &url, true).await;
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((code, &said["compared"]), (2, &json!(false)), "{what}: {said}");
    }
    for url in ["http://127.0.0.1:1", "http://phones.example", "https://a:b@phones.example", "phones.example"] {
        let (code, said) = compare(&sound, url, false).await;
        assert_eq!(code, 2, "{url}: {said}");
        writeln!(shown, "{url}\n{said}").expect("text");
    }
    let url = serve_octets(ok(&text)).await;
    fs::write(folder.path().join("other.toml"), "[tool]\nname = \"x\"\n").expect("written");
    let (code, said) = compare(&folder.path().join("other.toml"), &url, false).await;
    assert_eq!(code, 2, "{said}");
    writeln!(shown, "no record\n{said}").expect("text");
    let (code, said) = compare(&folder.path().join("absent.toml"), &url, false).await;
    assert_eq!((code, compare(&sound, &url, false).await.0), (2, 0), "{said}");
    insta::assert_snapshot!(shown + &said);
}
