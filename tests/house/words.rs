//! The length of pages, and that a fact stands in one of them.

use super::links::prose;
use super::plain::pages;
use super::{assert_none, display, read};
use std::collections::{BTreeMap, BTreeSet};

/// The most words of each page. A page at its ceiling loses a passage before it gets another.
const CEILINGS: [(&str, usize); 20] = [
    ("ARCHITECTURE.md", 1_450),
    ("CONTRIBUTING.md", 850),
    ("README.md", 650),
    ("SECURITY.md", 450),
    ("docs/README.md", 250),
    ("docs/accounts.md", 650),
    ("docs/adapters.md", 900),
    ("docs/clients.md", 2_800),
    ("docs/cluster.md", 1_450),
    ("docs/console.md", 600),
    ("docs/editors.md", 200),
    ("docs/operate.md", 2_450),
    ("docs/own-phones.md", 1_300),
    ("docs/performance.md", 400),
    ("docs/service.md", 3_200),
    ("docs/signing.md", 900),
    ("docs/states.md", 1_550),
    ("docs/style.md", 550),
    ("macros/README.md", 100),
    ("macros/contract/README.md", 100),
];

#[test]
fn no_page_has_more_words_than_its_ceiling() {
    let found = texts().filter_map(|(page, text)| {
        let (words, ceiling) = (text.split_whitespace().count(), CEILINGS.iter().find(|(name, _)| *name == page));
        let fault = format!("{words} words, and its ceiling in {} is {ceiling:?}", file!());
        ceiling.is_none_or(|(_, most)| words > *most).then_some((page, fault))
    });
    assert_none(found);
}

#[test]
fn no_fact_stands_in_two_pages() {
    let mut first = BTreeMap::new();
    let runs = texts().flat_map(|(page, text)| runs(&text).into_iter().map(move |run| (page.clone(), run)));
    let again = runs.filter_map(|(page, run)| {
        let other = first.entry(run.clone()).or_insert_with(|| page.clone());
        (*other != page).then(|| (page, format!("link to {other}, which also says `{run}`")))
    });
    assert_none(again);
}

#[test]
fn a_number_or_a_rule_in_two_pages_is_found() {
    let shared = |one, other| runs(one).intersection(&runs(other)).count();
    assert_eq!(shared("* It waits for 75 s.", "| A poll | waits\nfor `75` s, too |"), 1);
    assert_eq!(shared("It waits for 75 s.", "```sh\nwaits for 75 s\n```\nIt waits for 76 s."), 0);
    assert_eq!(shared("The server stores a task before the answer.", "the server stores a task\nafter the end"), 0);
    assert_eq!(shared("The server stores a task before an answer.", "the server stores a task\nbefore an end"), 1);
}

/// Finds each run of four words with a number among them, and each run of seven.
fn runs(text: &str) -> BTreeSet<String> {
    let text = prose(text).collect::<Vec<_>>().join(" ").to_lowercase();
    let word = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let parts = text.split('|').map(|part| part.split_whitespace().map(word).filter(|word| !word.is_empty()).collect());
    let parts: Vec<Vec<String>> = parts.collect();
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    let short = parts.iter().flat_map(|words| words.windows(4)).filter(|run| run.iter().any(is_number));
    let long = parts.iter().flat_map(|words| words.windows(7));
    short.chain(long).map(|run| run.join(" ")).collect()
}

fn texts() -> impl Iterator<Item = (String, String)> {
    let pages = pages().into_iter().filter(|path| !path.ends_with("CHANGELOG.md"));
    pages.map(|path| (display(&path), read(&path)))
}
