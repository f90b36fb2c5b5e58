//! Bad input: messages and exit codes.

use super::{Shop, assert_says};
use std::fmt::Write;
use toolwarrant_contract::GateAnswer;

type Spoiled<'s> = (&'s str, &'s dyn Fn(&Shop));

fn answers(spoil: &[Spoiled<'_>]) -> String {
    let mut out = String::new();
    for (name, spoil) in spoil {
        let shop = Shop::release_first();
        spoil(&shop);
        let GateAnswer { text, code } = shop.check();
        let text = text.find("error[").map_or(text.as_str(), |at| &text[at..]);
        let text = text.find("since 1.0.0").map_or(text, |at| &text[..at]);
        let _ = writeln!(out, "## {name}\n\nexit code {code}\n{text}");
    }
    let is_digest = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digests: Vec<_> = out.split([' ', ',', ';']).filter(is_digest).map(str::to_owned).collect();
    digests.iter().fold(out, |out, digest| out.replace(digest, "DIGEST"))
}

const RECORD: &str = "spec/released.toml";

#[test]
fn a_record_that_cannot_be_compared_is_never_a_pass() {
    let conflict = "<<<<<<< HEAD\nlimit.hold_seconds = 1\n=======\nlimit.hold_seconds = 2\n>>>>>>> other\n";
    let add = |shop: &Shop, text: &str| shop.write(RECORD, &(shop.read(RECORD) + text));
    let said = answers(&[
        ("no record", &|shop| std::fs::remove_file(shop.path(RECORD)).expect("removed")),
        ("a newer format", &|shop| shop.edit(RECORD, "record.format = 1", "record.format = 2")),
        ("no format", &|shop| shop.edit(RECORD, "record.format = 1\n", "")),
        ("an empty file", &|shop| shop.write(RECORD, "")),
        ("conflict marks", &|shop| add(shop, conflict)),
        ("a duplicate key", &|shop| add(shop, "limit.hold_seconds = 1\n")),
        ("a changed byte", &|shop| shop.edit(RECORD, "limit.hold_seconds = 4", "limit.hold_seconds = 5")),
        ("a changed version", &|shop| shop.edit(RECORD, "record.version = \"1.0.0\"", "record.version = \"1.0\"")),
        ("no digest", &|shop| shop.edit(RECORD, "record.digest = ", "record.digested = ")),
        ("two megabytes in a line", &|shop| add(shop, &format!("text.long = \"{}\"\n", "x".repeat(2 << 20)))),
        ("a fact of another kind", &|shop| add(shop, "text.day = 2026-11-23\n")),
        ("a contract with a mistake", &|shop| {
            shop.edit("spec/service.toml", "implies = [\"look\"]", "implies = [\"lok\"]")
        }),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_record_with_the_line_ends_of_another_system_is_the_same_record() {
    let shop = Shop::release_first();
    shop.write(RECORD, &shop.read(RECORD).replace('\n', "\r\n"));
    assert_says(&shop.check(), 0, "");
}

#[test]
fn a_version_and_an_acceptance_that_do_not_fit_are_named_with_their_place() {
    let accept =
        |rule: &str, fact: &str, rest: &str| format!("[[accepted]]\nrule = \"{rule}\"\nfact = \"{fact}\"\n{rest}\n");
    let write = |shop: &Shop, text: &str| {
        shop.break_it();
        shop.edit("spec/service.toml", "version = \"1.0.0\"", "version = \"2.0.0\"");
        shop.write("spec/accepted.toml", text);
    };
    let (rule, fact) = ("permission-raised", "tool.print_page.permission");
    let fit = "value = \"service\"\nreason = \"Paper.\"";
    let said = answers(&[
        ("a short version", &|shop| shop.edit("spec/service.toml", "\"1.0.0\"", "\"1.0\"")),
        ("a lower version", &|shop| shop.edit("spec/service.toml", "\"1.0.0\"", "\"0.9.0\"")),
        ("an unknown rule", &|shop| write(shop, &accept("permission-rased", fact, fit))),
        ("another value", &|shop| write(shop, &accept(rule, fact, "value = \"look\"\nreason = \"Paper.\""))),
        ("no value", &|shop| write(shop, &accept(rule, fact, "reason = \"Paper.\""))),
        ("another fact", &|shop| write(shop, &accept(rule, "tool.get_tray.permission", fit))),
        ("no reason", &|shop| write(shop, &accept(rule, fact, "value = \"service\"\nreason = \" \""))),
        ("an unknown key", &|shop| write(shop, &accept(rule, fact, &format!("{fit}\nuntil = \"2027\"")))),
        ("an unknown table", &|shop| write(shop, &format!("{}[off]\nall = true\n", accept(rule, fact, fit)))),
        ("a missing fact", &|shop| write(shop, "[[accepted]]\nrule = \"permission-raised\"\nreason = \"x\"\n")),
        ("conflict marks", &|shop| write(shop, "<<<<<<< HEAD\n")),
        ("an acceptance of nothing", &|shop| shop.write("spec/accepted.toml", &accept(rule, fact, fit))),
    ]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_changelog_is_extended_whatever_it_has_and_never_lost() {
    let shop = Shop::new();
    std::fs::write(shop.path("CHANGELOG.md"), b"# Log\n\xff\n").expect("written");
    let refused = shop.release("1.0.0");
    assert_eq!((refused.code, refused.text.starts_with("cannot read CHANGELOG.md: ")), (1, true), "{}", refused.text);
    assert!(!shop.path("spec/released.toml").exists());
    let section = "## Unreleased\n\n## 1.0.0 - 2026-11-23\n\n";
    for (before, after) in [
        ("# Log\n\n## 0.9\n\n- Old.\n", format!("# Log\n\n{section}## 0.9\n\n- Old.\n")),
        ("# Log\n\n## Unreleased\n\n- New.\n\n## 0.9\n", format!("# Log\n\n{section}- New.\n\n## 0.9\n")),
        ("# Log\n", format!("# Log\n{section}")),
    ] {
        let shop = Shop::new();
        shop.write("CHANGELOG.md", before);
        assert_eq!(shop.release("1.0.0").code, 0);
        assert_eq!(shop.read("CHANGELOG.md"), after);
    }
}
