//! The files that are generated from a contract.

use super::Shop;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use toolwarrant_common::json;
use toolwarrant_reader::{GenerateError, Mode, documents, generate, load};

#[test]
fn a_value_that_leaves_an_enum_is_lost_until_it_is_reserved() {
    let shop = Shop::new();
    let run = |mode| generate(&shop.path("spec"), mode).map_err(|error| error.to_string());
    shop.generate();
    for file in ["spec/types.toml", "spec/tools/printing.toml"] {
        shop.write(file, &shop.read(file).replace("draft", "faint"));
    }
    for mode in [Mode::Check, Mode::Write] {
        let lost = run(mode).expect_err("a lost value");
        assert!(lost.starts_with("the contract has lost `draft`: add retired values to `values`"), "{lost}");
    }
    shop.edit("spec/reserved.toml", "tools = ", "values = [\"draft\"]\ntools = ");
    run(Mode::Write).expect("written");
}

#[test]
fn the_folder_is_generated_and_passes_the_check_until_a_file_in_it_differs() {
    let shop = Shop::new();
    let run = |mode| generate(&shop.path("spec"), mode);
    assert!(matches!(run(Mode::Check), Err(GenerateError::Stale(_))));
    let made = run(Mode::Write).expect("written");
    assert_eq!(made.changed.len(), made.files);
    shop.write("spec/generated/tools.md", "another");
    shop.write("spec/generated/tools/gone.json", "{}");
    let stale = run(Mode::Check).expect_err("two files differ").to_string();
    assert!(stale.starts_with("stale: spec/generated/tools.md, spec/generated/tools/gone.json;"), "{stale}");
    run(Mode::Write).expect("written");
    fs::create_dir(shop.path("spec/generated/notes")).expect("a folder");
    shop.write("spec/generated/notes/mine.md", "mine");
    let foreign = run(Mode::Write).expect_err("a foreign file").to_string();
    assert!(foreign.ends_with("move away notes/mine.md"), "{foreign}");
    fs::remove_file(shop.path("spec/generated/notes/mine.md")).expect("removed");
    let [generated, elsewhere] = ["spec/generated", "elsewhere"].map(|folder| shop.path(folder));
    fs::rename(&generated, &elsewhere).expect("renamed");
    symlink(&elsewhere, &generated).expect("a link");
    let linked = run(Mode::Write).expect_err("a link").to_string();
    assert!(linked.ends_with("remove the link"), "{linked}");
    fs::remove_file(&generated).expect("removed");
    fs::rename(&elsewhere, &generated).expect("renamed");
    assert!(!shop.path("spec/generated/tools/gone.json").exists());
    let same = run(Mode::Check).expect("as written");
    assert!(same.to_string().ends_with(" files: nothing changed"), "{same}");
}

#[test]
fn an_editor_completes_the_names_of_the_contract() {
    let documents = documents(&load(&Shop::new().path("spec")).expect("a contract"));
    for (file, key, names) in [
        ("tools", "Tool/properties/permission", json!(["look", "print", "service"])),
        ("tools", "Target/properties/requires", json!(["paper", "refill", "rollers"])),
        ("tools", "Task/properties/probe", json!(["page_counter"])),
        ("service", "Service/properties/tools/items", json!(["printers", "printing", "trays", "floor", "jobs"])),
    ] {
        let schema = &documents[&Path::new("editor").join(format!("{file}.schema.json"))];
        let schema: Value = json::read(schema).expect("JSON");
        assert_eq!(schema.pointer(&format!("/$defs/{key}/examples")), Some(&names), "{key}");
    }
}
