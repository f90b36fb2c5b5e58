//! A service whose product is text and pictures, in a package outside of this workspace.

use super::outside::outside;
use crate::harness::program::Program;
use driver::{Start, rpc};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;

/// The smallest picture that a PNG can hold.
const PNG: &[u8] = include_bytes!("files/dot.png");

#[tokio::test]
async fn texts_and_pictures_are_blocks_of_their_own_and_an_act_changes_a_file_at_once() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let share = home.path().join("shares/notes");
    fs::create_dir_all(&share).expect("a folder");
    for (name, bytes) in [("today.md", &b"milk\n\xe2\x80\xae\ttea\n"[..]), ("dot.png", PNG), ("half.png", &PNG[..40])] {
        fs::write(share.join(name), bytes).expect("written");
    }
    fs::write(home.path().join("shares/secret"), "hunter2").expect("written");
    let start = Start::new(outside().await.program("files"), home.path());
    let mut server = Program::start_as(home.clone(), start).await;
    let operator = server.operator.clone();
    operator.json("app create editor --permission change".split(' ')).await.expect("an application");
    operator.json("share assign editor notes".split(' ')).await.expect("a grant");
    server.keys = vec![operator.key("editor").await.expect("a key")];
    let call = async |tool: &str, mut arguments: Value| {
        arguments["share_id"] = "notes".into();
        let call = json!({"name": tool, "arguments": arguments});
        rpc(server.address, &server.keys[0], "tools/call", &call).await.expect("an answer")["result"].take()
    };
    let first = |answer: &Value| -> Value {
        serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON")
    };
    let code = |answer: &Value| first(answer)["code"].clone();

    let read = call("read_text_file", json!({"path": "today.md"})).await;
    assert_eq!(read["content"][0]["text"], r#"{"next":null,"altered":1}"#, "{read}");
    assert_eq!(read["content"][1]["text"], "milk\n⟨U+202E⟩\ttea\n");
    assert_eq!(read.get("structuredContent"), None);
    let seen = call("look_at_picture", json!({"path": "dot.png"})).await;
    assert_eq!((&seen["content"][1]["type"], &seen["content"][1]["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(code(&call("look_at_picture", json!({"path": "half.png"})).await), "no_picture");
    assert_eq!(code(&call("read_text_file", json!({"path": "../secret"})).await), "no_such_file");

    let edit = |old: &str| json!({"path": "today.md", "edits": [{"oldText": "milk", "newText": "oats"}, {"oldText": old, "newText": ""}]});
    assert_eq!(code(&call("edit_file", edit("coffee")).await), "no_single_match");
    assert_eq!(fs::read(share.join("today.md")).expect("a file"), b"milk\n\xe2\x80\xae\ttea\n", "all or none");
    let edited = call("edit_file", edit("\ttea\n")).await;
    assert_eq!(first(&edited), json!({"path": "today.md", "size": 8}), "{edited}");
    assert_eq!(fs::read(share.join("today.md")).expect("a file"), b"oats\n\xe2\x80\xae");

    let task = call("delete_file", json!({"path": "today.md"})).await;
    let end = server.task(&first(&task)["task_id"]).await;
    assert_eq!((&end["status"], share.join("today.md").exists()), (&json!("success"), false), "{end}");
    let audit = operator.json("audit list".split(' ')).await.expect("lines").to_string();
    assert!(audit.contains(r#""edits":{"characters":"#) && !audit.contains("oats"), "{audit}");
}
