//! `tests/RULES.md`: the test of each rule, from `tests/rules.toml` and the existing test
//! functions.
//!
//! A rule without a test must have a reason. People must check that a test asserts its rule, by
//! reading it.

use crate::files::list_files;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use toolwarrant_common::table_row;

const RULES: &str = "tests/rules.toml";

type Tests = BTreeMap<String, Vec<PathBuf>>;

pub(crate) fn page(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join(RULES)).with_context(|| format!("cannot read {RULES}"))?;
    let sections: Table = text.parse().context(RULES)?;
    let tests = tests(root)?;
    let (mut body, mut problems) = (String::new(), Vec::new());
    let (mut count, mut named, mut open) = (0, BTreeSet::new(), 0);
    for (section, rules) in &sections {
        let _ = write!(body, "\n## {section}\n\n| id | rule | test |\n|---|---|---|\n");
        for (id, rule) in rules.as_table().into_iter().flatten() {
            let said = |member| rule.get(member).and_then(Value::as_str);
            count += 1;
            let cell = match (said("test"), said("open")) {
                (Some(test), None) => {
                    named.insert(test);
                    link(test, &tests)
                }
                (None, Some(why)) => {
                    open += 1;
                    Ok(format!("**open**: {why}"))
                }
                _ => Err("needs a `test`, or a reason why it is `open`".to_owned()),
            };
            match (said("rule"), cell) {
                (Some(rule), Ok(cell)) => {
                    body += &table_row([format!("{section}.{id}"), rule.to_owned(), cell]);
                }
                (None, _) => problems.push(format!("{section}.{id} has no `rule`")),
                (_, Err(problem)) => problems.push(format!("{section}.{id} {problem}")),
            }
        }
    }
    if !problems.is_empty() {
        bail!("{RULES}:\n{}", problems.join("\n"));
    }
    Ok(format!(
        "# Rules\n\nGenerated from `rules.toml` by `cargo xtask gen`: {count} rules, {} of them held by {} tests, {open} open.\n{body}",
        count - open,
        named.len()
    ))
}

fn link(test: &str, tests: &Tests) -> Result<String, String> {
    let files = tests.get(test).map_or(&[][..], Vec::as_slice);
    let [file] = files else { return Err(format!("names the test `{test}`, which exists {} times", files.len())) };
    let file = file.strip_prefix("tests").map_or_else(|_| Path::new("..").join(file), Path::to_owned);
    Ok(format!("[`{test}`]({})", file.display()))
}

fn tests(root: &Path) -> Result<Tests> {
    let mut tests = Tests::new();
    for file in list_files(root)? {
        if (file.starts_with("tests") || file.starts_with("server"))
            && file.extension().is_some_and(|extension| extension == "rs")
        {
            let text =
                fs::read_to_string(root.join(&file)).with_context(|| format!("cannot read {}", file.display()))?;
            for name in functions(&text) {
                tests.entry(name.to_owned()).or_default().push(file.clone());
            }
        }
    }
    Ok(tests)
}

fn functions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line.starts_with("#[ignore") {
            is_test = false;
        } else if let Some((name, _)) =
            line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ").and_then(|line| line.split_once('('))
        {
            found.extend(is_test.then_some(name));
            is_test = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn only_functions_that_are_run_as_tests_count() {
        let text = "#[test]\nfn a() {}\nfn b() {}\n// #[test]\n// fn c() {}\n\
            #[tokio::test(start_paused = true)]\nasync fn d() {\n    fn e() {}\n}\n#[test]\n#[ignore = \"slow\"]\nfn f() {}\n";
        assert_eq!(functions(text), ["a", "d"]);
    }
}
