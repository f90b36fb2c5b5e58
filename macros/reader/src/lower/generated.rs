//! The names that the generated code uses: a clash is a problem of the contract and not an error of
//! the compiler.

use super::require::at;
use crate::names::{is_pascal, pascal};
use crate::raw::{At, Files, Named};
use crate::report::{Report, Source};
use crate::rules::{FRAMEWORK_TYPES, Rule};
use crate::source::{ERRORS, SERVICE, TYPES};
use std::collections::HashMap;
use toolwarrant_common::COMMANDS;

const FIXED: &str = "Command Contract CATALOGUE PERMISSIONS H Self";

/// A type with such a name would hide that of the prelude.
const PRELUDE: &str = "AsMut AsRef AsyncFn AsyncFnMut AsyncFnOnce Box Clone Copy Debug Default DoubleEndedIterator Drop Eq Err \
    ExactSizeIterator Extend Fn FnMut FnOnce From FromIterator Future Hash Into IntoFuture IntoIterator Iterator None Ok \
    Option Ord PartialEq PartialOrd Result Send Sized Some String Sync ToOwned ToString TryFrom TryInto Unpin Vec";

const PARAMETERS: [&str; 2] = ["call", "args"];

const CARRIED: [&str; 5] = ["code", "message", "retryable", "retry_after_seconds", "what"];

pub(crate) fn check(files: &Files, report: &mut Report) {
    let Files { service, errors, types, reserved: _, defaults: _, tools, is_whole: _ } = files;
    let mut taken: HashMap<String, String> = HashMap::new();
    taken.extend(FIXED.split_whitespace().map(|name| (name.to_owned(), "part of every contract".to_owned())));
    taken
        .extend(FRAMEWORK_TYPES.split_whitespace().map(|name| (name.to_owned(), "a type of the framework".to_owned())));
    taken.extend(PRELUDE.split_whitespace().map(|name| (name.to_owned(), "a name of Rust's own".to_owned())));
    for (name, file) in tools {
        taken.insert(format!("{}Tools", pascal(name)), format!("the name of the trait of `tools/{name}.toml`"));
        for tool in &file.tool {
            let (tool, prefix) = (tool.name.as_str(), pascal(&tool.name));
            taken.insert(format!("{prefix}Args"), format!("the name of the arguments of `{tool}`"));
            taken.insert(format!("{prefix}Error"), format!("the name of the error of `{tool}`"));
        }
    }
    for name in types.r#type.keys() {
        if let Some(owner) = taken.get(name.as_str()) {
            let help = Some("choose another name for the type".to_owned());
            report.add(Rule::DuplicateName, at(TYPES, name.span()), format!("`{}` is {owner}", **name), help);
        }
    }
    let carried = errors.error.iter().flat_map(|(_, error)| error.fields.iter().flat_map(Named::keys));
    check_taken_words(SERVICE, service.resource.keys(), &PARAMETERS, "what every handler is given", report);
    check_taken_words(SERVICE, service.resource.keys(), &COMMANDS, "a command of every service", report);
    check_taken_words(ERRORS, carried, &CARRIED, "what every error carries", report);
}

/// Takes the names of entries that could not be read from the text.
pub(crate) fn rust_names(files: &Files, sources: &[Source]) -> Vec<String> {
    let Files { service, errors: _, types, reserved: _, defaults: _, tools, is_whole: _ } = files;
    let mut names: Vec<String> = ["CATALOGUE", "Command", "Contract"].map(str::to_owned).into();
    names.extend(FRAMEWORK_TYPES.split_whitespace().skip(3).map(str::to_owned));
    names.extend(types.r#type.names().map(str::to_owned));
    for name in service.resource.names().map(pascal) {
        names.extend([format!("{name}Capabilities"), format!("{name}Capability")]);
    }
    for (name, file) in tools {
        names.push(format!("{}Tools", pascal(name)));
        for tool in file.tool.iter().map(|tool| pascal(&tool.name)) {
            names.extend([format!("{tool}Args"), format!("{tool}Error")]);
        }
    }
    for line in sources.iter().flat_map(|source| source.text.lines()) {
        if let Some(name) = line.strip_prefix("name = \"").and_then(|rest| rest.split('"').next()) {
            let tool = pascal(name);
            names.extend([format!("{tool}Args"), format!("{tool}Error")]);
        } else if let Some(name) = line.strip_prefix("[type.").and_then(|rest| rest.split([']', '.']).next()) {
            names.push(name.to_owned());
        }
    }
    names.retain(|name| (is_pascal(name) && name != "Self") || name == "CATALOGUE");
    names.sort();
    names.dedup();
    names
}

fn check_taken_words<'a>(
    file: usize,
    names: impl Iterator<Item = &'a At<String>>,
    words: &[&str],
    owner: &str,
    report: &mut Report,
) {
    for name in names.filter(|name| words.contains(&name.as_str())) {
        let help = Some("choose another name".to_owned());
        report.add(Rule::DuplicateName, at(file, name.span()), format!("`{}` is {owner}", **name), help);
    }
}
