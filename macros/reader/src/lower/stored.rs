//! Checks that the contract can read the tasks of every recorded form, and lowers the record.

use super::require::{at, require_text, tools_of};
use crate::model::{RecordedTool, StoredForm, ToolSpec};
use crate::names;
use crate::raw::{self, At, EffectName, Files, Named};
use crate::report::{Place, Report};
use crate::rules::Rule;
use crate::source::STORED;
use crate::stored;

/// Lowers the record. Reports each form that the contract cannot read and that no reason excuses.
pub(super) fn lower<'a>(
    files: &'a Files,
    tools: impl Iterator<Item = &'a ToolSpec>,
    report: &mut Report,
) -> Vec<RecordedTool> {
    // A form seems readable if its tool is reported for another reason.
    let sound = report.count() == 0;
    tools_of(files).for_each(|(file, tool)| check_former_names(file, tool, report));
    let raw::StoredFile { stored, unreadable } = &files.stored;
    let tools: Vec<&ToolSpec> = tools.collect();
    for name in unreadable.keys().filter(|name| stored.get(name).is_none() && !stored.unread.may_be(name)) {
        report.unknown(Rule::UnreadableForm, at(STORED, name.span()), "tool", name, stored.names());
    }
    let mut record = Vec::new();
    for (name, forms) in stored.iter() {
        let owned = |(name, argument): (&At<String>, &_)| (name.to_string(), Clone::clone(argument));
        let forms: Vec<StoredForm> = forms.iter().map(|form| form.iter().map(owned).collect()).collect();
        let mut excuses: Vec<_> = unreadable.get(name).into_iter().flat_map(Named::iter).collect();
        for (number, form) in (1..).zip(&forms) {
            let excuse = excuses.iter().position(|(excused, _)| excused.parse() == Ok(number));
            let excuse = excuse.map(|at| excuses.swap_remove(at));
            match (fault(name, form, files, &tools), excuse) {
                (Some(fault), None) => fault.report(name, number, report),
                (Some(_), Some((_, reason))) => require_text(STORED, reason, report),
                (None, Some(needless)) => excuses.push(needless),
                (None, None) => {}
            }
        }
        for (number, _) in excuses.into_iter().filter(|_| sound) {
            let message = format!("there is no form `{}` of `{}` that cannot be read", **number, **name);
            let place = at(STORED, number.span());
            report.add(Rule::UnreadableForm, place, message, Some("remove this line".to_owned()));
        }
        let reasons = unreadable.get(name).into_iter().flat_map(Named::iter);
        let unreadable = reasons.map(|(number, reason)| (number.to_string(), reason.to_string())).collect();
        record.push(RecordedTool { tool: name.to_string(), forms, unreadable });
    }
    record
}

/// The reason why tasks of a form cannot be read, its place, and a way to keep them readable.
struct Fault {
    place: Place,
    reason: String,
    remedy: String,
}

impl Fault {
    fn report(self, tool: &str, number: usize, report: &mut Report) {
        let Self { place, reason, remedy } = self;
        let message = format!("{reason} (form {number} of `{tool}` in stored.toml)");
        let help = format!(
            "{remedy}; or accept that such tasks cannot be read: write `{number} = \"the reason\"` under \
             `[unreadable.{tool}]` in stored.toml"
        );
        report.add(Rule::UnreadableForm, place, message, Some(help));
    }
}

/// Compares a recorded form with the tool of that name. Returns `None` if tasks of the form can be
/// read, or if the tool has problems that are already reported.
fn fault(name: &At<String>, former: &StoredForm, files: &Files, tools: &[&ToolSpec]) -> Option<Fault> {
    let named = |(_, tool): &(usize, &At<raw::Tool>)| *tool.name == **name && *tool.effect == EffectName::Task;
    let Some((file, raw)) = tools_of(files).find(named) else {
        let reason = format!("`{}` makes no tasks any more, and some may be in flight", **name);
        let remedy = "keep the tool until they have ended".to_owned();
        let broken = files.tools.iter().any(|(_, file)| file.broken);
        return (!broken).then(|| Fault { place: at(STORED, name.span()), reason, remedy });
    };
    let tool = tools.iter().find(|tool| tool.name == **name)?;
    let present = stored::form(tool)?;
    let (mut gone, mut narrowed, mut kept) = (Vec::new(), Vec::new(), vec!["idempotency_key"]);
    for (name, argument) in former {
        match tool.args.iter().find(|field| field.name == *name || field.formerly.contains(name)) {
            Some(field) if !kept.contains(&&*field.name) => {
                let admits = present.get(&field.name).is_some_and(|present| present.admits(argument));
                kept.push(&field.name);
                narrowed.extend((!admits || (argument.optional && !field.optional)).then_some(&*field.name));
            }
            Some(_) | None => gone.push(&**name),
        }
    }
    let required = |name: &&str| tool.args.iter().any(|field| field.name == **name && !field.optional);
    let added: Vec<&str> =
        present.keys().map(|name| &**name).filter(|name| !kept.contains(name)).filter(required).collect();
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let remedy = match (&gone[..], &added[..]) {
        ([first, ..], _) => format!("add `formerly = \"{first}\"` to the argument that has taken its place"),
        ([], [first, ..]) => format!("make `{first}` optional, or say with `formerly` which name it had"),
        ([], []) => format!("admit every former value of {}", list(&narrowed)),
    };
    let reasons = [
        (&gone, "is no argument any more, and tasks in flight may have it"),
        (&added, "is required, and tasks in flight do not have it"),
        (&narrowed, "does not admit every value that tasks in flight may have"),
    ];
    let reasons = reasons.iter().filter(|(names, _)| !names.is_empty());
    let reason = reasons.map(|(names, what)| format!("{} {what}", list(names))).collect::<Vec<_>>().join("; ");
    let changed = added.first().or(narrowed.first());
    let written = raw.args.iter().flat_map(Named::keys).find(|name| changed == Some(&name.as_str()));
    let place = at(file, written.unwrap_or(&raw.name).span());
    (!reason.is_empty()).then_some(Fault { place, reason, remedy })
}

/// Checks the former names of a tool's arguments. No two arguments can have the same one.
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
            } else if !names::is_snake(name) {
                report.add(Rule::Name, place(), format!("`{name}` was no usable name"), None);
            }
            taken.push(name);
        }
    }
}
