//! The compiler's messages for a maintainer: each file of `ui/` must fail with the output in its
//! snapshot.

use crate::house::root;
use crate::services::outside::Outside;
use std::fs;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn mistakes_in_handlers_and_contracts_are_compile_errors_that_say_what_to_do() {
    let package = Outside::copy("ui");
    fs::remove_dir_all(package.path("src")).expect("removed");
    for folder in ["tests/services/print_shop", "tests/contract/ui"].map(|folder| root().join(folder)) {
        symlink(&folder, package.path(folder.file_name().and_then(|name| name.to_str()).expect("a name")))
            .expect("a link");
    }
    let files = fs::read_dir(package.path("ui")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect();
    cases.sort();
    let names = cases.iter().map(|path| path.file_stem().and_then(|name| name.to_str()).expect("a name"));
    let programs = names.clone().map(|name| format!("\n[[bin]]\nname = \"{name}\"\npath = \"ui/{name}.rs\"\n"));
    package.change("Cargo.toml", "[workspace]", &format!("[workspace]\n{}", programs.collect::<String>()));
    let errors = package.errors().await;
    for name in names {
        let said = errors.iter().filter(|error| error["target"]["name"] == *name);
        let said: String = said.filter_map(|error| error["message"]["rendered"].as_str()).collect();
        assert!(!said.is_empty(), "{name} compiles");
        let said = said.replace(&root().display().to_string(), "WORKSPACE");
        let lines: Vec<_> = said.lines().map(without_numbers).collect();
        insta::assert_snapshot!(name, lines.join("\n"));
    }
}

/// Leaves out the numbers of lines, which change with every edit above them.
fn without_numbers(line: &str) -> &str {
    let text = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    match text.get(..3) {
        Some("-->" | ":::") => text.rsplitn(3, ':').last().unwrap_or(text),
        _ if text.starts_with(['|', '=']) => text,
        _ => line,
    }
}
