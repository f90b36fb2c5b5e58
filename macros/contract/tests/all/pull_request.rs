//! The view of a pull request: a branch next to the release, in clones and merges of git.

use super::{Shop, assert_says, show};
use std::fmt::Write;
use std::fs;
use toolwarrant_reader::{Mode, generate};

#[test]
fn a_branch_is_compared_with_one_blob_of_its_base_in_a_clone_of_depth_two() {
    let shop = Shop::release_first();
    shop.init();
    shop.edit("spec/service.toml", "version = \"1.0.0\"", "version = \"2.0.0\"");
    shop.break_it();
    shop.generate();
    shop.commit();
    let clone = shop.shallow();
    let mut out = show(&clone.base("HEAD~1"));
    assert!(out.contains("exit code 2") && out.contains("git fetch --deepen=1"), "{out}");
    assert!(clone.git("fetch --quiet --deepen=1"));
    for revision in ["HEAD~1", "origin/other", "0123456789abcdef0123456789abcdef01234567", "v9", "--output=x"] {
        let _ = writeln!(out, "\n## {revision}\n\n{}", show(&clone.base(revision)));
    }
    insta::assert_snapshot!(out);
    let same = clone.base("HEAD");
    assert!(same.text.contains("since HEAD: 0 breaking (0 accepted), 0 risky, 0 compatible"), "{}", same.text);
}

#[test]
fn a_base_without_the_record_in_force_is_not_compared() {
    let shop = Shop::release_first();
    assert!(shop.git("init --quiet --initial-branch=main"));
    shop.commit();
    let why = "exit code 2\nnot compared: `main` has no generated/contract.toml of this contract: `gen` writes it\n";
    assert_eq!(show(&shop.base("main")), why);
}

#[test]
fn the_released_record_differs_from_the_bases_only_under_a_higher_version() {
    let shop = Shop::release_first();
    shop.init();
    shop.edit("spec/service.toml", "requests_per_minute = 100", "requests_per_minute = 120");
    fs::remove_file(shop.path("spec/released.toml")).expect("removed");
    assert_eq!(shop.release("1.0.0").code, 0);
    assert_says(&shop.base("main"), 1, "error[release-altered]");
    fs::remove_file(shop.path("spec/released.toml")).expect("removed");
    shop.edit("spec/service.toml", "version = \"1.0.0\"", "version = \"1.1.0\"");
    assert_eq!(shop.release("1.1.0").code, 0);
    assert_says(&shop.base("main"), 0, "");
}

#[test]
fn a_contract_is_compared_with_a_file_a_folder_or_a_revision() {
    let shop = Shop::release_first();
    shop.init();
    let old = Shop::release_first();
    old.generate();
    shop.break_it();
    let (folder, file) = (old.path("spec"), old.path("spec/generated/contract.toml"));
    for other in [folder.to_str(), file.to_str(), Some("main")].map(|other| other.expect("a path")) {
        assert_says(&shop.against(other), 1, "breaking[permission-raised]");
    }
    assert_says(&shop.against("nowhere"), 2, "no revision `nowhere`");
}

fn add_tool(shop: &Shop, file: &str, name: &str) {
    let stanza = format!(
        "\n[[tool]]\nname = \"{name}\"\ntitle = \"Count\"\npermission = \"look\"\neffect = \"read\"\nresult = \"Floor\"\n\
         summary = \"Counts what there is.\"\nuse_when = \"to count.\"\n\n[[tool.example]]\ntitle = \"All\"\narguments = {{}}\n"
    );
    shop.write(file, &(shop.read(file) + &stanza));
}

/// Changes a contract on two branches, and merges them with git alone. Returns the message of `gen
/// --check` after that.
fn merge(attributes: &str, [left, right]: [&str; 2]) -> String {
    let shop = Shop::release_first();
    shop.write(".gitattributes", attributes);
    shop.init();
    assert!(shop.git("checkout --quiet -b left"));
    add_tool(&shop, "spec/tools/printers.toml", left);
    shop.edit("spec/service.toml", "requests_per_minute = 100", "requests_per_minute = 120");
    shop.generate();
    shop.commit();
    assert!(shop.git("checkout --quiet -b right main"));
    add_tool(&shop, "spec/tools/trays.toml", right);
    shop.edit("spec/types.toml", "doc = \"Sheets of paper.\"", "doc = \"Sheets of white paper.\"");
    shop.generate();
    shop.commit();
    assert!(shop.git("merge --quiet --no-edit left"), "git merges without help");
    let to_do = generate(&shop.path("spec"), Mode::Check);
    shop.generate();
    let record = shop.read("spec/generated/contract.toml");
    let [left, right] = [left, right].map(|name| format!("tool.{name}.effect = \"read\""));
    for fact in [&left, &right, "limit.requests_per_minute = 120", "\"Sheets of white paper.\""] {
        assert!(record.contains(fact), "{fact}");
    }
    to_do.map_or_else(|error| error.to_string(), |done| done.to_string())
}

#[test]
fn two_branches_with_a_tool_and_a_changed_fact_each_merge_by_git_alone() {
    let nothing = "11 tools, 20 files: nothing changed";
    assert_eq!(merge("", ["count_printers", "weigh_trays"]), nothing);
    // Neighbours in the record need both lines of a conflict, which `.gitattributes` says.
    let attributes = include_str!("../../../../.gitattributes");
    let stale = "stale: spec/generated/contract.toml; run `gen` and commit the result";
    assert_eq!(merge(attributes, ["count_printers", "count_trays"]), stale);
}
