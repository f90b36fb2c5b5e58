//! House rules, held by tests: what the generic parts may know, and how a file looks.

use std::fs;
use std::path::{Path, PathBuf};

/// The parts that serve any contract.
const GENERIC: [&str; 8] = [
    "server/src/framework",
    "server/src/tasks",
    "server/src/store",
    "server/src/telemetry",
    "spec/src",
    "macros/src",
    "macros/codegen/src",
    "xtask/src",
];

/// Where a panic would be met by a client or a maintainer.
const STEADY: [&str; 7] = [
    "server/src/framework",
    "server/src/store",
    "server/src/telemetry",
    "spec/src",
    "macros/src",
    "macros/codegen/src",
    "xtask/src",
];

/// Words that belong to what this product's contract is about. `Mcp-Session-Id` and an HTTP proxy belong to the protocol.
const PHONES: &str = "adb android boot device devices emulator handset phone phones screen sim socks socks5 streaming";

const LONGEST_FILE: usize = 500;

#[test]
fn the_generic_parts_know_no_word_about_phones() {
    let words: Vec<&str> = PHONES.split(' ').collect();
    let known = |line: &str| {
        let mut parts = line.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(humps);
        parts.any(|part| words.contains(&part.to_ascii_lowercase().as_str()))
    };
    assert_none(lines(&GENERIC).filter(|(_, line)| known(line)));
}

#[test]
fn the_generic_parts_never_name_the_module_of_phones() {
    assert_none(lines(&GENERIC).filter(|(_, line)| line.contains("crate::phones")));
}

#[test]
fn nothing_panics_outside_of_tests() {
    let panics = [".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("];
    let steady = files(&STEADY).into_iter().filter(|path| !shown(path).contains("/tests/"));
    let steady = steady.flat_map(|path| shown_lines(&path, until_tests(&read(&path))));
    assert_none(steady.filter(|(_, line)| panics.iter().any(|panic| line.contains(panic))));
}

#[test]
fn every_file_begins_by_saying_what_it_owns() {
    let mute = files(&["."]).into_iter().filter(|path| !read(path).starts_with("//!"));
    assert_none(mute.map(|path| (shown(&path), "begins without `//!`".to_owned())));
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let lengths = files(&["."]).into_iter().map(|path| (shown(&path), read(&path).lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LONGEST_FILE);
    assert_none(long.map(|(path, lines)| (path, format!("has {lines} lines, at most {LONGEST_FILE} are readable"))));
}

/// `getDeviceId` as `get`, `Device`, `Id`.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let starts = word.char_indices().filter(|(at, c)| *at == 0 || c.is_ascii_uppercase()).map(|(at, _)| at);
    let starts: Vec<usize> = starts.chain([word.len()]).collect();
    let parts: Vec<&str> = starts.windows(2).map(|pair| &word[pair[0]..pair[1]]).collect();
    parts.into_iter()
}

/// Places and lines of every file below those folders, tests left out: these may be about anything.
fn lines(folders: &[&str]) -> impl Iterator<Item = (String, String)> {
    files(folders).into_iter().flat_map(|path| shown_lines(&path, until_tests(&read(&path))))
}

fn shown_lines(path: &Path, text: &str) -> Vec<(String, String)> {
    let line = |(n, line): (usize, &str)| (format!("{}:{}", shown(path), n + 1), line.to_owned());
    text.lines().enumerate().map(line).collect()
}

/// A file's tests stand at its end.
fn until_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

/// Every Rust file below those folders that is no test as a whole.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                open.push(path);
            } else if name.ends_with(".rs") && !["tests.rs", "golden.rs"].contains(&&*name) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{folders:?} have no Rust file");
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file of this repository")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn assert_none(found: impl Iterator<Item = (String, String)>) {
    let found: Vec<String> = found.map(|(place, what)| format!("{place}: {}", what.trim())).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
