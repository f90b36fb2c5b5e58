//! The page of flags is what the program itself says of them.

use crate::program::binary;
use tokio::process::Command;

#[tokio::test]
async fn the_page_of_flags_is_what_the_command_line_says() {
    let output = Command::new(binary()).arg("flags").env_clear().output().await.expect("the program runs");
    let page = String::from_utf8(output.stdout).expect("text");
    let written = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/flags.md")).expect("a page");
    assert!(page == written, "docs/flags.md is stale: `cargo run -- flags > docs/flags.md` writes it anew");
    for flag in
        ["--listen ADDRESS:PORT", "CLOUDPHONE_DEMO", "`--data DIR` \u{2217}", "`--sim-devices N`", "`app create`"]
    {
        assert!(page.contains(flag), "{flag}");
    }
}
