//! The OpenAPI 3.1 document of `/v1`, for people and for client generators.
//!
//! It describes the behaviour of the server and does not control it. Limits of values come from
//! [`json_schema`](crate::json_schema). Start at [`openapi`].

mod failures;
mod schemas;

use crate::model::{Contract, EffectSpec, Field, Http, ToolSpec};
use crate::{description, input_schema, sentences};
use schemas::{Components, ETAG, LOCATION, REQUEST_ID, headers, reference};
use serde_json::{Map, Value, json};

/// No tool can have this path.
pub const OPENAPI_PATH: &str = "/v1/openapi.json";

pub const CONTRACT_PATH: &str = "/v1/contract.json";

const SIGNED_BY: [(&str, &str, &str); 4] = [
    ("key", "X-Api-Key", "The id of the key."),
    (
        "timestamp",
        "X-Timestamp",
        "The time of signing: Unix seconds, 10 digits, at most 300 s away from the server's clock.",
    ),
    ("nonce", "X-Nonce", "16 to 64 of `A-Za-z0-9_-`. A key never sends the same one twice."),
    (
        "signature",
        "X-Signature",
        "HMAC-SHA256 of the canonical request with the secret as the key: 64 lower-case hexadecimal digits.",
    ),
];

const RULES: &str = "\
## Signing

A GET of this document or of `/v1/contract.json` needs no signature. Every other request carries `X-Api-Key`, `X-Timestamp`, `X-Nonce` and `X-Signature`, and none \
carries `Authorization`. What is signed is the canonical request, nine lines that are joined by one line feed each, with none at the end:

1. `CP1-HMAC-SHA256`
2. the value of `X-Api-Key`
3. the value of `X-Timestamp`
4. the value of `X-Nonce`
5. the method
6. the path from `/v1` on, as it is sent: neither decoded nor normalised
7. the query as it is sent, without `?`; empty if there is none
8. the value of `Idempotency-Key`; empty if there is none
9. the SHA-256 of the body as it is sent, as 64 lower-case hexadecimal digits; that of nothing if there is none

A nonce is taken once: whoever repeats a request signs it anew, with another nonce and the same `Idempotency-Key`. A 401 shows the \
canonical request as the server built it.

## Arguments

Those of the path and the query are percent-encoded; `+` is a plus sign. Where a word and an argument could stand in the same place of a \
path, the word wins. GET and DELETE take the other arguments from the query, each at most once, and have no body. PUT and POST take them \
as members of a JSON object, and have no query; the body may be left out or null where no member is required. A member that no tool \
has is left out; one that another tool has, or that looks like an argument of this one, is refused. An empty text counts as left out where an argument is optional, and so does null in a body. The header `Idempotency-Key` and the argument \
`idempotency_key` are one and the same: a request that has both has them equal.

## Answers

A failure is `{code, message, retryable}` with the fields of its code. Do what `message` says. A mere repeat helps only where `retryable` \
is true, and not before the seconds of `Retry-After`. Every answer carries `X-Request-Id`: that of the request, if it has one of 1 to 64 \
letters, digits, `.`, `_` and `-`.";

/// Names `/` as the only server: an operator who serves it below another path writes that path
/// there.
#[must_use]
pub fn openapi(contract: &Contract) -> Value {
    let service = &contract.service;
    let mut writing = Writing { contract, components: Components::new(contract) };
    let mut paths = Map::new();
    for domain in &contract.domains {
        for tool in &domain.tools {
            let Some(Http { method, path }) = &tool.http else { continue };
            let item = paths.entry(path.clone()).or_insert_with(|| json!({}));
            item[method.to_lowercase()] = writing.operation(&domain.name, tool);
        }
    }
    paths.insert(
        OPENAPI_PATH.to_owned(),
        json!({"get": writing.public("This document", &["openapi", "info", "paths"])}),
    );
    paths.insert(CONTRACT_PATH.to_owned(), json!({"get": writing.contract()}));
    let schemes = SIGNED_BY.map(|(scheme, name, text)| {
        (scheme.to_owned(), json!({"type": "apiKey", "in": "header", "name": name, "description": text}))
    });
    let tags = contract.domains.iter().filter(|domain| domain.tools.iter().any(|tool| tool.http.is_some()));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": service.title,
            "version": service.version,
            "description": format!("{}\n\n{}", doc_without_toolsets(contract), rules(contract)),
        },
        "servers": [{"url": "/"}],
        "security": [signature_security()],
        "tags": tags.map(|domain| json!({"name": domain.name})).collect::<Vec<_>>(),
        "paths": paths,
        "components": writing.components.finish(schemes.into_iter().collect()),
    })
}

