//! The stanza of a new tool.

use super::tool::{EFFECTS, NewTool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use toolwarrant_common::suggestion;
use toolwarrant_reader::model::{Contract, Kind, NamedType};
use toolwarrant_reader::pascal;

struct Target {
    resource: String,
    arg: String,
    doc: String,
    id: String,
    example: Value,
}

pub(super) fn draft(contract: &Contract, spec: &Path, tool: &NewTool) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut drafts = BTreeMap::new();
    let file = demand("file", &tool.file)?;
    if file.is_empty() || !file.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
        return Err(format!("`{file}` is no name of a file of tools/: write it in lower_snake_case, without ending"));
    }
    let path = spec.join(format!("tools/{file}.toml"));
    let before = match contract.domains.iter().any(|domain| domain.name == file) {
        true => read(&path)?,
        false => {
            let service = spec.join("service.toml");
            drafts.insert(service.clone(), list(&read(&service)?, file)?);
            "#:schema ../generated/editor/tools.schema.json\n".to_owned()
        }
    };
    let target = target(contract, tool)?;
    let (stanza, result) = (stanza(tool, target.as_ref())?, result(tool));
    drafts.insert(path, join(&before, &stanza));
    if let Some(name) = result.filter(|name| !contract.types.iter().any(|known| known.name == *name)) {
        let field = match &target {
            Some(Target { arg, id, .. }) => format!("fields.{arg} = {{ type = \"{id}\", doc = \"Identifier.\" }}"),
            None => "fields.count = { type = \"integer\", doc = \"Number of them.\" }".to_owned(),
        };
        let (path, doc) = (spec.join("types.toml"), quote(&format!("The result of `{}`.", tool.name)));
        let text = format!("[type.{name}]\nkind = \"object\"\ndoc = {doc}\n{field}\n");
        let text = join(&read(&path)?, &text);
        drafts.insert(path, text);
    }
    Ok(drafts)
}

fn stanza(tool: &NewTool, target: Option<&Target>) -> Result<String, String> {
    let effect = demand("effect", &tool.effect)?;
    if !EFFECTS.contains(&effect) {
        return Err(format!("unknown effect `{effect}`: {}", suggestion(effect, EFFECTS)));
    }
    let (is_task, is_act) = (effect == "task", effect == "act");
    let flag = |value: bool| is_act.then(|| value.to_string());
    for (key, is_given, fits) in [
        ("result", answer(&tool.result).is_some(), !is_task),
        ("probe", answer(&tool.probe).is_some(), is_task),
        ("idempotent", tool.idempotent, is_task || is_act),
        ("capability", answer(&tool.capability).is_some(), target.is_some()),
    ] {
        if is_given && !fits {
            return Err(format!("a tool with this effect and target has no `{key}`: leave it out"));
        }
    }
    let title = answer(&tool.title).map_or_else(|| words(&tool.name), str::to_owned);
    let target_key = target.map(|Target { resource, arg, .. }| {
        let requires = answer(&tool.capability).map(|name| format!(", requires = {}", quote(name)));
        format!("{{ resource = {}, arg = {}{} }}", quote(resource), quote(arg), requires.unwrap_or_default())
    });
    let text = |value: &Option<String>| answer(value).map(quote);
    let mut out = "[[tool]]\n".to_owned();
    for (key, value) in [
        ("name", Some(quote(&tool.name))),
        ("title", Some(quote(&title))),
        ("permission", Some(quote(demand("permission", &tool.permission)?))),
        ("target", target_key),
        ("effect", Some(quote(effect))),
        ("destructive", flag(true)),
        ("idempotent", flag(tool.idempotent)),
        ("open_world", flag(true)),
        ("http", text(&tool.http)),
        ("result", result(tool).map(|name| quote(&name))),
        ("summary", Some(quote(demand("summary", &tool.summary)?))),
        ("use_when", Some(quote(demand("use_when", &tool.use_when)?))),
        ("not_when", text(&tool.not_when)),
    ] {
        let _ = value.map(|value| writeln!(out, "{key} = {value}"));
    }
    if is_task {
        let probe = text(&tool.probe).map(|name| format!("probe = {name}\n")).unwrap_or_default();
        let terms = format!("idempotent = {}\nsettle_seconds = 5\ndeadline_seconds = 60\n", tool.idempotent);
        let _ = write!(out, "\n[tool.task]\n{probe}{terms}");
    }
    let mut arguments = String::from("{}");
    if let Some(Target { arg, doc, id, example, .. }) = target {
        let _ = write!(out, "\n[tool.args]\n{arg} = {{ type = {}, doc = {} }}\n", quote(id), quote(doc));
        arguments = format!("{{ {arg} = {example} }}");
    }
    let _ = write!(out, "\n[[tool.example]]\ntitle = {}\narguments = {arguments}\n", quote(&title));
    Ok(out)
}

