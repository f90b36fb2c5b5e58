//! JSON Schemas of arguments and results. No other module makes them.
//!
//! Schemas of arguments use only what every provider accepts: no references, no closed objects,
//! limits as plain keywords, and a union only with null. Schemas of results are closed, and a field
//! that may be null has a pair of types. Clients see only the form of a result, because the list of
//! tools has no room for more.

use crate::model::{Field, Kind, NamedType, StringSpec, ToolSpec, Type};
use serde_json::{Map, Value, json};
use toolwarrant_common::{MAX_INTEGER, UNTRUSTED_MAX_CHARS, URL_MAX_CHARS};

#[must_use]
pub fn input_schema(tool: &ToolSpec) -> Value {
    arguments(&tool.args)
}

fn arguments(fields: &[Field]) -> Value {
    let properties: Map<_, _> = fields.iter().map(|field| (field.name.clone(), argument(field))).collect();
    let required: Vec<_> = fields.iter().filter(|field| !field.optional).map(|field| &field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

#[must_use]
pub fn output_schema(tool: &ToolSpec) -> Value {
    schema_of_named(&tool.result, Detail::Form)
}

#[must_use]
pub fn schema_text(schema: &Value) -> String {
    reorder(schema).to_string()
}

fn reorder(schema: &Value) -> Value {
    const FIRST: [&str; 4] = ["description", "type", "format", "properties"];
    let Some(keywords) = schema.as_object() else { return schema.clone() };
    let first = FIRST.iter().filter_map(|name| keywords.get_key_value(*name));
    let rest = keywords.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    let below = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("properties", Value::Object(all)) => {
            (name.clone(), all.iter().map(|(name, schema)| (name.clone(), reorder(schema))).collect())
        }
        ("items", schema) => (name.clone(), reorder(schema)),
        _ => (name.clone(), value.clone()),
    };
    Value::Object(first.chain(rest).map(below).collect())
}

#[must_use]
pub fn type_schema(ty: &NamedType) -> Value {
    schema_of_named(ty, Detail::Whole)
}

#[must_use]
pub fn argument_schema(ty: &NamedType) -> Value {
    schema_of_named(ty, Detail::Argument)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Form,
    Whole,
    /// As [`Detail::Whole`], for arguments.
    Argument,
}

fn schema_of_named(ty: &NamedType, detail: Detail) -> Value {
    match (&ty.kind, detail) {
        (Kind::String(_) | Kind::Text(_), Detail::Form) => json!({"type": "string"}),
        (Kind::Integer { .. }, Detail::Form) => json!({"type": "integer"}),
        (Kind::Number { .. }, Detail::Form) => json!({"type": "number"}),
        (Kind::String(rule), _) => string(rule),
        (Kind::Text(max), _) => json!({"type": "string", "maxLength": max}),
        (Kind::Integer { min, max }, _) => json!({"type": "integer", "minimum": min, "maximum": max}),
        (Kind::Number { min, max }, _) => {
            let bounds = [("minimum", min), ("maximum", max)];
            let bounds = bounds.into_iter().filter_map(|(name, bound)| Some((name.to_owned(), json!((*bound)?))));
            std::iter::once(("type".to_owned(), json!("number"))).chain(bounds).collect::<Map<_, _>>().into()
        }
        (Kind::Enum(members), _) => {
            json!({"type": "string", "enum": members.iter().map(|member| &member.name).collect::<Vec<_>>()})
        }
        (Kind::Object(fields), Detail::Argument) => arguments(fields),
        (Kind::Map { .. } | Kind::Json(_), Detail::Argument) | (Kind::Json(_), _) => json!({"type": "object"}),
        (Kind::Map { values, .. }, _) => json!({"type": "object", "additionalProperties": value(values, detail)}),
        (Kind::Object(fields), _) => {
            let result = |field: &Field| (field.name.clone(), result(field, detail));
            let properties: Map<_, _> = fields.iter().map(result).collect();
            let required: Vec<_> = fields.iter().filter(|field| !field.optional).map(|field| &field.name).collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        }
    }
}

fn argument(field: &Field) -> Value {
    let mut schema = value(&field.ty, Detail::Argument);
    if let Some(max) = field.max_items {
        schema["maxItems"] = max.into();
    }
    if field.nullable {
        schema = json!({"anyOf": [schema, {"type": "null"}]});
    }
    schema["description"] = field.doc.clone().into();
    if let Some(default) = &field.default {
        schema["default"] = default.clone();
    }
    schema
}

fn result(field: &Field, detail: Detail) -> Value {
    let mut schema = value(&field.ty, detail);
    if detail == Detail::Whole && field.untrusted && matches!(field.ty.element(), Type::String) {
        let element = if matches!(field.ty, Type::List(_)) { &mut schema["items"] } else { &mut schema };
        element["maxLength"] = json!(UNTRUSTED_MAX_CHARS);
    }
    if field.nullable {
        schema["type"] = json!([schema["type"], "null"]);
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            values.push(Value::Null);
        }
    }
    if detail == Detail::Whole || field.told {
        schema["description"] = field.doc.clone().into();
    }
    schema
}

fn value(ty: &Type, detail: Detail) -> Value {
    match ty {
        Type::String => json!({"type": "string"}),
        Type::Integer if detail == Detail::Argument => {
            json!({"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER})
        }
        Type::Integer => json!({"type": "integer"}),
        Type::Boolean => json!({"type": "boolean"}),
        Type::Timestamp => json!({"type": "string", "format": "date-time"}),
        Type::Picture => json!({"type": "string", "contentEncoding": "base64"}),
        Type::Url if detail == Detail::Form => json!({"type": "string", "format": "uri"}),
        Type::Url => json!({"type": "string", "format": "uri", "pattern": URL_PATTERN, "maxLength": URL_MAX_CHARS}),
        Type::Named(ty) => schema_of_named(ty, detail),
        Type::List(inner) => json!({"type": "array", "items": value(inner, detail)}),
    }
}

/// A page of this server may be on a loopback address.
const URL_PATTERN: &str = "^(https://|http://(localhost|127\\.[0-9.]+|\\[::1\\])[:/])";

fn string(StringSpec { min, max, prefix, charset }: &StringSpec) -> Value {
    if charset.is_empty() {
        let mut schema = json!({"type": "string", "minLength": min, "maxLength": max});
        if !prefix.is_empty() {
            schema["pattern"] = format!("^{prefix}[\\s\\S]*$").into();
        }
        return schema;
    }
    let class: String = charset.iter().map(|range| class(*range)).collect();
    let [min, max] = [min, max].map(|length| length.saturating_sub(prefix.len()));
    let count = if min == max { max.to_string() } else { format!("{min},{max}") };
    json!({"type": "string", "pattern": format!("^{prefix}[{class}]{{{count}}}$")})
}

/// Writes a form that all dialects of regular expressions read alike.
fn class((from, to): (char, char)) -> String {
    let escape = |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\x{:02x}", u32::from(c)) };
    if from == to { escape(from) } else { format!("{}-{}", escape(from), escape(to)) }
}
