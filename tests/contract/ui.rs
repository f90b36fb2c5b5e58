//! The compiler's messages for a maintainer: each file of `ui/` must fail with the output in its
//! snapshot.

use crate::house::root;
use crate::services::outside::outside;
use std::collections::BTreeMap;
use std::fs;

#[tokio::test]
async fn mistakes_in_handlers_and_contracts_are_compile_errors_that_say_what_to_do() {
    let mut said = BTreeMap::<_, String>::new();
    for file in fs::read_dir(root().join("tests/contract/ui")).expect("a folder").flatten() {
        if let Some(name) = file.file_name().to_str().and_then(|name| name.strip_suffix(".rs")) {
            said.insert(name.to_owned(), String::new());
        }
    }
    for error in &outside().await.errors {
        let name = error["target"]["name"].as_str().expect("a name");
        *said.get_mut(name).expect("a file of the folder") += error["message"]["rendered"].as_str().expect("text");
    }
    for (name, said) in said {
        assert!(!said.is_empty(), "{name} compiles");
        let said = said.replace(&root().display().to_string(), "WORKSPACE");
        let lines: Vec<_> = said.lines().map(without_numbers).collect();
        insta::assert_snapshot!(name, lines.join("\n"));
    }
}

/// Numbers of lines change with every edit above them.
fn without_numbers(line: &str) -> &str {
    let text = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    match text.get(..3) {
        Some("-->" | ":::") => text.rsplitn(3, ':').last().unwrap_or(text),
        _ if text.starts_with(['|', '=']) => text,
        _ => line,
    }
}
