//! New tools: what is written, what is asked for, and what is refused.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use toolwarrant_contract::{NewTool, new_tool};
use toolwarrant_reader::load;

fn copy(folder: &str) -> TempDir {
    let home = TempDir::new().expect("a folder");
    super::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), home.path());
    home
}

fn tool(name: &str, keys: &[(&str, &str)]) -> NewTool {
    let value = |key| keys.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned());
    NewTool {
        name: name.to_owned(),
        file: value("file"),
        title: value("title"),
        permission: value("permission"),
        effect: value("effect"),
        resource: value("resource"),
        capability: value("capability"),
        http: value("http"),
        result: value("result"),
        probe: value("probe"),
        summary: Some("Does it.".to_owned()),
        use_when: Some("when it is due.".to_owned()),
        not_when: value("not_when"),
        idempotent: value("idempotent").is_some(),
    }
}

fn diff_of(home: &TempDir, tool: &NewTool) -> String {
    let before = TempDir::new().expect("a folder");
    super::copy(home.path(), before.path());
    let written = new_tool(home.path(), &home.path().join("spec"), tool).unwrap_or_else(|why| panic!("{why}"));
    let show = |path: &PathBuf| {
        let inside = path.strip_prefix(home.path()).expect("a file of the copy");
        let diff = Command::new("diff")
            .args(["-N", "-U0"])
            .arg(before.path().join(inside))
            .arg(path)
            .output()
            .expect("diff runs");
        let lines = String::from_utf8(diff.stdout).expect("text");
        let lines: Vec<_> = lines.lines().skip(2).filter(|line| !line.starts_with("@@")).collect();
        format!("== {}\n{}\n", inside.display(), lines.join("\n"))
    };
    written.iter().map(show).collect()
}

#[test]
fn a_new_tool_is_a_stanza_a_result_type_a_handler_and_a_test() {
    let shop = copy("tests/services/print_shop");
    let keys = [("file", "printers"), ("permission", "look"), ("effect", "read"), ("resource", "printer")];
    insta::assert_snapshot!(diff_of(&shop, &tool("count_pages", &keys)));
}

#[test]
fn a_new_file_of_tools_is_listed_and_gets_an_impl() {
    let files = copy("tests/services/files");
    let keys = [("file", "locks"), ("permission", "change"), ("effect", "issue"), ("title", "Lock \"all\" shares")];
    insta::assert_snapshot!(diff_of(&files, &tool("lock_shares", &keys)));
}

#[test]
fn a_new_task_returns_its_command() {
    let files = copy("tests/services/files");
    let task = [("file", "files"), ("permission", "change"), ("effect", "task"), ("resource", "share")];
    let keys = [&task[..], &[("capability", "change"), ("probe", "text"), ("idempotent", "yes")]].concat();
    insta::assert_snapshot!(diff_of(&files, &tool("empty_share", &keys)));
}

#[test]
fn a_refusal_says_what_is_allowed_and_writes_nothing() {
    let shop = copy("tests/services/print_shop");
    let keys = [("file", "printers"), ("permission", "look"), ("effect", "read")];
    for (changed, expected) in [
        (("effect", "raed"), "unknown effect `raed`: did you mean `read`?"),
        (("permission", "loook"), "did you mean `look`?"),
        (("resource", "fax"), "unknown resource `fax`: declared are `printer`, `tray`"),
        (("file", "../printers"), "`../printers` is no name of a file of tools/"),
        (("probe", "page_counter"), "has no `probe`: leave it out"),
        (("idempotent", "yes"), "has no `idempotent`: leave it out"),
        (("not_when", "Never."), "this names no other tool"),
        (("title", "A\nB"), "a text is one line"),
    ] {
        let refused = tool("count_pages", &[&[changed], &keys[..]].concat());
        let why = new_tool(shop.path(), &shop.path().join("spec"), &refused).unwrap_err();
        assert!(why.contains(expected), "{changed:?}: {why}");
    }
    let taken = new_tool(shop.path(), &shop.path().join("spec"), &tool("get_printer", &keys)).unwrap_err();
    assert!(taken.contains("`get_printer` is declared at spec/tools/printers.toml:2 already"), "{taken}");
    let as_before = copy("tests/services/print_shop");
    let same = Command::new("diff").arg("-r").args([shop.path(), as_before.path()]).status();
    assert!(same.unwrap().success());
}

#[test]
fn the_open_keys_are_asked_for_with_the_names_of_the_contract() {
    let contract = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/files/spec")).unwrap();
    let mut open = NewTool { name: "blink".to_owned(), effect: Some("read".to_owned()), ..NewTool::default() };
    let asked = open.missing(&contract);
    let asked: Vec<_> = asked.iter().map(|(question, _)| (question.key, question.known.join(" "))).collect();
    let expected =
        [("file", "files"), ("permission", "look change"), ("resource", "share"), ("summary", ""), ("use_when", "")];
    assert_eq!(asked, expected.map(|(key, known)| (key, known.to_owned())));
}
