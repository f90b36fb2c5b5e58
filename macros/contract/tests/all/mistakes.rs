//! The reports on mistakes in a contract: each case spoils a copy of the print shop. The compiler
//! shows the same reports.

use super::Shop;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{Problem, Report, Rule, description, instructions_text, load, reference, type_schema};

const SERVICE: &str = "service.toml";
const ERRORS: &str = "errors.toml";
const TYPES: &str = "types.toml";
const RESERVED: &str = "reserved.toml";
const PRINTERS: &str = "tools/printers.toml";
const PRINTING: &str = "tools/printing.toml";
const TRAYS: &str = "tools/trays.toml";
const FLOOR: &str = "tools/floor.toml";
const JOBS: &str = "tools/jobs.toml";

const FILES: [&str; 9] = [SERVICE, ERRORS, TYPES, RESERVED, PRINTERS, PRINTING, TRAYS, FLOOR, JOBS];

const GARBAGE: &str = "this is [[[ no TOML\n";

/// Edits: file, text and replacement; file and text to append; or a file to remove.
type Edits = Vec<Vec<String>>;

#[derive(serde::Deserialize)]
struct MistakeCases {
    /// The reports from which `contract explain` takes its examples.
    examples: BTreeMap<String, Edits>,
    others: BTreeMap<String, Edits>,
}

/// A report of several forms, which is shown as authors see it.
const WHOLE: &str = "a_text_of_two_lines_or_with_markup_or_unseen_characters_is_no_plain_text";

/// `contract explain` shows the shortest report of each rule. Permissions protect callers from an
/// author who follows a help without thinking.
#[test]
fn every_mistake_is_reported_with_its_place_and_its_remedy() {
    let mut shortest: BTreeMap<&str, String> = BTreeMap::new();
    let MistakeCases { examples, others } = toml::from_str(include_str!("mistakes.toml")).expect("cases");
    let mut lines = String::new();
    for (behaviour, edits) in examples.iter().chain(&others) {
        let report = spoil(edits).expect_err(behaviour);
        let shown = report.to_string();
        let (_, count) = shown.rsplit_once('\n').expect("a problem and their number");
        lines.extend([format!("{behaviour}: {count}\n")].into_iter().chain(report.problems.iter().map(line)));
        if behaviour == WHOLE {
            insta::assert_snapshot!("a_report", shown);
        }
        for problem in report.problems.into_iter().filter(|_| examples.contains_key(behaviour)) {
            let help = problem.rendered.split("help:").nth(1).unwrap_or_default();
            assert!(!["imply", "implies"].iter().any(|word| help.contains(word)), "{}", problem.rendered);
            let known = shortest.entry(problem.rule.id()).or_insert_with(|| problem.rendered.clone());
            if problem.rendered.len() < known.len() {
                *known = problem.rendered;
            }
        }
    }
    insta::assert_snapshot!("each_mistake", lines);
    let unproven: Vec<_> = Rule::ALL.iter().filter(|rule| !shortest.contains_key(rule.id())).collect();
    assert!(unproven.is_empty(), "no case breaks {unproven:?}");
    let reports: String = shortest.iter().map(|(id, report)| format!("## {id}\n\n{report}\n\n")).collect();
    insta::with_settings!({ snapshot_path => "../../src/examples", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("mistakes", reports);
    });
}

fn line(problem: &Problem) -> String {
    let Problem { rule, file, line, column, span, message, help, rendered: _ } = problem;
    let help = help.iter().map(|help| format!("; {help}")).collect::<String>();
    format!("  {file}:{line}:{column}+{} {}: {message}{help}\n", span.len(), rule.id())
}

#[test]
fn a_file_that_is_no_toml_is_one_mistake() {
    for file in FILES {
        let report = spoil(&[&[file][..], &[file, GARBAGE]]).expect_err(file);
        let found: Vec<_> = report.problems.iter().map(|problem| (problem.rule, problem.file.as_str())).collect();
        assert_eq!(found, [(Rule::Syntax, &*format!("spec/{file}"))], "{report}");
    }
}