/// A server without a toolset must not name its tools.
fn doc_without_toolsets(contract: &Contract) -> String {
    let names_one = |text: &str| sentences::tools_in(contract, text).any(|tool| tool.toolset.is_some());
    let told: Vec<_> = sentences::split(&contract.service.doc).into_iter().filter(|text| !names_one(text)).collect();
    told.concat().trim_end().to_owned()
}

fn rules(contract: &Contract) -> String {
    let patches = contract.tools().filter_map(|tool| tool.http.as_ref()).any(|http| http.method == "PATCH");
    if patches { RULES.replace("PUT and POST take", "PATCH, PUT and POST take") } else { RULES.to_owned() }
}

fn signature_security() -> Value {
    SIGNED_BY.iter().map(|(scheme, ..)| ((*scheme).to_owned(), json!([]))).collect::<Map<_, _>>().into()
}

struct Writing<'a> {
    contract: &'a Contract,
    components: Components<'a>,
}

impl Writing<'_> {
    fn operation(&mut self, tag: &str, tool: &ToolSpec) -> Value {
        let ToolSpec { name, title, permission, .. } = tool;
        let mut operation = json!({
            "operationId": name,
            "tags": [tag],
            "summary": title,
            "description": description(self.contract, tool).replace('\n', "\n\n"),
            "x-permission": permission.name,
        });
        let arguments = ArgumentPlaces::of(tool);
        let parameters = self.parameters(tool, &arguments);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if !arguments.body.is_empty() {
            operation["requestBody"] = self.body(tool, &arguments.body);
        }
        let mut responses = self.successes(tool);
        responses.extend(self.failures(tool));
        operation["responses"] = responses.into();
        operation
    }

    fn parameters(&mut self, tool: &ToolSpec, arguments: &ArgumentPlaces<'_>) -> Vec<Value> {
        let ArgumentPlaces { path, query, body: _ } = arguments;
        let places = path.iter().map(|field| ("path", field)).chain(query.iter().map(|field| ("query", field)));
        let mut parameters: Vec<Value> = Vec::new();
        for (place, field) in places {
            let Field { name, doc, .. } = field;
            let schema = self.argument(tool, field);
            let mut parameter = json!({"name": name, "in": place, "description": doc, "schema": schema});
            if !field.optional {
                parameter["required"] = true.into();
            }
            let examples = examples(tool, |arguments| arguments.get(name).cloned());
            if !examples.is_empty() {
                parameter["examples"] = examples.into();
            }
            parameters.push(parameter);
        }
        if let Some(key) = tool.args.iter().find(|field| field.name == IDEMPOTENCY_KEY) {
            let schema = self.argument(tool, key);
            let text = format!("The argument `{IDEMPOTENCY_KEY}`. {}", key.doc);
            parameters.push(json!({"name": "Idempotency-Key", "in": "header", "description": text, "schema": schema}));
        }
        parameters
    }

    fn body(&mut self, tool: &ToolSpec, fields: &[&Field]) -> Value {
        let mut properties = Map::new();
        for field in fields {
            let mut schema = self.argument(tool, field);
            schema["description"] = field.doc.clone().into();
            properties.insert(field.name.clone(), schema);
        }
        let required: Vec<_> = fields.iter().filter(|field| !field.optional).map(|field| &field.name).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema["additionalProperties"] = false.into();
        let examples = examples(tool, |arguments| {
            let members = arguments.iter().filter(|(name, _)| fields.iter().any(|field| field.name == **name));
            let members: Map<_, _> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
            (!members.is_empty()).then(|| members.into())
        });
        let mut content = json!({"schema": schema});
        if !examples.is_empty() {
            content["examples"] = examples.into();
        }
        json!({"required": !required.is_empty(), "content": {"application/json": content}})
    }

    /// Puts keywords of the argument next to a reference.
    fn argument(&mut self, tool: &ToolSpec, field: &Field) -> Value {
        let mut schema = input_schema(tool)["properties"][&field.name].take();
        if field.nullable {
            let typed = self.components.reference_types(&field.ty, schema["anyOf"][0].take());
            schema = json!({"anyOf": [typed, {"type": "null"}]});
        } else {
            schema = self.components.reference_types(&field.ty, schema);
        }
        if let Some(keywords) = schema.as_object_mut() {
            keywords.shift_remove("description");
            keywords.extend(field.default.clone().map(|default| ("default".to_owned(), default)));
            keywords.extend(field.secret.then(|| ("format".to_owned(), "password".into())));
        }
        schema
    }

    fn successes(&mut self, tool: &ToolSpec) -> Map<String, Value> {
        let schema = self.components.reference(&tool.result);
        let content = json!({"application/json": {"schema": schema}});
        let answers = match &tool.effect {
            EffectSpec::Read | EffectSpec::ReadTask | EffectSpec::Act(_) => vec![("200", tool.result.doc.as_str())],
            EffectSpec::Issue => vec![("201", tool.result.doc.as_str())],
            EffectSpec::Task(_) => {
                vec![("200", "A task in flight before; nothing was sent again."), ("202", "A task was made.")]
            }
        };
        let read = self.contract.read_tool().filter(|read| tool.task().is_some() && read.http.is_some());
        let answers = answers.into_iter().map(|(status, text)| {
            let carried: &[&str] = if status == "202" { &[REQUEST_ID, LOCATION] } else { &[REQUEST_ID] };
            let mut answer = json!({"description": text, "headers": headers(carried), "content": content});
            if let Some(read) = read {
                answer["links"] = json!({&read.name: reference("links", &read.name)});
            }
            (status.to_owned(), answer)
        });
        answers.collect()
    }

    fn contract(&mut self) -> Value {
        let members = ["format", "service", "version", "framework", "digest", "since", "changes", "facts"];
        let mut operation = self.public("The facts of the contract, and the changes since its last release", &members);
        let text = "The entity tag of the document that the client has.";
        let held = json!({"name": "If-None-Match", "in": "header", "description": text, "schema": {"type": "string"}});
        operation["parameters"] = json!([held]);
        let carried = headers(&[REQUEST_ID, ETAG]);
        operation["responses"]["200"]["headers"] = carried.clone();
        let same = json!({"description": "The client has this document.", "headers": carried});
        if let Some(responses) = operation["responses"].as_object_mut() {
            responses.shift_insert(1, "304".to_owned(), same);
        }
        operation
    }

    fn public(&mut self, summary: &str, members: &[&str]) -> Value {
        let document = json!({"type": "object", "required": members});
        let mut responses = Map::new();
        responses.insert(
            "200".to_owned(),
            json!({
                "description": "The document.",
                "headers": headers(&[REQUEST_ID]),
                "content": {"application/json": {"schema": document}},
            }),
        );
        responses.extend(self.failures_of_the_document());
        json!({"summary": summary, "security": [], "responses": responses})
    }
}

const IDEMPOTENCY_KEY: &str = "idempotency_key";

struct ArgumentPlaces<'a> {
    path: Vec<&'a Field>,
    query: Vec<&'a Field>,
    body: Vec<&'a Field>,
}

impl<'a> ArgumentPlaces<'a> {
    fn of(tool: &'a ToolSpec) -> Self {
        let in_path = |field: &&Field| tool.http.iter().flat_map(Http::parameters).any(|name| name == field.name);
        let (path, rest): (_, Vec<_>) = tool.args.iter().partition(in_path);
        let has_body = tool.http.as_ref().is_some_and(Http::has_body);
        let (body, query) = if has_body { (rest, Vec::new()) } else { (Vec::new(), rest) };
        Self { path, query, body }
    }
}

fn examples(tool: &ToolSpec, part: impl Fn(&Map<String, Value>) -> Option<Value>) -> Map<String, Value> {
    let numbered = (1..).zip(&tool.examples);
    let shown = numbered.filter_map(|(n, example)| {
        Some((format!("example_{n}"), json!({"summary": example.title, "value": part(&example.arguments)?})))
    });
    shown.collect()
}
