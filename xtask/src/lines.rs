//! `cargo xtask lines`: the lines of Rust that are neither blank nor comment, by crate: code,
//! tests, benches and examples.
//!
//! It reads the files that git lists, in any checkout with any layout. Documentation counts as
//! comment. Start at [`run`].

use crate::python::must;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::Table;

/// Lines of each kind.
type Lines = [u64; 3];

/// The column heads of [`Lines`].
const KINDS: [&str; 3] = ["code", "tests", "benches and examples"];

const CODE: usize = 0;
const TESTS: usize = 1;
const SAMPLES: usize = 2;

/// Names of files that consist only of tests.
const TEST_FILES: [&str; 4] = ["tests.rs", "testing.rs", "suite.rs", "golden.rs"];

/// Prints the lines of a checkout.
pub(crate) fn run(folder: &Path) -> Result<()> {
    let print = |name: &str, [code, tests, samples]: [String; 3]| println!("{name:22}{code:>8}{tests:>8}{samples:>21}");
    print("crate", KINDS.map(str::to_owned));
    for (name, lines) in rows(&read(folder)?)? {
        print(&name, lines.map(group_digits));
    }
    Ok(())
}

/// Returns a table in Markdown that shows hundreds, so that few changes make it stale.
pub(crate) fn table(root: &Path) -> Result<String> {
    let mut table = format!("| crate | {} |\n|---|---:|---:|---:|\n", KINDS.join(" | "));
    for (name, lines) in rows(&read(root)?)? {
        let hundreds = lines.map(|lines| (lines + 50) / 100 * 100).map(|lines| match lines {
            0 => String::new(),
            lines => group_digits(lines),
        });
        let _ = writeln!(table, "| {name} | {} |", hundreds.join(" | "));
    }
    Ok(table)
}

/// Returns the paths below `root` of all files that git tracks or would add, except deleted ones.
pub(crate) fn list_files(root: &Path) -> Result<Vec<PathBuf>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let files = must(Command::new("git").args(arguments).current_dir(root))?;
    Ok(files.lines().map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

/// Rust sources and manifests, by path.
type Files = BTreeMap<PathBuf, String>;

fn read(root: &Path) -> Result<Files> {
    let is_read = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "rs") || path.ends_with("Cargo.toml");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
        Ok((path, text))
    };
    list_files(root)?.into_iter().filter(is_read).map(read).collect()
}

/// Returns the lines of each crate in the order of the folders, and their sum. Files outside of
/// crates count for their top folder.
fn rows(files: &Files) -> Result<Vec<(String, Lines)>> {
    let mut crates = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        let manifest: Table = text.parse().with_context(|| path.display().to_string())?;
        let name = manifest.get("package").and_then(|package| package.get("name")?.as_str().map(str::to_owned));
        crates.extend(path.parent().map(Path::to_owned).zip(name));
    }
    let mut rows = BTreeMap::<PathBuf, Lines>::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("Cargo.toml")) {
        let home = path.ancestors().skip(1).find(|folder| crates.contains_key(*folder));
        let home = home.unwrap_or_else(|| Path::new(path.iter().next().unwrap_or_default()));
        let row = rows.entry(home.to_owned()).or_default();
        let [code, tests] = code_lines(text);
        let kind = kind(path);
        row[kind] += code;
        row[if kind == CODE { TESTS } else { kind }] += tests;
    }
    let mut all = [0; KINDS.len()];
    let mut named = Vec::new();
    for (folder, lines) in rows {
        all.iter_mut().zip(lines).for_each(|(all, lines)| *all += lines);
        named.push((crates.remove(&folder).unwrap_or_else(|| format!("{}/", folder.display())), lines));
    }
    named.push(("all".to_owned(), all));
    Ok(named)
}

/// Returns the kind of a file's lines. Crates below `tests` and the code of the feature `testing`
/// serve only tests; `docs` has samples.
fn kind(path: &Path) -> usize {
    let below =
        |folders: &[&str]| path.parent().is_some_and(|at| at.iter().any(|at| folders.iter().any(|name| at == *name)));
    if below(&["tests", "testing", "suite"]) || TEST_FILES.iter().any(|name| path.ends_with(name)) {
        TESTS
    } else if below(&["benches", "examples", "docs"]) {
        SAMPLES
    } else {
        CODE
    }
}

/// Counts the lines of code outside of `#[cfg(test)] mod x { ... }`, and those inside. Such a
/// module ends at a brace with the indentation of its first line, as rustfmt writes it. Only
/// whole-line comments count as comments.
fn code_lines(text: &str) -> [u64; 2] {
    let is_code = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("//");
    let mut lines = text.lines().map(str::trim_end).filter(is_code).peekable();
    let (mut outside, mut inside) = (0, 0);
    while let Some(line) = lines.next() {
        let is_module = |next: &&str| next.trim_start().starts_with("mod ") && next.ends_with('{');
        if line.trim_start() == "#[cfg(test)]" && lines.peek().is_some_and(is_module) {
            let end = line.replace("#[cfg(test)]", "}");
            inside += 2 + lines.by_ref().take_while(|line| *line != end).count() as u64;
        } else {
            outside += 1;
        }
    }
    [outside, inside]
}

/// Writes `12345` as `12,345`.
fn group_digits(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", group_digits(number / 1_000), number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::{Files, code_lines, group_digits, rows};

    #[test]
    fn comments_and_blank_lines_do_not_count_and_modules_of_tests_count_apart() {
        let text = "//! A file.\n\n/// Says a.\nfn a() {\n    // It does.\n    b(); // Here.\n}\n";
        assert_eq!(code_lines(text), [3, 0]);
        let text =
            "#[cfg(test)]\nmod tests {\n    use a;\n\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nmod more;\n";
        assert_eq!(code_lines(text), [3, 6]);
    }

    #[test]
    fn lines_count_for_the_nearest_crate_and_by_where_they_stand() {
        let package = |name: &str| format!("[package]\nname = \"{name}\"\n");
        let two = "//! Two.\n\nfn a() {}\nfn b() {}\n".to_owned();
        let planted = [
            ("Cargo.toml", "[workspace]\n".to_owned()),
            ("server/Cargo.toml", package("product")),
            ("server/src/main.rs", "fn main() {}\n\n#[cfg(test)]\nmod tests {\n    // None yet.\n}\n".to_owned()),
            ("server/src/deep/tests.rs", two.clone()),
            ("server/src/deep/tests/cases.rs", two.clone()),
            ("server/benches/speed/main.rs", two.clone()),
            ("server/core/Cargo.toml", package("core")),
            ("server/core/src/lib.rs", two.clone()),
            ("server/core/src/golden.rs", two.clone()),
            ("server/core/examples/one.rs", two.clone()),
            ("tests/all.rs", two.clone()),
            ("tests/shop/Cargo.toml", package("shop")),
            ("tests/shop/src/main.rs", two.clone()),
            ("tests/shop/examples/one.rs", two),
        ];
        let planted: Files = planted.into_iter().map(|(path, text)| (path.into(), text)).collect();
        let rows = rows(&planted).expect("sound manifests");
        let rows: Vec<_> = rows.iter().map(|(name, lines)| (name.as_str(), *lines)).collect();
        let expected = [
            ("product", [1, 7, 2]),
            ("core", [2, 2, 2]),
            ("tests/", [0, 2, 0]),
            ("shop", [0, 4, 0]),
            ("all", [3, 15, 4]),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!([0, 999, 1_000, 1_234_056].map(group_digits), ["0", "999", "1,000", "1,234,056"]);
    }
}