/// Takes the argument of another tool on that resource.
fn target(contract: &Contract, tool: &NewTool) -> Result<Option<Target>, String> {
    let Some(name) = answer(&tool.resource) else { return Ok(None) };
    let names = contract.resources.iter().map(|resource| resource.name.as_str());
    let Some(resource) = contract.resources.iter().find(|resource| resource.name == name) else {
        return Err(format!("unknown resource `{name}`: {}", suggestion(name, names)));
    };
    let others = contract.tools().filter_map(|other| Some((other, other.target.as_ref()?)));
    let others = others.filter(|(_, target)| target.resource.name == name);
    // Its doc may name tools, which callers with another permission cannot call.
    let is_open = |permission: &str| answer(&tool.permission) == Some(permission);
    let like = others.min_by_key(|(other, _)| !is_open(&other.permission.name));
    let arg = like.map_or_else(|| format!("{name}_id"), |(_, target)| target.arg.clone());
    let like = like.map(|(other, _)| other);
    let doc = like.filter(|other| is_open(&other.permission.name));
    let doc = doc.and_then(|other| other.args.iter().find(|field| field.name == arg)).map(|field| field.doc.clone());
    let example = like.and_then(|other| other.examples.first()?.arguments.get(&arg).cloned());
    Ok(Some(Target {
        resource: name.to_owned(),
        doc: doc.unwrap_or_else(|| format!("The {}.", name.replace('_', " "))),
        id: resource.id.name.clone(),
        example: example.unwrap_or_else(|| sample(&resource.id)),
        arg,
    }))
}

fn sample(id: &NamedType) -> Value {
    let Kind::String(string) = &id.kind else { return json!(1) };
    let first = string.charset.first().map_or('x', |(first, _)| *first);
    let rest = string.min.max(1).saturating_sub(string.prefix.chars().count());
    json!(string.prefix.clone() + &first.to_string().repeat(rest))
}

fn result(tool: &NewTool) -> Option<String> {
    let named = answer(&tool.result).map_or_else(|| pascal(&tool.name) + "Result", str::to_owned);
    (answer(&tool.effect) != Some("task")).then_some(named)
}

fn list(service: &str, file: &str) -> Result<String, String> {
    let parts = service.split_once("\ntools").and_then(|(before, rest)| {
        let (inside, after) = rest.split_once(']')?;
        Some((before, inside.trim_end().trim_end_matches(','), after))
    });
    let (before, inside, after) = parts.ok_or("service.toml has no list `tools`")?;
    Ok(format!("{before}\ntools{inside}, \"{file}\"]{after}"))
}

fn demand<'a>(key: &str, value: &'a Option<String>) -> Result<&'a str, String> {
    answer(value).ok_or_else(|| format!("`{key}` is missing"))
}

fn answer(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|text| !text.is_empty())
}

/// Writes JSON: all its escapes are escapes of TOML.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn words(name: &str) -> String {
    let text = name.replace('_', " ");
    text.get(..1).map_or_else(String::new, str::to_uppercase) + text.get(1..).unwrap_or_default()
}

pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn join(before: &str, stanza: &str) -> String {
    format!("{}\n\n{stanza}", before.trim_end())
}
