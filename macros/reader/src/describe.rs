//! The texts about a tool that an agent reads before a call.
//!
//! Clients truncate or refuse long descriptions, so a description only says what is needed to
//! choose the tool and to call it correctly. The schemas explain arguments, the message of a
//! failure its remedy, and [`reference()`](crate::reference()) everything.

use crate::model::{Contract, EffectSpec, ErrorCode, Field, Kind, StringSpec, ToolHints, ToolSpec, Type};
use crate::names::{fill_resource, noun};
use std::sync::Arc;

#[must_use]
pub fn description(contract: &Contract, tool: &ToolSpec) -> String {
    let text = |line: Vec<Part>| line.into_iter().map(|part| part.text).collect::<Vec<_>>().join(" ");
    lines(contract, tool).into_iter().map(text).collect::<Vec<_>>().join("\n")
}

pub(crate) struct Part {
    pub(crate) key: &'static str,
    pub(crate) text: String,
}

pub(crate) fn lines(contract: &Contract, tool: &ToolSpec) -> Vec<Vec<Part>> {
    let phrases = &contract.phrases;
    let part = |key, text: &str| Part { key, text: fill(contract, tool, text) };
    let requires = tool.target.as_ref().is_some_and(|target| target.requires.is_some());
    let needs = if requires { ("needs_capability", &phrases.needs_capability) } else { ("needs", &phrases.needs) };
    let (effect, once, task) = match tool.effect {
        EffectSpec::Read | EffectSpec::ReadTask => (("read", &*phrases.read), "", ""),
        EffectSpec::Act(ToolHints { idempotent: true, .. }) => (("act", &*phrases.act), "", ""),
        EffectSpec::Act(_) => (("act", &*phrases.act), &*phrases.act_once, ""),
        EffectSpec::Issue => (("issue", ""), "", ""),
        EffectSpec::Task(_) => (("task", ""), "", &*phrases.task),
    };
    let lines = vec![
        vec![
            part("summary", &tool.summary),
            part("use_when", &format!("Use it {}", tool.use_when)),
            part("not_when", &tool.not_when),
        ],
        vec![part(needs.0, needs.1), part(effect.0, effect.1), part("act_once", once)],
        vec![part("args", &arguments(tool))],
        vec![part("task", task), part("returns", &returns(tool))],
        vec![part("notes", &notes(tool))],
        vec![part("failures", &failures(contract, tool))],
    ];
    let full = |line: Vec<Part>| line.into_iter().filter(|part| !part.text.is_empty()).collect::<Vec<_>>();
    lines.into_iter().map(full).filter(|line| !line.is_empty()).collect()
}

fn fill(contract: &Contract, tool: &ToolSpec, text: &str) -> String {
    let target = tool.target.as_ref();
    let resource = match target {
        Some(target) => noun([target.resource.name.as_str()]),
        None => noun(contract.resources.iter().map(|resource| resource.name.as_str())),
    };
    let capability = target.and_then(|target| target.requires.as_deref()).unwrap_or_default();
    let text = text.replace("{permission}", &tool.permission.name).replace("{capability}", capability);
    fill_resource(&text, &resource)
}

