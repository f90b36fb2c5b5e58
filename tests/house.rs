//! House rules, held by tests: what the generic parts may know, and how a file looks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the framework, tests and all.
const FRAMEWORK: [&str; 2] = ["macros", "server/toolwarrant"];

/// Words of the product: what its contract is about, its name, what its keys begin with, and its own flags. An HTTP proxy belongs to
/// the protocol.
const PRODUCT: &str = "adb android boot cloudphone cpk cps device devices emulator handset phone phones screen sim socks socks5 streaming";

const LONGEST_FILE: usize = 500;

/// From the line with `fn` to the closing brace.
const LONGEST_FUNCTION: usize = 80;

#[test]
fn the_framework_knows_no_word_of_the_product() {
    let words: Vec<&str> = PRODUCT.split(' ').collect();
    let known = |line: &str| {
        let mut parts = line.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(humps);
        parts.any(|part| words.contains(&part.to_ascii_lowercase().as_str()))
    };
    let all = all_files(&FRAMEWORK).into_iter();
    assert_none(all.flat_map(|path| shown_lines(&path, &read(&path))).filter(|(_, line)| known(line)));
}

#[test]
fn nothing_panics_outside_of_tests() {
    let panics = [".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("];
    let own = ["xtask/src"].into_iter().chain(FRAMEWORK).collect::<Vec<_>>();
    // A server for tests is to fail where it cannot be had.
    let steady =
        files(&own).into_iter().filter(|path| !["/tests/", "testing.rs"].iter().any(|part| shown(path).contains(part)));
    let steady = steady.flat_map(|path| shown_lines(&path, until_tests(&read(&path))));
    assert_none(steady.filter(|(_, line)| panics.iter().any(|panic| line.contains(panic))));
}

#[test]
fn a_public_type_name_has_one_meaning() {
    let mut places = BTreeMap::<String, Vec<String>>::new();
    // What the generator writes stands in its own crate as text.
    for path in files(&["."])
        .into_iter()
        .filter(|path| shown(path).contains("src/") && !shown(path).starts_with("macros/codegen"))
    {
        for (place, line) in shown_lines(&path, until_tests(&read(&path))) {
            let mut words = line.split_whitespace();
            let kind = (words.next(), words.next());
            if let ((Some("pub"), Some("struct" | "enum" | "trait" | "type")), Some(name)) = (kind, words.next()) {
                let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    let several = places.into_iter().filter(|(_, places)| places.len() > 1);
    assert_none(several.map(|(name, places)| (name, format!("is declared at {}", places.join(" and ")))));
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

#[test]
fn no_function_is_longer_than_a_reader_can_hold() {
    let all = all_files(&["."]).into_iter().flat_map(|path| functions(&shown_lines(&path, &read(&path))));
    let long = all.filter(|(_, lines)| *lines > LONGEST_FUNCTION);
    assert_none(long.map(|(place, lines)| (place, format!("{lines} lines, at most {LONGEST_FUNCTION} are readable"))));
}

#[test]
fn every_link_of_the_pages_leads_to_a_file_and_to_a_heading_in_it() {
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root().join(page));
    let docs = fs::read_dir(root().join("docs")).expect("a folder").flatten().map(|entry| entry.path());
    let pages: Vec<_> =
        pages.into_iter().chain(docs.filter(|path| path.extension().is_some_and(|end| end == "md"))).collect();
    let linked: Vec<_> =
        pages.iter().flat_map(|page| links(&read(page)).into_iter().map(move |link| (page, link))).collect();
    assert!(linked.len() > pages.len(), "few links were found: {linked:?}");
    let broken = linked.into_iter().filter(|(page, link)| {
        let (file, anchor) = link.split_once('#').map_or((&**link, None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { page.to_path_buf() } else { page.with_file_name(file) };
        !target.exists() || anchor.is_some_and(|anchor| !anchors(&read(&target)).any(|known| known == anchor))
    });
    assert_none(broken.map(|(page, link)| (shown(page), format!("leads nowhere: {link}"))));
}

/// The targets of a page's relative links, outside of code blocks: `[text](target)`, and `[text]: target` at the start of a line.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        let inline = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        let reference = line.strip_prefix('[').and_then(|rest| Some(rest.split_once("]: ")?.1));
        found.extend(inline.chain(reference).filter(|link| !link.contains("://")).map(str::to_owned));
    }
    found
}

/// The anchors of a page's headings: in lower case, without punctuation, with hyphens for spaces.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings.map(|line| line.trim_start_matches('#').trim()).map(|heading| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    })
}

/// The lines of a page outside of its code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Each function's place and length. rustfmt puts its closing brace below the beginning of its first line.
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

/// `getDeviceId` as `get`, `Device`, `Id`.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let starts = word.char_indices().filter(|(at, c)| *at == 0 || c.is_ascii_uppercase()).map(|(at, _)| at);
    let starts: Vec<usize> = starts.chain([word.len()]).collect();
    let parts: Vec<&str> = starts.windows(2).map(|pair| &word[pair[0]..pair[1]]).collect();
    parts.into_iter()
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
    let is_test = |path: &PathBuf| path.file_name().is_some_and(|name| name == "tests.rs" || name == "golden.rs");
    all_files(folders).into_iter().filter(|path| !is_test(path)).collect()
}

/// Every Rust file below those folders.
fn all_files(folders: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn assert_none(found: impl Iterator<Item = (String, String)>) {
    let found: Vec<String> = found.map(|(place, what)| format!("{place}: {}", what.trim())).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
