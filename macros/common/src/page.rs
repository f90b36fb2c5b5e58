//! Pages of text that programs write: their line ends, and rows of tables in Markdown.

use std::io;
use std::path::Path;

/// Reads a text as it was written, if a version control has changed its line ends.
pub fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|text| text.replace("\r\n", "\n"))
}

/// Returns a row of a table. No text ends its cell or its line, not even in a code span.
#[must_use]
pub fn table_row<const N: usize>(cells: [String; N]) -> String {
    format!("| {} |\n", cells.map(|cell| escape_cell(&cell)).join(" | "))
}

fn escape_cell(text: &str) -> String {
    let escape = |part: &str| match part.strip_suffix('|') {
        Some(before) => {
            let slashes = before.len() - before.trim_end_matches('\\').len();
            format!("{before}{}|", "\\".repeat(slashes + 1))
        }
        None => part.to_owned(),
    };
    text.replace("\r\n", "\n").replace('\n', " ").split_inclusive('|').map(escape).collect()
}