fn arguments(tool: &ToolSpec) -> String {
    let of = |optional| {
        let names = tool.args.iter().filter(move |field| field.optional == optional).map(|field| field.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    match (of(false), of(true)) {
        (required, optional) if required.is_empty() && optional.is_empty() => "Arguments: none.".to_owned(),
        (required, optional) if optional.is_empty() => format!("Arguments: {required}."),
        (required, optional) if required.is_empty() => format!("Arguments, all optional: {optional}."),
        (required, optional) => format!("Arguments: {required}; optional: {optional}."),
    }
}

fn returns(tool: &ToolSpec) -> String {
    let Kind::Object(fields) = &tool.result.kind else { return tool.returns.clone() };
    if !tool.returns.is_empty() || tool.task().is_some() {
        return tool.returns.clone();
    }
    let is_body = |field: &&Field| tool.body.as_ref().is_some_and(|body| body.field == field.name);
    let names: Vec<_> = fields.iter().filter(|field| !is_body(field)).map(|field| field.name.as_str()).collect();
    let names = names.join(", ");
    match &tool.body {
        None => format!("Returns {names}."),
        Some(body) if names.is_empty() => format!("Returns {} as a block of its own.", body.field),
        Some(body) => format!("Returns {names}; then {} as a block of its own.", body.field),
    }
}

fn notes(tool: &ToolSpec) -> String {
    let ends = tool.task().filter(|task| !task.usually_ends.is_empty());
    let ends = ends.map(|task| format!("It usually ends as {}.", task.usually_ends.join(" or ")));
    tool.notes.iter().cloned().chain(ends).collect::<Vec<_>>().join(" ")
}

fn failures(contract: &Contract, tool: &ToolSpec) -> String {
    let codes = |retryable: bool| {
        let code = |error: &Arc<ErrorCode>| match error.brief.as_str() {
            "" => error.code.clone(),
            brief => format!("{} ({brief})", error.code),
        };
        let codes: Vec<_> = tool.errors.iter().filter(|error| error.retryable == retryable).map(code).collect();
        codes.join(", ")
    };
    contract.phrases.failures.replace("{final}", &codes(false)).replace("{retryable}", &codes(true))
}

/// Returns a phrase: `an integer from 1 to 200`.
#[must_use]
pub fn describe_values(ty: &Type) -> String {
    match ty {
        Type::String => "a string".to_owned(),
        Type::Integer => "an integer".to_owned(),
        Type::Boolean => "true or false".to_owned(),
        Type::Timestamp => "a time in RFC 3339".to_owned(),
        Type::Url => "an https URL".to_owned(),
        Type::Picture => "a picture".to_owned(),
        Type::List(inner) => format!("a list, each item {}", describe_values(inner)),
        Type::Named(named) => match &named.kind {
            Kind::String(rule) => describe_string(rule),
            Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
            Kind::Enum(members) => {
                let names: Vec<_> = members.iter().map(|member| format!("`{}`", member.name)).collect();
                format!("one of {}", names.join(", "))
            }
            Kind::Object(_) => "an object".to_owned(),
            Kind::Text(max) => format!("a text of at most {max} characters"),
            Kind::Number { min: None, max: None } => "a number".to_owned(),
            Kind::Number { min: Some(min), max: None } => format!("a number of at least {min}"),
            Kind::Number { min: None, max: Some(max) } => format!("a number of at most {max}"),
            Kind::Number { min: Some(min), max: Some(max) } => format!("a number from {min} to {max}"),
            Kind::Map { values, max_items } => {
                format!("an object of at most {max_items} members, each {}", describe_values(values))
            }
            Kind::Json(max) => format!("a JSON object of at most {max} bytes"),
        },
    }
}

fn describe_string(StringSpec { min, max, prefix, charset }: &StringSpec) -> String {
    let [min, max] = [min, max].map(|length| length.saturating_sub(prefix.len()));
    let length = if min == max { max.to_string() } else { format!("{min} to {max}") };
    let begins = if prefix.is_empty() { "a string of".to_owned() } else { format!("`{prefix}` and then") };
    format!("{begins} {length} {}", characters(charset))
}

fn quote(c: char) -> String {
    if c == '`' { "a backtick".to_owned() } else { format!("`{c}`") }
}

/// Returns a phrase: `lower-case letters, digits and hyphens`.
fn characters(charset: &[(char, char)]) -> String {
    const WHOLE: [(&[(char, char)], &str); 4] = [
        (&[], "characters"),
        (&[('!', '~')], "printable ASCII characters without spaces"),
        (&[(' ', '~')], "printable ASCII characters"),
        (&[('0', '9'), ('a', 'f')], "lower-case hexadecimal digits"),
    ];
    if let Some((_, words)) = WHOLE.iter().find(|(set, _)| *set == charset) {
        return (*words).to_owned();
    }
    let mut left = charset.to_vec();
    let mut names = Vec::new();
    for (pair, name) in [([('a', 'z'), ('A', 'Z')], "letters"), ([('[', '['), (']', ']')], "square brackets")] {
        if pair.iter().all(|range| left.contains(range)) {
            left.retain(|range| !pair.contains(range));
            names.push(name.to_owned());
        }
    }
    names.extend(left.into_iter().map(|(from, to)| match (from, to) {
        ('a', 'z') => "lower-case letters".to_owned(),
        ('A', 'Z') => "upper-case letters".to_owned(),
        ('0', '9') => "digits".to_owned(),
        ('-', '-') => "hyphens".to_owned(),
        ('.', '.') => "dots".to_owned(),
        ('_', '_') => "underscores".to_owned(),
        (':', ':') => "colons".to_owned(),
        (' ', ' ') => "spaces".to_owned(),
        (from, to) if from == to => quote(from),
        (from, to) => format!("characters from {} to {}", quote(from), quote(to)),
    }));
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}