#[test]
fn everything_that_has_a_default_can_be_left_out() {
    let shop = Shop::new();
    let spec = shop.path("spec");
    for file in [ERRORS, RESERVED] {
        fs::remove_file(spec.join(file)).expect("a file of the copy");
    }
    let read = |file| fs::read_to_string(spec.join(file)).expect("a file of the copy");
    let service = read(SERVICE);
    let (service, permissions) = (service.split("[protocol]").next(), service.find("[permission.look]"));
    let service = service.unwrap_or_default().to_owned() + &read(SERVICE)[permissions.expect("permissions")..];
    fs::write(spec.join(SERVICE), service).expect("a file of the copy");
    for file in [PRINTERS, PRINTING, JOBS] {
        let kept: Vec<_> = read(file)
            .lines()
            .filter(|line| !line.starts_with("http = ") && !line.starts_with("errors = "))
            .map(str::to_owned)
            .collect();
        fs::write(spec.join(file), kept.join("\n")).expect("a file of the copy");
    }
    let contract = load(&spec).unwrap_or_else(|report| panic!("{report}"));
    insta::assert_snapshot!(describe(&contract));
}

#[test]
fn a_word_of_a_path_may_stand_where_another_twin_has_an_argument() {
    for twin in
        ["effect = \"read\"\nhttp = \"GET /v1/printers/first\"", "effect = \"read\"\nhttp = \"GET /v1/jobs/first\""]
    {
        assert_eq!(spoil(&[[FLOOR, "effect = \"read\"", twin]]).map_err(|report| report.to_string()), Ok(()));
    }
}

#[test]
fn tasks_on_two_resources_are_read_with_a_field_for_each() {
    let contract = Shop::new().contract();
    let read_tool = contract.read_tool().expect("a tool that reads tasks");
    let schema = type_schema(&read_tool.result);
    for (field, resource) in [("printer_id", "printer"), ("tray_id", "tray")] {
        let field = &schema["properties"][field];
        assert_eq!(field["type"], serde_json::json!(["string", "null"]));
        assert_eq!(field["description"], format!("The {resource} that it acts on; null if it acts on something else."));
    }
    assert!(reference(&contract, read_tool).contains("a last look at the target."));
}

#[test]
fn the_framework_writes_an_before_a_vowel() {
    let shop = Shop::new();
    for file in FILES {
        let path = shop.path("spec").join(file);
        let text = fs::read_to_string(&path).expect("a file of the copy");
        fs::write(path, text.replace("tray", "oven").replace("Tray", "Oven")).expect("a file of the copy");
    }
    fs::rename(shop.path("spec/tools/trays.toml"), shop.path("spec/tools/ovens.toml")).expect("renamed");
    let contract = shop.contract();
    let texts = describe(&contract);
    assert!(texts.contains("an oven whose capabilities.refill is true"), "{texts}");
}

fn describe(contract: &Contract) -> String {
    let tools = contract.tools().map(|tool| format!("\n## {}\n{}\n", tool.name, description(contract, tool)));
    instructions_text(contract) + "\n" + &tools.collect::<String>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lines anywhere in the contract are removed, duplicated or swapped.
    #[test]
    fn no_damage_to_the_files_is_met_with_a_panic_or_an_empty_report(
        damage in proptest::collection::vec((0..FILES.len(), 0..1000_usize, 0..1000_usize, 0..3_u8), 1..6),
    ) {
        let shop = Shop::new();
        for (file, line, other, kind) in damage {
            let path = shop.path("spec").join(FILES[file]);
            let text = fs::read_to_string(&path).expect("a file of the copy");
            let mut lines: Vec<&str> = text.lines().collect();
            if lines.is_empty() {
                continue;
            }
            let (line, other) = (line % lines.len(), other % lines.len());
            match kind {
                0 => drop(lines.remove(line)),
                1 => lines[line] = lines[other],
                _ => lines.insert(line, lines[other]),
            }
            fs::write(&path, lines.join("\n")).expect("a file of the copy");
        }
        if let Err(report) = load(&shop.path("spec")) {
            prop_assert!(!report.problems.is_empty());
            prop_assert!(report.problems.iter().all(|problem| problem.line > 0 && !problem.message.is_empty()));
        }
    }
}

fn spoil<T: AsRef<str>>(edits: &[impl AsRef<[T]>]) -> Result<(), Report> {
    let shop = Shop::new();
    for edit in edits {
        let parts: Vec<&str> = edit.as_ref().iter().map(AsRef::as_ref).collect();
        let file = format!("spec/{}", parts[0]);
        match parts[1..] {
            [] => fs::remove_file(shop.path(&file)).expect("a file of the copy"),
            [more] => shop.write(&file, &(fs::read_to_string(shop.path(&file)).unwrap_or_default() + more)),
            [old, new, ..] => shop.edit(&file, old, new),
        }
    }
    load(&shop.path("spec")).map(drop)
}
