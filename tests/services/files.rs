//! A service whose product is text and pictures, in a package outside of this workspace.

use super::outside::outside;
use crate::harness::program::Program;
use kit::{Start, rpc};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use tempfile::TempDir;

/// The smallest picture that a PNG can hold.
const PNG: &[u8] = include_bytes!("files/dot.png");

/// Has the grant of the share `notes`.
async fn serve(flags: &[&str]) -> Program {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let shares = home.path().join("shares");
    fs::create_dir_all(shares.join("notes")).expect("a folder");
    for (name, bytes) in [("today.md", &b"milk\n\xe2\x80\xae\ttea\n"[..]), ("dot.png", PNG), ("half.png", &PNG[..40])] {
        fs::write(shares.join("notes").join(name), bytes).expect("written");
    }
    fs::write(shares.join("secret"), "hunter2").expect("written");
    symlink("../secret", shares.join("notes/link.md")).expect("a link");
    let start = Start::new(outside().await.program("served"), home.path()).flags(flags);
    let mut server = Program::start_as(home.clone(), start).await;
    server.operator.json("app create editor --permission change".split(' ')).await.expect("an application");
    let assigned = server.operator.json("share assign editor notes".split(' ')).await.expect("a grant");
    let note = assigned["note"].as_str().expect("a note");
    assert!(note.contains("nothing checked that these exist"), "{assigned}");
    server.keys = vec![server.operator.key("editor").await.expect("a key")];
    server
}

async fn call(server: &Program, tool: &str, mut arguments: Value) -> Value {
    arguments["share_id"] = "notes".into();
    let call = json!({"name": tool, "arguments": arguments});
    rpc(server.address, &server.keys[0], "tools/call", &call).await.expect("an answer")["result"].take()
}

fn first(answer: &Value) -> Value {
    serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON")
}

#[tokio::test]
async fn texts_and_pictures_are_blocks_of_their_own_and_an_act_changes_a_file_at_once() {
    let server = serve(&["--toolsets", "pictures"]).await;
    let call = async |tool: &str, arguments: Value| call(&server, tool, arguments).await;
    let code = |answer: &Value| first(answer)["code"].clone();

    let read = call("read_text_file", json!({"name": "today.md"})).await;
    assert_eq!(read["content"][0]["text"], r#"{"next":null,"altered":1}"#, "{read}");
    assert_eq!(read["content"][1]["text"], "milk\n⟨U+202E⟩\ttea\n");
    assert_eq!(read.get("structuredContent"), None);
    let seen = call("look_at_picture", json!({"name": "dot.png"})).await;
    assert_eq!((&seen["content"][1]["type"], &seen["content"][1]["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(code(&call("look_at_picture", json!({"name": "half.png"})).await), "no_such_file");
    assert_eq!(code(&call("read_text_file", json!({"name": "link.md"})).await), "no_such_file");
    assert_eq!(code(&call("read_text_file", json!({"name": "../secret"})).await), "invalid_argument");
    let listed = first(&call("list_files", json!({})).await);
    assert_eq!(listed["files"].as_array().expect("files").len(), 3, "{listed}");

    let edit = |old: &str| json!({"name": "today.md", "edits": [{"oldText": "milk", "newText": "oats"}, {"oldText": old, "newText": ""}]});
    let file = server.home.path().join("shares/notes/today.md");
    assert_eq!(code(&call("edit_file", edit("coffee")).await), "no_single_match");
    assert_eq!(fs::read(&file).expect("a file"), b"milk\n\xe2\x80\xae\ttea\n", "all or none");
    let edited = call("edit_file", edit("\ttea\n")).await;
    assert_eq!(first(&edited), json!({"name": "today.md", "size": 8}), "{edited}");
    assert_eq!(fs::read(&file).expect("a file"), b"oats\n\xe2\x80\xae");
    let audit = server.operator.json("audit list".split(' ')).await.expect("lines").to_string();
    assert!(audit.contains(r#""edits":{"characters":"#) && !audit.contains("oats"), "{audit}");
}

#[tokio::test]
async fn a_service_from_outside_is_built_served_and_operated() {
    let server = serve(&[]).await;
    let json = async |line: &str| server.operator.json(line.split(' ')).await.expect("JSON");
    let written = call(&server, "write_file", json!({"name": "new.md", "text": "hunter2\n"})).await;
    let end = server.task(&first(&written)["task_id"]).await;
    assert_eq!((&end["status"], &end["evidence"]["observed"]), (&json!("success"), &json!("this text")), "{end}");
    assert_eq!(fs::read(server.home.path().join("shares/notes/new.md")).expect("a file"), b"hunter2\n");
    let other = server.call("list_files", json!({"share_id": "others"})).await;
    assert_eq!(other.expect_err("not granted")["code"], "not_found");
    let tasks = json("task list").await["tasks"].take();
    assert_eq!((&tasks[0]["share_id"], &tasks[0]["status"]), (&json!("notes"), &json!("success")));
    assert_eq!(json("doctor").await["healthy"], true);
    assert!(!json("audit list").await.to_string().contains("hunter2"));
}
