//! Tests the expansion of the print shop's contract against golden files that reviewers read, one
//! for each concern.

use std::path::Path;
use toolwarrant_codegen::concerns;
use toolwarrant_contract::format_code;
use toolwarrant_reader::model::Contract;

/// Largest number of lines of a golden file. Reviewers do not read longer ones.
const LONGEST: usize = 350;

/// Largest number of characters in a line. A longer line is a whole document as a literal, which is
/// reviewed in its own generated file.
const WIDEST: usize = 3_000;

#[test]
fn the_print_shops_contract_expands_to_this() {
    for (concern, code) in concerns(&print_shop()) {
        let text = format_code(code);
        assert!(text.lines().count() <= LONGEST, "{concern} has {} lines", text.lines().count());
        let text: String = text.lines().map(|line| cut(line) + "\n").collect();
        insta::with_settings!({ snapshot_path => "expansion", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(concern, text);
        });
    }
}

/// Cuts a line that is too long after its first words.
fn cut(line: &str) -> String {
    match line.chars().count() {
        all if all > WIDEST => line.chars().take(120).collect::<String>() + " ... cut here",
        _ => line.to_owned(),
    }
}

fn print_shop() -> Contract {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/print_shop/spec");
    let contract = toolwarrant_reader::load(&spec).expect("a contract without problems");
    Contract { source: "print_shop/spec".to_owned(), ..contract }
}
