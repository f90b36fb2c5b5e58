//! The findings of the clients, their table, and the checks that a run must include.

use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The column of clients that are not pinned.
const AS_IT_COMES: &str = "as it comes";

#[derive(Clone, Default)]
pub(super) struct Findings {
    pub(super) row: usize,
    pub(super) pin: Option<String>,
    /// `Python 2.3.0`.
    pub(super) client: String,
    revision: Option<String>,
    unspoken: Option<String>,
    pub(super) checks: Vec<(String, Option<String>)>,
    left_out: Vec<(String, String)>,
}

impl Findings {
    pub(super) fn of(client: String) -> Self {
        Self { client, ..Self::default() }
    }

    /// Takes a line that is not JSON as a failure.
    pub(super) fn read(&mut self, line: &str) {
        let said: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |member: &str| said[member].as_str().map(str::to_owned);
        if let Some(client) = text("client") {
            self.client = client;
        } else if let Some(revision) = text("revision") {
            self.revision = Some(revision);
        } else if let Some(why) = text("unspoken") {
            self.unspoken = Some(why);
        } else if let (Some(name), Some(why)) = (text("left_out"), text("why")) {
            self.left_out.push((name, why));
        } else if let Some(check) = text("check") {
            self.checks.push((check, text("failure")));
        } else {
            self.checks.push(("output".to_owned(), Some(format!("unknown line: {line}"))));
        }
    }

    /// Prints in one piece, because clients run at once.
    pub(super) fn print(&self, took: Duration) {
        let checks = self.checks.iter().map(|(check, failure)| match failure {
            None => format!("ok      {check}\n"),
            Some(why) => format!("FAILED  {check}: {why}\n"),
        });
        let left_out = self.left_out.iter().map(|(name, why)| format!("-       {name}: {why}\n"));
        let unspoken = self.unspoken.iter().map(|why| format!("-       {why}\n"));
        println!(
            "\n> {}: {} s\n{}",
            self.title(),
            took.as_secs(),
            checks.chain(left_out).chain(unspoken).collect::<String>().trim_end()
        );
    }

    pub(super) fn complete(&mut self, wanted: &[String]) {
        let missing = wanted.iter().filter(|name| !self.checks.iter().any(|(check, _)| check == *name));
        let missing: Vec<_> = missing.map(|name| (name.clone(), Some("was not tried".to_owned()))).collect();
        if self.unspoken.is_none() {
            self.checks.extend(missing);
        }
    }

    fn title(&self) -> String {
        format!("{}, {}", self.client, self.pin.as_deref().unwrap_or(AS_IT_COMES))
    }

    fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.checks.iter().filter_map(|(check, failure)| Some((&**check, failure.as_deref()?)))
    }

    fn cell(&self) -> String {
        let failed: Vec<_> = self.failures().map(|(check, _)| check).collect();
        match (&failed[..], &self.unspoken, &self.revision) {
            ([check], ..) => format!("FAILED: {check}"),
            ([check, more @ ..], ..) => format!("FAILED: {check} and {} more", more.len()),
            ([], Some(_), _) => "-".to_owned(),
            ([], None, Some(revision)) if self.pin.is_none() => format!("ok, {revision}"),
            ([], None, _) => "ok".to_owned(),
        }
    }
}

pub(super) fn never_left_out(cells: &[Findings], named: &Value) -> Vec<String> {
    let met: BTreeSet<&str> = cells.iter().flat_map(|cell| cell.left_out.iter().map(|(name, _)| &**name)).collect();
    let entries = named.as_array().into_iter().flatten();
    let names = entries.flat_map(|entry| entry["names"].as_array().into_iter().flatten()).filter_map(Value::as_str);
    let idle = names.filter(|name| !met.contains(name));
    idle.map(|name| format!("`{name}` is listed as left out, but no suite left it out")).collect()
}

pub(super) fn show(cells: &[Findings], revisions: &[&str], failures: &mut Vec<String>) -> usize {
    println!("\n{}", table(cells, revisions));
    for cell in cells {
        if let Some(why) = &cell.unspoken {
            println!("{}: -, {why}", cell.title());
        }
        failures.extend(cell.failures().map(|(check, why)| format!("{}: {check}: {why}", cell.title())));
    }
    for failure in failures.iter() {
        println!("{failure}");
    }
    cells.iter().map(|cell| cell.checks.len() - cell.failures().count()).sum()
}

fn table(cells: &[Findings], revisions: &[&str]) -> String {
    let pins = || [None].into_iter().chain(revisions.iter().copied().map(Some));
    let heads = [""].into_iter().chain(pins().map(|pin| pin.unwrap_or(AS_IT_COMES)));
    let mut lines: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    for row in cells.chunk_by(|one, other| one.row == other.row) {
        let name = row.iter().map(|cell| cell.client.clone()).take(1);
        let found = pins().map(|pin| row.iter().find(|cell| cell.pin.as_deref() == pin));
        lines.push(name.chain(found.map(|cell| cell.map_or("-".to_owned(), Findings::cell))).collect());
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let padded = |line: &Vec<String>| {
        let cells: Vec<_> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(padded).collect()
}

#[cfg(test)]
mod tests {
    use super::{Findings, never_left_out, table};
    use serde_json::json;

    fn findings_of(row: usize, pin: Option<&str>, lines: &[&str]) -> Findings {
        let mut findings = Findings { row, pin: pin.map(str::to_owned), ..Findings::of("Client 1".to_owned()) };
        for line in lines {
            findings.read(line);
        }
        findings
    }

    #[test]
    fn a_cell_shows_ok_or_the_failure_or_that_the_client_does_not_speak_the_revision() {
        let ok = r#"{"check": "tools/list", "failure": null}"#;
        let mut short = findings_of(0, Some("2025-06-18"), &[ok]);
        short.complete(&["tools/list".to_owned(), "handshake".to_owned()]);
        let cells = [
            findings_of(0, None, &[r#"{"client": "Client 1.2"}"#, r#"{"revision": "2025-03-26"}"#, ok]),
            findings_of(0, Some("2025-03-26"), &[r#"{"unspoken": "it is young"}"#]),
            short,
            findings_of(1, None, &[r#"{"check": "a", "failure": "b"}"#, r#"{"check": "c", "failure": "d"}"#, ok]),
        ];
        let lines = [
            "            as it comes           2025-03-26  2025-06-18",
            "Client 1.2  ok, 2025-03-26        -           FAILED: handshake",
            "Client 1    FAILED: a and 1 more  -           -",
        ];
        assert_eq!(table(&cells, &["2025-03-26", "2025-06-18"]), lines.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn an_exception_that_no_suite_used_is_reported() {
        let cells = [findings_of(0, None, &[r#"{"left_out": "prompts-list", "why": "it has none"}"#])];
        let named = json!([{"why": "it has none", "names": ["prompts-list", "tools-list"]}]);
        let said = never_left_out(&cells, &named);
        assert_eq!(said, ["`tools-list` is listed as left out, but no suite left it out"]);
    }
}
