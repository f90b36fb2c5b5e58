//! Checks that the defaults and examples in a contract fit their types.

use crate::describe::describe_values;
use crate::model::{Field, Kind, StringSpec, Type};
use serde_json::{Map, Value};
use toolwarrant_common::{JSON_LEVELS, MAX_INTEGER, json};

/// [`arguments`] for whole objects, or [`members`] for objects of which some members are shown.
type Members = fn(&[Field], &Map<String, Value>) -> Result<(), String>;

pub(crate) fn fits(ty: &Type, value: &Value, object: Members) -> Result<(), String> {
    let fits = match (ty, value) {
        (Type::String | Type::Timestamp | Type::Url | Type::Picture, Value::String(_))
        | (Type::Boolean, Value::Bool(_)) => true,
        (Type::Integer, Value::Number(number)) => {
            number.as_i64().is_some_and(|n| (-MAX_INTEGER..=MAX_INTEGER).contains(&n))
        }
        (Type::List(inner), Value::Array(values)) => {
            return values.iter().try_for_each(|value| fits(inner, value, object));
        }
        (Type::Named(named), value) => match (&named.kind, value) {
            (Kind::String(rule), Value::String(text)) => admits(rule, text),
            (Kind::Text(max), Value::String(text)) => text.chars().count() <= *max,
            (Kind::Integer { min, max }, Value::Number(number)) => {
                number.as_i64().is_some_and(|n| (*min..=*max).contains(&n))
            }
            (Kind::Number { min, max }, Value::Number(number)) => {
                number.as_f64().is_some_and(|n| min.is_none_or(|min| min <= n) && max.is_none_or(|max| n <= max))
            }
            (Kind::Enum(members), Value::String(text)) => members.iter().any(|member| member.name == *text),
            (Kind::Object(fields), Value::Object(shown)) => return object(fields, shown),
            (Kind::Map { values, max_items }, Value::Object(shown)) if shown.len() <= *max_items => {
                return shown.values().try_for_each(|value| fits(values, value, object));
            }
            (Kind::Json(max), json) => {
                let text = json.to_string();
                text.len() <= *max && json::is_plain_object(&text, JSON_LEVELS)
            }
            _ => false,
        },
        _ => false,
    };
    let limit = if value.is_number() && matches!(ty, Type::Integer) { " from -(2^53 - 1) to 2^53 - 1" } else { "" };
    if fits { Ok(()) } else { Err(format!("{value} is not {}{limit}", describe_values(ty))) }
}

pub(crate) fn arguments(fields: &[Field], given: &Map<String, Value>) -> Result<(), String> {
    let missing = fields.iter().filter(|field| !field.optional && !given.contains_key(&field.name));
    let missing = missing.map(|field| format!("`{}` is required", field.name));
    all(check(fields, given, arguments).err().into_iter().chain(missing))
}

pub(crate) fn members(fields: &[Field], given: &Map<String, Value>) -> Result<(), String> {
    check(fields, given, members)
}

fn check(fields: &[Field], given: &Map<String, Value>, object: Members) -> Result<(), String> {
    all(given.iter().filter_map(|(name, value)| match fields.iter().find(|field| field.name == *name) {
        None => Some(format!("there is no `{name}`")),
        Some(field) if field.nullable && value.is_null() => None,
        Some(field) => fits(&field.ty, value, object).err().map(|why| format!("`{name}`: {why}")),
    }))
}

fn all(mistakes: impl Iterator<Item = String>) -> Result<(), String> {
    let mistakes: Vec<_> = mistakes.collect();
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("; ")) }
}

fn admits(StringSpec { min, max, prefix, charset }: &StringSpec, text: &str) -> bool {
    let rest = text.strip_prefix(prefix.as_str());
    (*min..=*max).contains(&text.chars().count())
        && rest.is_some_and(|rest| {
            charset.is_empty() || rest.chars().all(|c| charset.iter().any(|(from, to)| (*from..=*to).contains(&c)))
        })
}
