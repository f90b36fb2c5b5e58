//! One bridge through many changes of its server and its key, as its client and the people who run
//! it see it.

use super::{call, cancel, request};
use crate::harness::bridge::Bridge;
use crate::harness::program::{Program, json_of, operate};
use crate::harness::{tools_with, write};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

struct BridgeTranscript {
    text: String,
    names: Vec<(String, &'static str)>,
}

impl BridgeTranscript {
    fn note(&mut self, what: &str) {
        writeln!(self.text, "# {what}").expect("text");
    }

    async fn ask(&mut self, bridge: &mut Bridge, line: String) {
        let mut answer = bridge.ask(&line).await;
        if let Some(tools) = answer.pointer_mut("/result/tools") {
            let names: Vec<_> = tools.as_array().expect("a list").iter().map(|tool| tool["name"].clone()).collect();
            assert_eq!(names, tools_with("device_read"));
            *tools = json!("..");
        }
        if let Some(instructions) = answer.pointer_mut("/result/instructions") {
            *instructions = json!("..");
        }
        self.record_stderr(bridge);
        writeln!(self.text, "-> {line}\n<- {answer}").expect("text");
    }

    async fn send(&mut self, bridge: &mut Bridge, line: String) {
        bridge.send(&line).await;
        writeln!(self.text, "-> {line}").expect("text");
    }

    fn record_stderr(&mut self, bridge: &mut Bridge) {
        for line in bridge.take_stderr().lines() {
            writeln!(self.text, " ! {line}").expect("text");
        }
    }

    fn steady(&self) -> String {
        self.names.iter().fold(self.text.clone(), |text, (value, name)| text.replace(value, name))
    }
}

async fn new_key(data: &Path, file: &Path) -> String {
    let key = json_of(data, "key create bridge").await;
    write(file, &key.to_string(), 0o600);
    key["key_id"].as_str().expect("text").to_owned()
}

fn page(id: u32) -> String {
    call(id, "list_devices", json!({"limit": 1}))
}

/// Revokes, replaces and rotates the key, then stores it in a file that others can read.
async fn through_keys(log: &mut BridgeTranscript, bridge: &mut Bridge, (data, file): (&Path, &Path), key: &str) {
    log.note("the key is revoked");
    operate(data, &format!("key revoke {key}")).await;
    log.ask(bridge, page(9)).await;
    log.ask(bridge, page(10)).await;

    log.note("its file holds another key");
    let second = new_key(data, file).await;
    log.names.push((second.clone(), "KEY_2"));
    log.ask(bridge, page(11)).await;

    log.note("that key is rotated twice, so that its first secret ends");
    operate(data, &format!("key rotate {second}")).await;
    let rotated = json_of(data, &format!("key rotate {second}")).await;
    log.ask(bridge, page(12)).await;
    let secret = rotated["secret"].as_str().expect("text");
    write(file, &format!("{second}:{secret}\n"), 0o600);
    log.ask(bridge, page(13)).await;

    log.note("others can read the file of the next key");
    operate(data, &format!("key revoke {second}")).await;
    let third = new_key(data, file).await;
    log.names.push((third, "KEY_3"));
    let text = std::fs::read_to_string(file).expect("text");
    write(file, &text, 0o644);
    log.ask(bridge, page(14)).await;
    write(file, &text, 0o600);
    log.ask(bridge, page(15)).await;
}

#[tokio::test]
async fn a_bridge_outlives_all_that_happens_to_its_server_and_its_key() {
    let mut program = Program::start(&["--listen", "127.8.8.8:0"]).await;
    let (data, file) = (program.data.clone(), program.home.path().join("bridge.key"));
    let address = program.address.to_string();
    let listen = ["--listen", &address];
    // The commands that the help shows for a key that only reads.
    for line in ["app create bridge --permission device_read", "device assign bridge --all"] {
        assert_eq!(operate(&data, line).await.0, 0, "{line}");
    }
    let key = new_key(&data, &file).await;
    let mut log = BridgeTranscript { text: String::new(), names: Vec::new() };
    log.names.push((key.clone(), "KEY_1"));
    log.names.push((address.clone(), "SERVER"));
    log.names.push((CATALOGUE.contract.digest.to_owned(), "DIGEST"));
    log.names.push((program.home.path().display().to_string(), "HOME"));

    log.note("the key is wrong, until its file holds the right one");
    let right = std::fs::read_to_string(&file).expect("text");
    write(&file, &format!("{key}:cps_wrong"), 0o600);
    let mut bridge = Bridge::with_file(&program.url, &file);
    log.ask(&mut bridge, page(0)).await;
    log.ask(&mut bridge, format!("[{},{}]", page(0), page(1))).await;
    write(&file, &right, 0o600);

    log.note("it lists and calls");
    let offer =
        json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    log.ask(&mut bridge, request(1, "initialize", offer)).await;
    log.ask(&mut bridge, request(2, "tools/list", json!({}))).await;
    log.ask(&mut bridge, page(3)).await;
    log.ask(&mut bridge, call(4, "set_power", json!({"device_id": "phone-0000001", "action": "boot"}))).await;

    log.note("its file is read again only after a refusal");
    write(&file, "cpk_other:cps_wrong", 0o600);
    log.ask(&mut bridge, request("same", "ping", json!({}))).await;
    write(&file, &right, 0o600);

    log.note("another call answers while a poll is held, which is then cancelled");
    let slow = program.call("set_power", json!({"device_id": "phone-0000018", "action": "restart"})).await;
    let task = slow.expect("a task")["task_id"].clone();
    log.names.push((task.as_str().expect("text").to_owned(), "TASK"));
    log.send(&mut bridge, call("held", "get_task", json!({"task_id": task, "wait_seconds": 50}))).await;
    log.ask(&mut bridge, request("other", "ping", json!({}))).await;
    log.send(&mut bridge, cancel("held")).await;
    log.ask(&mut bridge, request("after", "ping", json!({}))).await;

    log.note("the server is down");
    program.stop().await;
    log.ask(&mut bridge, page(5)).await;
    log.ask(&mut bridge, request(6, "ping", json!({}))).await;

    log.note("the server is back");
    program = program.again(&listen).await;
    log.ask(&mut bridge, page(7)).await;

    log.note("the server has restarted between two calls");
    program.kill().await;
    program = program.again(&listen).await;
    log.ask(&mut bridge, page(8)).await;

    through_keys(&mut log, &mut bridge, (&data, &file), &key).await;

    log.note("the client leaves");
    let (rest, exit) = bridge.end().await;
    assert!(rest.is_empty() && exit.success());
    log.record_stderr(&mut bridge);
    program.stop().await;
    insta::assert_snapshot!(log.steady());
}
