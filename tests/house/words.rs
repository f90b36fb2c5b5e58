//! The length of pages, and that a fact stands in one of them.

use super::links::prose;
use super::plain::pages;
use super::{assert_none, display, read};
use std::collections::{BTreeMap, BTreeSet};

/// The most words of each page. A page at its ceiling loses a passage before it gets another.
const CEILINGS: [(&str, usize); 21] = [
    ("ARCHITECTURE.md", 1_300),
    ("CONTRIBUTING.md", 790),
    ("README.md", 640),
    ("SECURITY.md", 430),
    ("docs/README.md", 230),
    ("docs/accounts.md", 680),
    ("docs/adapters.md", 850),
    ("docs/clients.md", 2_770),
    ("docs/cluster.md", 1_370),
    ("docs/console.md", 600),
    ("docs/editors.md", 190),
    ("docs/operate.md", 2_420),
    ("docs/own-phones.md", 1_330),
    ("docs/performance.md", 390),
    ("docs/service.md", 3_250),
    ("docs/signing.md", 910),
    ("docs/states.md", 1_450),
    ("docs/style.md", 430),
    ("macros/README.md", 80),
    ("macros/contract/README.md", 100),
    ("tests/services/print_shop/README.md", 230),
];

const MOST_IN_ALL: usize = 20_000;

#[test]
fn no_page_has_more_words_than_its_ceiling() {
    let found = texts().filter_map(|(page, text)| {
        let (words, ceiling) = (text.split_whitespace().count(), CEILINGS.iter().find(|(name, _)| *name == page));
        let fault = format!("{words} words, and its ceiling in {} is {ceiling:?}", file!());
        ceiling.is_none_or(|(_, most)| words > *most).then_some((page, fault))
    });
    assert_none(found);
    let words: usize = texts().map(|(_, text)| text.split_whitespace().count()).sum();
    assert!(words <= MOST_IN_ALL, "the pages have {words} words");
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
