//! Checks the former names of arguments.

use super::require::{at, tools_of};
use crate::names;
use crate::raw::{self, EffectName, Files, Named};
use crate::report::Report;
use crate::rules::Rule;

pub(super) fn check(files: &Files, report: &mut Report) {
    tools_of(files).for_each(|(file, tool)| check_former_names(file, tool, report));
}

fn check_former_names(file: usize, tool: &raw::Tool, report: &mut Report) {
    let args = || tool.args.iter().flat_map(Named::iter);
    let mut taken: Vec<&str> = args().map(|(name, _)| name.as_str()).collect();
    for formerly in args().filter_map(|(_, field)| field.formerly.as_ref()) {
        let place = || at(file, formerly.span());
        if *tool.effect != EffectName::Task {
            report.add(Rule::Field, place(), "`formerly` is for arguments of tools that make tasks", None);
        }
        for name in formerly.names() {
            if taken.contains(&&**name) {
                report.add(Rule::DuplicateName, place(), format!("`{name}` is or was another argument"), None);
            } else if !names::is_wire(name) {
                report.add(Rule::Name, place(), format!("`{name}` was no usable name"), None);
            }
            taken.push(name);
        }
    }
}
