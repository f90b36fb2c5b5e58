//! The files that are generated from a contract.

use super::Shop;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use toolwarrant_common::{json, table_row};
use toolwarrant_reader::{GenerateError, Mode, documents, generate};

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
fn the_line_ends_of_another_system_are_no_change_of_a_generated_file() {
    let shop = Shop::new();
    let run = |mode| generate(&shop.path("spec"), mode);
    run(Mode::Write).expect("written");
    let files: Vec<_> = documents(&shop.contract()).into_keys().collect();
    let rewrite = |change: &dyn Fn(&str) -> String| {
        for path in files.iter().map(|file| format!("spec/generated/{}", file.display())) {
            shop.write(&path, &change(&shop.read(&path)));
        }
    };
    for change in [|text: &str| text.replace('\n', "\r\n"), |text: &str| text.replacen("\r\n", "\n", 3)] {
        rewrite(&change);
        for mode in [Mode::Check, Mode::Write] {
            assert_eq!(run(mode).expect("no change").changed, [""; 0].map(Path::new));
        }
    }
    rewrite(&|text| text.replacen('\n', "\r\r\n", 1));
    assert!(matches!(run(Mode::Check), Err(GenerateError::Stale(stale)) if stale.len() == files.len()));
}

#[test]
fn no_text_ends_its_cell_of_a_generated_table() {
    let shop = Shop::new();
    for (file, old, new) in [
        ("errors.toml", "meaning = \"Something is stuck.\"", "meaning = \"The lock | shed\""),
        ("errors.toml", "remedy = \"Pull it out.\"", "remedy = 'Pull \\| it out.'"),
        ("types.toml", "charset = \"a-z0-9\"", "charset = \"a-z0-9|`\""),
        ("types.toml", "What is written on it.", "What is | written on it."),
        ("tools/printers.toml", "title = \"Look at a printer\"", "title = \"Look | see\""),
        ("tools/printers.toml", "doc = \"Any weight.\"", "doc = \"Any | weight.\""),
        ("service.toml", "meaning = \"Nobody knows.\"", "meaning = \"Nobody | knows.\""),
    ] {
        shop.edit(&format!("spec/{file}"), old, new);
    }
    let documents = documents(&shop.contract());
    let cells = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    for page in ["tools.md", "errors.md"].map(|page| &documents[Path::new(page)]) {
        let tables: Vec<_> = page.split("\n\n").filter(|part| part.starts_with('|')).collect();
        assert!(tables.iter().any(|table| table.contains("\\|")), "{page}");
        for table in tables {
            let mut rows = table.lines().map(cells);
            let head = rows.next();
            assert!(rows.all(|row| Some(row) == head), "{table}");
        }
    }
    let row = ["a\nb", "`x|y`", "\\|", "", "c\r\nd"].map(str::to_owned);
    assert_eq!(table_row(row), "| a b | `x\\|y` | \\\\\\| |  | c d |\n");
}

/// The linter of the guide takes the version that the schemas name.
#[test]
fn an_editor_and_the_compiler_read_one_version_of_toml() {
    let shop = Shop::new();
    for (file, old, new) in [
        (
            "types.toml",
            "{ type = \"PrinterId\", doc = \"Identifier.\" }",
            "{\n  type = \"PrinterId\",\n  doc = \"Identifier.\",\n}",
        ),
        ("service.toml", "doc = \"Print.\"", "doc = \"Print\\x2e\""),
        ("tools/printers.toml", "target = { resource = \"printer\",", "target = { # All.\n  resource = \"printer\","),
    ] {
        shop.edit(&format!("spec/{file}"), old, new);
    }
    let documents = documents(&shop.contract());
    for (path, schema) in documents.iter().filter(|(path, _)| path.starts_with("editor")) {
        let schema: Value = json::read(schema).expect("JSON");
        assert_eq!(schema["x-tombi-toml-version"], "v1.1.0", "{}", path.display());
    }
}

#[test]
fn an_editor_completes_the_names_of_the_contract() {
    let documents = documents(&Shop::new().contract());
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
