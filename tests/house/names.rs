//! Names: a type name has one meaning, and the name of a function says what it does or returns.

use super::{all_files, assert_none, display, place_lines, read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// For fields, and for functions that return a `bool`. None ends in `ed`.
const PARTICIPLES: &str = "told shown kept seen sent made held known meant done gone left found given taken written \
                           spoken drawn lost chosen said heard understood hidden forgotten laid misled built begun broken";

/// Also a method that a trait of hyper names.
const VERBS: &str = "need feed seed embed exceed proceed shed deed connected";

#[test]
fn a_public_type_name_has_one_meaning_and_a_private_one_has_one_in_its_crate() {
    let mut places = BTreeMap::<(String, String), Vec<String>>::new();
    for path in sources() {
        for (place, line) in place_lines(&path, &read(&path)) {
            if let Some((is_public, name)) = type_name(&line) {
                let scope = if is_public { String::new() } else { format!("in {}", crate_of(&path)) };
                places.entry((scope, name.to_owned())).or_default().push(place);
            }
        }
    }
    let several = places.into_iter().filter(|(_, places)| places.len() > 1);
    assert_none(several.map(|((_, name), places)| (name, format!("is declared at {}", places.join(" and ")))));
}

/// The names that crates share. Fewer is better.
const SHARED_NAMES_MAX: usize = 35;

#[test]
fn few_names_of_a_crate_stand_in_another_one() {
    let mut crates = BTreeMap::<String, BTreeSet<String>>::new();
    for path in sources() {
        for (_, line) in place_lines(&path, &read(&path)) {
            let words = line.trim_start().replacen("pub(crate) ", "pub ", 1);
            if let Some((true, name)) = type_name(&words) {
                crates.entry(name.to_owned()).or_default().insert(crate_of(&path));
            }
        }
    }
    crates.retain(|_, crates| crates.len() > 1);
    assert!(crates.len() <= SHARED_NAMES_MAX, "{} names: {crates:#?}", crates.len());
}

#[test]
fn a_function_is_named_for_what_it_does_or_returns() {
    let functions = sources().flat_map(|path| {
        let lines = place_lines(&path, &read(&path));
        let heads = lines
            .windows(3)
            .map(|window| (window[2].clone(), window[0].1.contains("test]") || window[1].1.contains("test]")));
        heads.collect::<Vec<_>>()
    });
    assert_none(functions.filter(|((_, line), is_test)| !is_test && is_participle(line)).map(|(head, _)| head));
}

#[test]
fn names_that_are_wrong_are_found() {
    for line in
        ["fn told() -> String {", "    pub(crate) async fn shown_name(&self)", "fn refused<T>(id: T) -> Failure {"]
    {
        assert!(is_participle(line), "{line}");
    }
    for line in
        ["fn describe(told: &str) {", "fn is_told() {", "fn held(&self) -> bool {", "fn seed() {", "let told = f();"]
    {
        assert!(!is_participle(line), "{line}");
    }
    assert_eq!(type_name("pub struct Row<R> {"), Some((true, "Row")));
    assert_eq!(type_name("    pub(super) enum Row {"), Some((false, "Row")));
    assert_eq!(type_name("type Row = ();"), Some((false, "Row")));
    assert_eq!(type_name("    type Error = ();"), None);
}

/// Skips associated types, whose names their traits give.
fn type_name(line: &str) -> Option<(bool, &str)> {
    let words = line.trim_start();
    let (is_public, words) = match words.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (false, rest.split_once(") ")?.1),
        Some(rest) => (true, rest.trim_start()),
        None => (false, words),
    };
    let (kind, rest) = words.split_once(' ')?;
    let is_declared = ["struct", "enum", "trait", "union"].contains(&kind) || kind == "type" && !line.starts_with(' ');
    let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    (is_declared && name.starts_with(|c: char| c.is_ascii_uppercase())).then_some((is_public, name))
}

/// Exempts functions that return a `bool` or a moment.
fn is_participle(line: &str) -> bool {
    let Some((before, after)) = line.split_once("fn ") else { return false };
    let is_head =
        before.split_whitespace().all(|word| word.starts_with("pub") || ["const", "async", "unsafe"].contains(&word));
    let name = after.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let first = name.split('_').next().unwrap_or_default();
    let is_one = |list: &str| list.split(' ').any(|word| word == first);
    // The cases of a suite are named by sentences, as tests are.
    let is_sentence = name.split('_').count() > 4;
    let is_exempt = after.contains("-> bool") || name.ends_with("_at") || is_sentence || is_one(VERBS);
    is_head && !is_exempt && (first.len() > 3 && first.ends_with("ed") || is_one(PARTICIPLES))
}

/// Leaves out the generator, whose types are text, and the programs in `ui`, each of which is
/// compiled alone.
fn sources() -> impl Iterator<Item = PathBuf> {
    let others = ["macros/codegen", "tests/contract/ui"];
    all_files(&["."]).into_iter().filter(move |path| !others.iter().any(|other| display(path).starts_with(other)))
}

fn crate_of(path: &Path) -> String {
    let package = path.ancestors().find(|folder| folder.join("Cargo.toml").exists());
    display(package.unwrap_or(root()))
}
