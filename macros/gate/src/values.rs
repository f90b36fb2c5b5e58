//! The values that types admit, and the places that use a type.

use crate::pair::{Facts, names, text};
use crate::shape::Shape;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toolwarrant_common::json;
use toolwarrant_reader::pascal;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    In,
    Out,
}

pub(crate) type User = (Way, String);

/// Looks also through objects that contain the type.
pub(crate) fn users(facts: &Facts, name: &str) -> BTreeSet<User> {
    let mut found = BTreeSet::new();
    for (key, value) in facts {
        let way = match key.split('.').collect::<Vec<_>>()[..] {
            ["tool", _, "argument", _, "type"] => Way::In,
            ["tool", _, "result"] | ["error", _, "field", _, "type"] => Way::Out,
            _ => continue,
        };
        if value.as_str().is_some_and(|spelled| contains(facts, spelled, name, &mut Vec::new())) {
            found.insert((way, key.trim_end_matches(".type").to_owned()));
        }
    }
    found
}

pub(crate) fn resource_of<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    names(facts, "resource").into_iter().find(|resource| text(facts, &format!("resource.{resource}.id")) == name)
}

/// The record of a server is not checked as a contract is: a type can contain itself.
const DEEPEST: usize = 64;

const MOST_TYPES: usize = 500;

fn contains<'a>(facts: &'a Facts, spelled: &'a str, name: &str, seen: &mut Vec<&'a str>) -> bool {
    let element = spelled.trim_start_matches('[').trim_end_matches(']');
    if element == name || seen.contains(&element) || seen.len() > MOST_TYPES {
        // Beyond the limit, a type counts as used.
        return element == name || seen.len() > MOST_TYPES;
    }
    seen.push(element);
    let table = table(facts, element);
    let values = text(facts, &format!("{table}.values"));
    if !values.is_empty() && contains(facts, values, name, seen) {
        return true;
    }
    let fields = format!("{table}.field");
    names(facts, &fields).into_iter().any(|field| {
        let spelled = text(facts, &format!("{fields}.{field}.type"));
        contains(facts, spelled, name, seen)
    })
}

fn table(facts: &Facts, name: &str) -> String {
    let own = format!("type.{name}");
    if facts.contains_key(&format!("{own}.kind")) { own } else { format!("framework.{own}") }
}

/// Looks each name up in the facts next to it. The fields of objects must be the same ones.
pub(crate) fn admits(new: (&Facts, &str), old: (&Facts, &str)) -> bool {
    admits_within(DEEPEST, new, old)
}

/// Admits no type that lies deeper.
fn admits_within(depth: usize, (new_facts, new): (&Facts, &str), (old_facts, old): (&Facts, &str)) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    if let (Some(new), Some(old)) = (item(new), item(old)) {
        return admits_within(depth, (new_facts, new), (old_facts, old));
    }
    let (new_table, old_table) = (table(new_facts, new), table(old_facts, old));
    let kind = |facts, table: &str| text(facts, &format!("{table}.kind")) == "object";
    if !(kind(new_facts, &new_table) && kind(old_facts, &old_table)) {
        return match (shape(new_facts, new), shape(old_facts, old)) {
            (Some(new), Some(old)) => new.admits(&old),
            _ => new == old,
        };
    }
    let fields = |facts, table: &str| names(facts, &format!("{table}.field")).join(" ");
    let names_of = fields(new_facts, &new_table);
    names_of == fields(old_facts, &old_table)
        && names_of.split(' ').all(|field| {
            let [new_key, old_key] = [&new_table, &old_table].map(|table| format!("{table}.field.{field}"));
            field_admits(depth, (new_facts, &new_key), (old_facts, &old_key))
        })
}

fn field_admits(depth: usize, (new_facts, new): (&Facts, &str), (old_facts, old): (&Facts, &str)) -> bool {
    let is = |facts: &Facts, key: &str, flag: &str| facts.contains_key(&format!("{key}.{flag}"));
    let is_optional = |facts: &Facts, key: &str| is(facts, key, "optional");
    let is_same_default = new_facts.get(&format!("{new}.default")) == old_facts.get(&format!("{old}.default"));
    // Without a number, a list can have any size.
    let size =
        |facts: &Facts, key: &str| facts.get(&format!("{key}.max_items")).and_then(Value::as_u64).unwrap_or(u64::MAX);
    let cut = |facts: &Facts, key: &str| {
        let spelled = text(facts, &format!("{key}.type"));
        // Text of others is cut; the whole of it is admitted where it is not.
        let is_cut = text(facts, &format!("{key}.text")) == "untrusted" && spelled.trim_matches(['[', ']']) == "string";
        (spelled.to_owned(), is_cut)
    };
    let ((new_type, new_cut), (old_type, old_cut)) = (cut(new_facts, new), cut(old_facts, old));
    (is(new_facts, new, "nullable") || !is(old_facts, old, "nullable"))
        && (is_optional(new_facts, new) || !is_optional(old_facts, old))
        // Without the field, another default is another value.
        && (is_same_default || !is_optional(old_facts, old))
        && size(new_facts, new) >= size(old_facts, old)
        && (old_cut || !new_cut)
        && admits_within(depth, (new_facts, &new_type), (old_facts, &old_type))
}

