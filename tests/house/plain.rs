//! Prose in comments and pages: how a sentence begins, how long it is, and which turns it does not
//! have.

use super::{all_files, assert_none, place_lines, read, root};
use std::fs;
use std::path::{Path, PathBuf};

const WIDEST_LINE: usize = 100;

const LONGEST_SENTENCE: usize = 40;

/// These hide the subject of a sentence.
const OPENINGS: [&str; 3] = ["What", "Whether", "Who"];

const BANNED: [(&str, &str); 12] = [
    ("so many", "that many"),
    ("for who", "for the caller that"),
    ("of who", "of the caller that"),
    ("to who", "to the caller that"),
    ("whoever", "the one that"),
    ("anew", "again"),
    ("beside it", "next to it"),
    ("at leisure", "later"),
    ("in clear", "in plain text"),
    ("none of it", "does not ... it"),
    ("told apart", "distinguished"),
    ("is told", "is shown"),
];

#[test]
fn prose_is_plain() {
    // The history of changes stays as it was written.
    let pages = pages().into_iter().filter(|path| !path.ends_with("CHANGELOG.md"));
    let files = all_files(&["."]).into_iter().chain(pages);
    let paragraphs = files.flat_map(|path| paragraphs(&path, &read(&path)));
    assert_none(paragraphs.flat_map(|found| faults(&found).into_iter().map(move |fault| (found.place.clone(), fault))));
}

#[test]
fn prose_that_is_not_plain_is_found() {
    let long = vec!["w"; LONGEST_SENTENCE + 1].join(" ");
    let wide = format!("{} w", "w".repeat(WIDEST_LINE));
    let count = |name: &str, text: &str| {
        let found = paragraphs(&root().join(name), text);
        found.iter().map(|paragraph| faults(paragraph).len()).sum::<usize>()
    };
    for text in [
        "/// Reads a row.\n/// What is left is dropped.",
        "//! Whether it is open.",
        "// It reads so\n// many rows.",
        "let row = 1;\n    /// Reads it anew.\nlet row = 2;",
        "/// A row:\n///\n/// * Who reads it?",
        &format!("/// {long}"),
        &format!("    /// {wide}"),
    ] {
        assert_eq!(count("x.rs", text), 1, "{text}");
    }
    for text in ["Who reads it?", "# Title\n\nIt is read\nanew.", "* It reads\n  so many rows.", &*wide] {
        assert_eq!(count("x.md", text), 1, "{text}");
    }
    let sound = "```sh\nWhat is so many\n```\n\n| What | so many |\n|---|---|\n\nIt reads `so many` rows.";
    assert_eq!(count("x.md", sound), 0);
    assert_eq!(count("x.rs", "/// `What`:\n/// ```\n/// Who is so many\n/// ```\nlet what = \"Who\";"), 0);
}

struct Paragraph {
    place: String,
    lines: Vec<String>,
    text: String,
}

fn faults(paragraph: &Paragraph) -> Vec<String> {
    let is_wide = |line: &&String| line.chars().count() > WIDEST_LINE && line.trim().contains(' ');
    let wide = paragraph.lines.iter().find(is_wide).map(|line| format!("wider than {WIDEST_LINE} columns: {line}"));
    let prose = without_code(&paragraph.text);
    let has = |turn: &str| prose.to_lowercase().contains(&format!(" {turn} "));
    let turns = BANNED.iter().filter(|(turn, _)| has(turn));
    let turns = turns.map(|(turn, better)| format!("`{turn}`, write `{better}`: {prose}"));
    let sentences = prose.split_inclusive(" . ").flat_map(|sentence| {
        let mut words = sentence.split_whitespace().filter(|word| *word != ".");
        let opening = words.next().filter(|word| OPENINGS.contains(word));
        let length = words.count() + 1;
        let long = (length > LONGEST_SENTENCE).then(|| format!("a sentence of {length} words: {sentence}"));
        long.into_iter().chain(opening.map(|word| format!("a sentence begins with `{word}`: {sentence}")))
    });
    wide.into_iter().chain(turns).chain(sentences).collect()
}

/// Makes each span of code one word, and ends each sentence in ` . `.
fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "code" });
    let words = format!(" {} ", parts.collect::<String>().replace([',', ';', ':', '(', ')', '*'], " "));
    [". ", "? ", "! "].iter().fold(words, |words, end| words.replace(end, " . ")).replace("  ", " ")
}

/// Reads only comments that stand on a line of their own. Tables, headings and blocks of code are
/// not prose.
fn paragraphs(path: &Path, text: &str) -> Vec<Paragraph> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let (mut found, mut is_open, mut is_code) = (Vec::<Paragraph>::new(), false, false);
    for (place, line) in place_lines(path, text) {
        let comment = line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']));
        let Some(words) = (if is_rust { comment } else { Some(&*line) }).map(str::trim) else {
            (is_open, is_code) = (false, false);
            continue;
        };
        let is_fence = words.starts_with("```");
        is_code ^= is_fence;
        // Two spaces align a column.
        if is_code || is_fence || words.is_empty() || words.starts_with(['|', '#', '<']) || words.contains("  ") {
            is_open = false;
            continue;
        }
        let item = words.strip_prefix("* ").or_else(|| words.strip_prefix("- "));
        if !is_open || item.is_some() {
            found.push(Paragraph { place, lines: Vec::new(), text: String::new() });
        }
        is_open = true;
        if let Some(paragraph) = found.last_mut() {
            paragraph.text += &format!("{} ", item.unwrap_or(words));
            paragraph.lines.push(line);
        }
    }
    found
}

/// Leaves out the generated pages in `spec` and `tests`.
pub(super) fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "macros", "macros/contract", "tests/services/print_shop"].map(|path| root().join(path));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder of the repository"));
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}
