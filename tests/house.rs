//! House rules, held by tests: what the generic parts may know, and how a file looks.

mod links;
mod names;
mod plain;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

const FRAMEWORK: [&str; 2] = ["macros", "server/toolwarrant"];

/// The subject of the product's contract, its name, the beginnings of its keys, and its own flags.
/// An HTTP proxy belongs to the protocol.
const PRODUCT: &str = "adb android boot cloudphone cpk cps device devices emulator handset phone phones screen sim socks socks5 streaming";

const LONGEST_FILE: usize = 500;

const LONGEST_FUNCTION: usize = 80;

#[test]
fn the_framework_knows_no_word_of_the_product() {
    let words: Vec<&str> = PRODUCT.split(' ').collect();
    let known = |line: &str| {
        let mut parts = line.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(humps);
        parts.any(|part| words.contains(&part.to_ascii_lowercase().as_str()))
    };
    let all = all_files(&FRAMEWORK).into_iter();
    assert_none(all.flat_map(|path| place_lines(&path, &read(&path))).filter(|(_, line)| known(line)));
}

#[test]
fn nothing_panics_outside_of_tests() {
    let panics = [".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("];
    let own = ["xtask/src"].into_iter().chain(FRAMEWORK).collect::<Vec<_>>();
    // A server for tests is to fail where it cannot be had.
    let steady = files(&own)
        .into_iter()
        .filter(|path| !["/tests/", "/testing/"].iter().any(|part| display(path).contains(part)));
    let steady = steady.flat_map(|path| place_lines(&path, until_tests(&read(&path))));
    assert_none(steady.filter(|(_, line)| panics.iter().any(|panic| line.contains(panic))));
}

#[test]
fn every_file_begins_by_saying_what_it_owns() {
    let mute = files(&["."]).into_iter().filter(|path| !read(path).starts_with("//!"));
    assert_none(mute.map(|path| (display(&path), "begins without `//!`".to_owned())));
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let lengths = files(&["."]).into_iter().map(|path| (display(&path), read(&path).lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LONGEST_FILE);
    assert_none(long.map(|(path, lines)| (path, format!("has {lines} lines, at most {LONGEST_FILE} are readable"))));
}

#[test]
fn no_function_is_longer_than_a_reader_can_hold() {
    let all = all_files(&["."]).into_iter().flat_map(|path| functions(&place_lines(&path, &read(&path))));
    let long = all.filter(|(_, lines)| *lines > LONGEST_FUNCTION);
    assert_none(long.map(|(place, lines)| (place, format!("{lines} lines, at most {LONGEST_FUNCTION} are readable"))));
}

/// Finds the end of a function by its brace, which rustfmt puts below the beginning of the first
/// line.
fn functions(lines: &[(String, String)]) -> Vec<(String, usize)> {
    let is_function = |head: &str| {
        let words = ["pub", "pub(crate)", "pub(super)", "const", "async"];
        head.split_once("fn ").is_some_and(|(before, _)| before.split_whitespace().all(|word| words.contains(&word)))
    };
    let length = |(at, (place, line)): (usize, &(String, String))| {
        let head = line.trim_start();
        let indent = &line[..line.len() - head.len()];
        let is_end = |line: &str| {
            line.strip_prefix(indent).is_some_and(|rest| rest == "}" || rest.ends_with(';') && rest.starts_with(')'))
        };
        let ends_at_once = head.ends_with(['}', ';']);
        let end =
            lines[at..].iter().position(|(_, line)| is_end(line)).filter(|_| is_function(head) && !ends_at_once)?;
        Some((place.clone(), end + 1))
    };
    lines.iter().enumerate().filter_map(length).collect()
}

fn humps(word: &str) -> impl Iterator<Item = &str> {
    let starts = word.char_indices().filter(|(at, c)| *at == 0 || c.is_ascii_uppercase()).map(|(at, _)| at);
    let starts: Vec<usize> = starts.chain([word.len()]).collect();
    let parts: Vec<&str> = starts.windows(2).map(|pair| &word[pair[0]..pair[1]]).collect();
    parts.into_iter()
}

fn place_lines(path: &Path, text: &str) -> Vec<(String, String)> {
    let line = |(n, line): (usize, &str)| (format!("{}:{}", display(path), n + 1), line.to_owned());
    text.lines().enumerate().map(line).collect()
}

fn until_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

fn files(folders: &[&str]) -> Vec<PathBuf> {
    let is_test = |path: &PathBuf| path.file_name().is_some_and(|name| name == "tests.rs" || name == "golden.rs");
    all_files(folders).into_iter().filter(|path| !is_test(path)).collect()
}

fn all_files(folders: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && !matches!(&*name, "target" | "node_modules") && !name.starts_with('.') {
                open.push(path);
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file of this repository")
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace")
}

fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn assert_none(found: impl Iterator<Item = (String, String)>) {
    let found: Vec<String> = found.map(|(place, what)| format!("{place}: {}", what.trim())).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
