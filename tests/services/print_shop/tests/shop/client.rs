//! The commands of a client: this service has the same as every other, under its own names.

use crate::process::{Shop, program};
use serde_json::Value;
use tokio::process::Command;

fn client(shop: &Shop, arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(arguments).env_clear().env("PRINT_SHOP_URL", &shop.url).kill_on_drop(true);
    command.env("PRINT_SHOP_KEY", format!("{}:{}", shop.demo().id, shop.demo().secret));
    command
}

#[tokio::test]
async fn the_help_of_its_bridge_says_how_a_key_is_made_for_it() {
    let help = program().args(["bridge", "--help"]).output().await.expect("the program runs").stdout;
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
