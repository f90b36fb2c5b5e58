//! Helpers that all parts of the lowering share.

use crate::names;
use crate::raw::{self, At, Files};
use crate::report::{Place, Report};
use crate::rules::Rule;
use crate::source::{FIRST_TOOLS, SERVICE};
use std::collections::HashMap;
use std::ops::Range;

/// Reports names that differ on the wire but would be the same Rust variant.
pub(super) fn require_distinct<'a>(file: usize, names: impl IntoIterator<Item = &'a At<String>>, report: &mut Report) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in names {
        let variant = names::pascal(name);
        match seen.get(&variant) {
            Some(first) if *first == name.as_str() => {
                report.add(Rule::DuplicateName, at(file, name.span()), format!("`{first}` stands here twice"), None);
            }
            Some(first) => {
                let message = format!("`{}` and `{first}` are both `{variant}` in Rust", **name);
                report.add(Rule::DuplicateName, at(file, name.span()), message, None);
            }
            None => drop(seen.insert(variant, name)),
        }
    }
}

pub(super) fn at(file: usize, span: Range<usize>) -> Place {
    Place { file, span }
}

pub(super) fn require_text(file: usize, text: &At<String>, report: &mut Report) {
    if text.trim().is_empty() {
        report.add(Rule::MissingText, at(file, text.span()), "this text is empty", None);
    }
}

pub(super) fn require_name(file: usize, name: &At<String>, report: &mut Report) {
    if !names::is_snake(name) || names::is_keyword(name) {
        let help = Some("names are lower_snake_case and no keywords of Rust".to_owned());
        report.add(Rule::Name, at(file, name.span()), format!("`{name}` is no usable name", name = **name), help);
    }
}

/// For tools, arguments, fields and values, which clients know under the name in the file.
pub(super) fn require_wire_name(file: usize, name: &At<String>, report: &mut Report) {
    if !names::is_wire(name) {
        let help =
            Some("clients take at most 64 of the characters `A-Za-z0-9_-`, of which `_` and `-` do not come first");
        let message = format!("`{name}` is no usable name", name = **name);
        report.add(Rule::Name, at(file, name.span()), message, help.map(str::to_owned));
    }
}

pub(super) fn tools_of(files: &Files) -> impl Iterator<Item = (usize, &At<raw::Tool>)> {
    (FIRST_TOOLS..).zip(&files.tools).flat_map(|(n, (_, file))| file.tool.iter().map(move |tool| (n, tool)))
}

pub(super) fn list_missing(keys: &[(&str, bool)]) -> String {
    let lacking = keys.iter().filter(|(_, lacks)| *lacks).map(|(key, _)| format!("`{key}`"));
    lacking.collect::<Vec<_>>().join(", ")
}

pub(super) fn require_positive(number: &At<u32>, report: &mut Report) -> u32 {
    if **number == 0 {
        report.add(Rule::Bounds, at(SERVICE, number.span()), "must be at least 1", None);
    }
    **number
}
