//! The forms of a report, and the explanation of rules.

use super::{Shop, compare, show};
use serde_json::Value;
use toolwarrant_common::json;
use toolwarrant_contract::GateCommand;

fn json(shop: &Shop, base: Option<&str>) -> Value {
    let schema = json::read(include_str!("../../report.schema.json")).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let answer = shop.run(&compare(base, None, true));
    let report: Value = json::read(&answer.text).expect("JSON");
    let faults: Vec<_> = validator.iter_errors(&report).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "{report:#}");
    assert_eq!(report["compared"], answer.code != 2);
    assert_eq!(report["sound"] == true, answer.code == 0);
    report
}

#[test]
fn a_report_as_json_fits_its_schema_whatever_it_says() {
    let shop = Shop::new();
    assert!(json(&shop, None)["reason"].as_str().expect("text").starts_with("there is no spec/released.toml"));
    assert_eq!(shop.release("1.0.0").code, 0);
    assert_eq!(json(&shop, None)["changes"], Value::Array(Vec::new()));
    shop.init();
    shop.break_it();
    let report = json(&shop, Some("main"));
    assert_eq!(report["versions"], serde_json::json!({"released": "1.0.0", "contract": "1.0.0", "required": "2.0.0"}));
    for changes in [&report["changes"], &report["branch"]["changes"]] {
        let change = &changes[0];
        assert_eq!(change["verdicts"]["application"], "breaking");
        assert_eq!((&change["old"], &change["new"]), (&"print".into(), &"service".into()));
        assert_eq!(change["place"]["file"], "spec/tools/printing.toml");
        assert!(change["former_place"]["line"].is_u64(), "{change}");
    }
    assert_eq!(report["refusals"][0]["id"], "version-too-low");
    assert_eq!(shop.accept(&["tool.print_page.permission"], "Paper.").code, 0);
    assert_eq!(json(&shop, None)["changes"][0]["accepted"], "Paper.");
    shop.write("spec/types.toml", "[[[");
    assert_eq!(json(&shop, None)["compared"], false);
}

#[test]
fn a_rule_is_explained_and_an_unknown_one_has_a_near_name() {
    let explain = |rule: &str| Shop::new().run(&GateCommand::Explain { rule: rule.to_owned() });
    insta::assert_snapshot!("rule_of_changes", show(&explain("permission-raised")));
    let probe = show(&explain("unknown-probe"));
    let head =
        "exit code 0\nunknown-probe: a rule of the compiler\n\nA probe is declared in service.toml.\n\nAn example:\n\n";
    assert!(probe.starts_with(&format!("{head}error[unknown-probe]: unknown probe `")), "{probe}");
    let unknown = explain("permission-rised");
    assert_eq!(show(&unknown), "exit code 1\nunknown rule `permission-rised`; did you mean `permission-raised`?\n");
}

#[test]
fn a_change_that_another_framework_has_caused_is_marked() {
    let shop = Shop::new();
    shop.generate();
    let in_force = "spec/generated/contract.toml";
    shop.edit(in_force, "limit.hold_seconds = 4", "limit.hold_seconds = 9");
    let record = shop.path(in_force).display().to_string();
    let mark = "no file of the contract";
    assert!(!shop.against(&record).text.contains(mark), "the framework is the same");
    shop.edit(in_force, "record.framework = \"0.1.0\"", "record.framework = \"0.0.9\"");
    let answer = shop.against(&record).text;
    assert_eq!(answer.contains(mark), answer.contains("limit.hold_seconds"), "{answer}");
}
