//! The answers that refuse a request. Codes with the same status are one response, a union by
//! `code`.

use super::Writing;
use super::schemas::{ALLOW, Components, REQUEST_ID, RETRY_AFTER, headers, reference};
use crate::model::{Contract, ErrorCode, Http, ToolSpec};
use crate::type_schema;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const OF_EVERY_REQUEST: [&str; 7] = [
    "unauthenticated",
    "method_not_allowed",
    "request_timeout",
    "body_too_large",
    "overloaded",
    "handed_over",
    "internal",
];

const OF_A_CALL: [&str; 3] = ["invalid_argument", "rate_limited", "no_route"];

const OF_A_BODY: &str = "unsupported_media_type";

impl Writing<'_> {
    pub(super) fn failures(&mut self, tool: &ToolSpec) -> Map<String, Value> {
        let body = tool.http.as_ref().is_some_and(Http::has_body).then_some(OF_A_BODY);
        let roles = OF_EVERY_REQUEST.into_iter().chain(OF_A_CALL).chain(body);
        let (contract, components) = (self.contract, &mut self.components);
        by_status(
            contract,
            components,
            tool.errors.iter().map(|error| &**error).chain(errors_in_roles(contract, roles)),
        )
    }

    pub(super) fn failures_of_the_document(&mut self) -> Map<String, Value> {
        let (contract, components) = (self.contract, &mut self.components);
        by_status(contract, components, errors_in_roles(contract, OF_EVERY_REQUEST))
    }
}

fn errors_in_roles(
    contract: &Contract,
    roles: impl IntoIterator<Item = &'static str>,
) -> impl Iterator<Item = &ErrorCode> {
    roles.into_iter().filter_map(|role| contract.role(role).map(|error| &**error))
}

fn by_status<'a>(
    contract: &'a Contract,
    components: &mut Components<'_>,
    errors: impl Iterator<Item = &'a ErrorCode>,
) -> Map<String, Value> {
    let mut statuses: BTreeMap<u16, Vec<&ErrorCode>> = BTreeMap::new();
    for error in errors {
        let codes = statuses.entry(error.http).or_default();
        if !codes.iter().any(|known| known.code == error.code) {
            codes.push(error);
        }
    }
    // All tools use one order, so that the same codes are the same response.
    let place = |error: &ErrorCode| contract.errors.iter().position(|known| known.code == error.code);
    let responses = statuses.into_iter().map(|(status, mut codes)| {
        codes.sort_by_key(|error| place(error));
        let name = codes.iter().map(|error| error.code.as_str()).collect::<Vec<_>>().join("_or_");
        (status.to_string(), components.response(&name, |components| response(components, &codes)))
    });
    responses.collect()
}

fn response(components: &mut Components<'_>, codes: &[&ErrorCode]) -> Value {
    let schemas: Vec<_> = codes.iter().map(|error| (&error.code, failure(components, error))).collect();
    let text = match codes {
        [only] => meaning(only).to_owned(),
        several => several.iter().map(|error| format!("- `{}`: {}\n", error.code, meaning(error))).collect(),
    };
    let mut carried = headers(&[REQUEST_ID]);
    let retryable = |error: &&ErrorCode| error.retryable;
    if codes.iter().all(retryable) {
        carried[RETRY_AFTER] = reference("headers", RETRY_AFTER);
    } else if codes.iter().any(retryable) {
        let text = "Seconds to wait before a repeat, where `retryable` is true.";
        carried[RETRY_AFTER] = json!({"description": text, "schema": {"type": "integer", "minimum": 0}});
    }
    if codes.iter().any(|error| plays(error, "method_not_allowed")) {
        carried[ALLOW] = reference("headers", ALLOW);
    }
    let schema = match schemas.as_slice() {
        [(_, only)] => only.clone(),
        several => {
            let mapping: Map<_, _> =
                several.iter().map(|(code, schema)| ((*code).clone(), schema["$ref"].clone())).collect();
            let schemas: Vec<_> = several.iter().map(|(_, schema)| schema).collect();
            json!({"oneOf": schemas, "discriminator": {"propertyName": "code", "mapping": mapping}})
        }
    };
    json!({
        "description": text.trim_end(),
        "headers": carried,
        "content": {"application/json": {"schema": schema}},
    })
}

/// Names the schema by the code: types are UpperCamelCase, so none has that name.
fn failure(components: &mut Components<'_>, error: &ErrorCode) -> Value {
    let ErrorCode { code, retryable, fields, .. } = error;
    let mut schema = json!({
        "type": "object",
        "description": meaning(error),
        "properties": {
            "code": {"type": "string", "const": code},
            "message": {"type": "string", "description": "What was wrong, and what to do next."},
            "retryable": {"type": "boolean", "const": retryable},
        },
        "required": ["code", "message", "retryable"],
        "additionalProperties": false,
    });
    if *retryable {
        let text = "Seconds to wait before a repeat.";
        schema["properties"]["retry_after_seconds"] = json!({"type": "integer", "minimum": 0, "description": text});
    }
    let own = components.object(fields, type_schema);
    for (name, property) in own["properties"].as_object().into_iter().flatten() {
        schema["properties"][name] = property.clone();
    }
    schema["required"] =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    components.schema(&format!("error_{code}"), schema)
}

fn meaning(error: &ErrorCode) -> &str {
    if plays(error, "method_not_allowed") { "The path takes other methods." } else { &error.meaning }
}

fn plays(error: &ErrorCode, role: &str) -> bool {
    error.role.as_deref() == Some(role)
}
