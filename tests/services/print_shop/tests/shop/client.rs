//! The commands of a client: this service has the same as every other, under its own names.

use crate::process::{Shop, program};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

fn client(shop: &Shop, arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(arguments).env_clear().env("PRINT_SHOP_URL", &shop.url).kill_on_drop(true);
    command.env("PRINT_SHOP_KEY", format!("{}:{}", shop.demo.id, shop.demo.secret));
    command
}

#[tokio::test]
async fn its_standard_input_lists_its_tools_without_a_key() {
    let home = tempfile::TempDir::new().expect("a temporary folder");
    let mut stdio = program();
    stdio.arg("stdio").env_clear().env("HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut stdio = stdio.kill_on_drop(true).spawn().expect("it starts");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string() + "\n";
    stdio.stdin.as_mut().expect("its input").write_all(list.as_bytes()).await.expect("it reads");
    let mut lines = BufReader::new(stdio.stdout.take().expect("its output")).lines();
    let answer = lines.next_line().await.expect("text").expect("an answer");
    assert!(answer.contains("print_page"), "{answer}");
    drop(stdio.stdin.take());
    assert!(stdio.wait().await.expect("it ran").success());
}

#[tokio::test]
async fn its_bridge_lists_its_tools_and_says_how_a_key_is_made_for_it() {
    let shop = Shop::start().await;
    let mut bridge =
        client(&shop, &["bridge"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    bridge.stdin.take().expect("its input").write_all(list.as_bytes()).await.expect("it reads");
    let answer = bridge.wait_with_output().await.expect("its answer").stdout;
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let names: Vec<_> =
        answer["result"]["tools"].as_array().expect("a list").iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("print_page")), "{names:?}");

    let help = client(&shop, &["bridge", "--help"]).output().await.expect("the program runs").stdout;
    let help = String::from_utf8(help).expect("text");
    for line in [
        "  print-shop app create bridge --permission look\n",
        "  print-shop printer assign bridge --all\n  print-shop tray assign bridge --all\n",
        "  (umask 077; print-shop key create bridge --json > bridge.key)\n",
        "[env: PRINT_SHOP_KEY_FILE=]",
    ] {
        assert!(help.contains(line), "{line}: {help}");
    }
}

#[tokio::test]
async fn an_argument_that_no_tool_has_is_left_out_and_the_caller_is_told() {
    let shop = Shop::start().await;
    let usual: [&[&str]; 3] = [
        &["list_machines"],
        &["get_tray", "tray_id=p-1"],
        &["fill_tray", "tray_id=p-4", "sheets=5", "idempotency_key=k"],
    ];
    for arguments in usual {
        for strangers in [&[][..], &["near=here", "\u{202e}x=1"]] {
            let output = client(&shop, &[&["call"], arguments, strangers].concat()).output().await.expect("it runs");
            let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
            let told = format!("{}: Left out, because this tool has no such argument: `near`, `x`.\n", arguments[0]);
            assert_eq!(err, if strangers.is_empty() { "" } else { &told }, "{arguments:?}");
            assert!(serde_json::from_str::<Value>(&out).expect("JSON").is_object(), "{out}");
        }
    }
}