fn item(spelled: &str) -> Option<&str> {
    spelled.strip_prefix('[')?.strip_suffix(']')
}

pub(crate) fn shape_of_argument(facts: &Facts, key: &str) -> Option<Shape> {
    let spelled = text(facts, &format!("{key}.type"));
    // An argument with a default is always stored.
    let is_optional = facts.contains_key(&format!("{key}.optional")) && !facts.contains_key(&format!("{key}.default"));
    let element = item(spelled).unwrap_or(spelled);
    // Values with parts are compared as a whole: another part is another value.
    let parts = || Shape { kind: spell_parts(facts, element, PARTS_DEEPEST), ..Shape::default() };
    let shape = shape(facts, element).filter(|shape| shape.kind != "map").unwrap_or_else(parts);
    let nullable = facts.contains_key(&format!("{key}.nullable"));
    Some(Shape { list: item(spelled).is_some(), optional: is_optional, nullable, ..shape })
}

const PARTS_DEEPEST: usize = 6;

/// Writes a type with the types in it, and without its texts.
fn spell_parts(facts: &Facts, spelled: &str, depth: usize) -> String {
    let (element, below) =
        (spelled.trim_matches(['[', ']']), format!("{}.", table(facts, spelled.trim_matches(['[', ']']))));
    let own = facts.range(below.clone()..).take_while(|(key, _)| key.starts_with(&below));
    let own = own.map(|(key, value)| (&key[below.len()..], value));
    let is_value = |key: &str| key.starts_with("value.");
    let is_doc = |key: &str| key == "doc" || key.ends_with(".doc");
    let own = own.filter(|(key, _)| is_value(key) || !is_doc(key));
    let own = own.map(|(key, value)| match value.as_str() {
        _ if is_value(key) => key.to_owned(),
        Some(part) if depth > 0 && (key.ends_with(".type") || key == "values") => {
            format!("{key}={}{}", spell_parts(facts, part, depth - 1), if item(part).is_some() { "[]" } else { "" })
        }
        _ => format!("{key}={value}"),
    });
    let own: Vec<_> = own.collect();
    if own.is_empty() { element.to_owned() } else { format!("({})", own.join(" ")) }
}

/// Returns true if this doc, of a type, an argument or a field, is of a value that can be a number,
/// also one in a string.
pub(crate) fn is_quantity(facts: &Facts, doc: &str) -> bool {
    let above = doc.trim_end_matches(".doc");
    let spelled = facts.get(&format!("{above}.type")).and_then(Value::as_str).or_else(|| above.strip_prefix("type."));
    let shape = spelled.and_then(|spelled| shape(facts, spelled.trim_matches(['[', ']'])));
    shape.is_some_and(|shape| matches!(&*shape.kind, "string" | "integer" | "number"))
}

/// Returns `None` for objects, and for types of a kind of their own.
fn shape(facts: &Facts, spelled: &str) -> Option<Shape> {
    let of = |shape: Value| json::convert(&shape).ok();
    let list = |values: Vec<&str>| of(json!({"type": "enum", "values": values}));
    let limit = |key: &str| facts.get(&format!("framework.{key}")).and_then(Value::as_i64).unwrap_or(i64::MAX);
    match spelled {
        "string" | "boolean" | "timestamp" => return of(json!({"type": spelled})),
        "integer" => return of(json!({"type": "integer", "min": -limit("integer_max"), "max": limit("integer_max")})),
        "Permission" => return list(names(facts, "permission")),
        "Probe" => return list(names(facts, "probe")),
        _ => {}
    }
    let flags = |resource: &&str| spelled == format!("{}Capability", pascal(resource));
    if let Some(resource) = names(facts, "resource").into_iter().find(flags) {
        return list(names(facts, &format!("resource.{resource}.capability")));
    }
    let table = table(facts, spelled);
    let get = |key: &str| facts.get(&format!("{table}.{key}")).cloned().unwrap_or_default();
    match text(facts, &format!("{table}.kind")) {
        "enum" => list(names(facts, &format!("{table}.value"))),
        "integer" => of(json!({"type": "integer", "min": get("min"), "max": get("max")})),
        "text" => of(json!({"type": "text", "max": get("max_length")})),
        "json" => of(json!({"type": "json", "max": get("max_bytes")})),
        "map" => {
            // A type of values that changes is judged by itself.
            of(json!({"type": "map", "max": get("max_items"), "prefix": get("values")}))
        }
        "number" => {
            let bound = |key: &str| text(facts, &format!("{table}.{key}")).parse::<f64>().ok();
            of(json!({"type": "number", "least": bound("min"), "most": bound("max")}))
        }
        "string" => {
            let prefix = text(facts, &format!("{table}.prefix"));
            // No value is shorter than its prefix.
            let least = get("min_length").as_u64().unwrap_or(0).max(prefix.len() as u64);
            let charset = if get("charset").is_null() { json!([]) } else { get("charset") };
            of(json!({
                "type": "string", "min": least, "max": get("max_length"), "prefix": prefix, "charset": charset
            }))
        }
        _ => None,
    }
}
