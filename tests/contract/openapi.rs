//! The OpenAPI documents of `/v1` of both services.

use super::arguments::objects;
use crate::harness::shop::CATALOGUE as SHOP;
use crate::harness::signed::Signed;
use crate::harness::writes::phone;
use crate::harness::{base_tools, cast, contract};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use cloudphone::platforms::simulator::CAST;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_reader::model::{Contract, EffectSpec, Http, ToolSpec};
use toolwarrant_reader::{CONTRACT_PATH, OPENAPI_PATH, openapi};
use toolwarrant_signing as signing;

fn both() -> [(&'static Catalogue, Contract, Value); 2] {
    [(&PHONES, "spec"), (&SHOP, "tests/services/print_shop/spec")].map(|(catalogue, folder)| {
        let contract = contract(folder);
        let document = openapi(&contract);
        (catalogue, contract, document)
    })
}

fn operations<'a>(
    contract: &'a Contract,
    document: &'a Value,
) -> impl Iterator<Item = (&'a ToolSpec, &'a Http, &'a Value)> {
    let twins = contract.tools().filter_map(|tool| Some((tool, tool.http.as_ref()?)));
    twins.map(|(tool, http)| (tool, http, &document["paths"][&http.path][http.method.to_lowercase()]))
}

fn each<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| each(member, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, visit)),
        _ => {}
    }
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value["$ref"].as_str() else { return value };
    let pointer = reference.strip_prefix('#').expect("a reference into the document");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let whole = json!({"allOf": [schema], "components": document["components"]});
    jsonschema::validator_for(&whole).expect("a schema")
}

#[test]
fn the_catalogue_carries_the_document_and_its_server_can_be_replaced() {
    for (catalogue, _, document) in both() {
        assert_eq!(serde_json::from_str::<Value>(catalogue.openapi).expect("JSON"), document);
        assert_eq!(catalogue.openapi.matches(r#""servers":[{"url":"/"}]"#).count(), 1);
    }
}

#[test]
fn the_document_says_of_signatures_what_is_verified() {
    for (catalogue, _, document) in both() {
        assert!(catalogue.openapi.contains(signing::SCHEME), "{}", catalogue.service.name);
        let headers = [signing::KEY, signing::TIMESTAMP, signing::NONCE, signing::SIGNATURE];
        let schemes = document["components"]["securitySchemes"].as_object().expect("schemes");
        let names: Vec<_> =
            schemes.values().map(|scheme| scheme["name"].as_str().unwrap_or("").to_lowercase()).collect();
        assert_eq!(names, headers);
        assert!(catalogue.openapi.contains(&format!("{} s", signing::SKEW_SECONDS)), "the skew");
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_referred_to() {
    for (_, _, document) in both() {
        let mut used = BTreeSet::new();
        each(&document, &mut |object| {
            if object.contains_key("$ref") {
                let reference = object["$ref"].as_str().expect("a reference");
                assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference} leads nowhere");
                used.insert(reference.to_owned());
            }
        });
        let components = document["components"].as_object().expect("components");
        for (kind, all) in components.iter().filter(|(kind, _)| *kind != "securitySchemes") {
            for name in all.as_object().expect("components").keys() {
                let reference = format!("#/components/{kind}/{name}");
                assert!(used.contains(&reference), "nothing refers to {reference}");
            }
        }
    }
}

#[test]
fn there_is_an_operation_for_each_twin_and_one_for_each_public_document() {
    for (_, contract, document) in both() {
        let mut named = 0;
        for (_, item) in document["paths"].as_object().expect("paths") {
            named += item.as_object().expect("operations").len();
        }
        assert_eq!(named, operations(&contract, &document).count() + 2);
        for (tool, _, operation) in operations(&contract, &document) {
            assert_eq!(operation["operationId"], tool.name);
            assert_eq!(operation["x-permission"], tool.permission.name);
            assert_eq!(operation.get("security"), None, "signed, as all are");
        }
        for path in [OPENAPI_PATH, CONTRACT_PATH] {
            let operation = &document["paths"][path]["get"];
            assert_eq!(operation["security"], json!([]));
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let response = resolve(&document, response);
                let required = |name: &str| resolve(&document, &response["headers"][name])["required"] == true;
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{path} {status}");
                let headers = ["X-Request-Id", "Location", "Allow"].map(required);
                assert_eq!(headers, [true, false, status == "405"], "{path} {status}");
            }
        }
        let reader = &contract.read_tool().expect("a tool").name;
        assert_eq!(document["components"]["links"][reader]["operationId"], json!(reader));
        assert_eq!(document["security"], json!([{"key": [], "timestamp": [], "nonce": [], "signature": []}]));
    }
}

#[test]
fn every_argument_stands_in_one_place_and_the_idempotency_key_in_two() {
    for (_, contract, document) in both() {
        for (tool, http, operation) in operations(&contract, &document) {
            let mut places: Vec<(String, String)> = Vec::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let text = |member: &str| parameter[member].as_str().expect("text").to_owned();
                assert_eq!(parameter["required"] == true, text("in") == "path", "{parameter}");
                places.push((text("name"), text("in")));
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            if !body.is_null() {
                assert_eq!(body["additionalProperties"], false);
                let required = body["required"].as_array().is_some_and(|names| !names.is_empty());
                assert_eq!(operation["requestBody"]["required"], required);
            }
            let members = body["properties"].as_object().into_iter().flatten();
            places.extend(members.map(|(name, _)| (name.clone(), "body".to_owned())));
            let rest = if http.has_body() { "body" } else { "query" };
            let mut expected: Vec<_> = tool
                .args
                .iter()
                .map(|field| {
                    let place = if http.path.contains(&format!("{{{}}}", field.name)) { "path" } else { rest };
                    (field.name.clone(), place.to_owned())
                })
                .collect();
            if tool.task().is_some() {
                expected.push(("Idempotency-Key".to_owned(), "header".to_owned()));
            }
            places.sort();
            expected.sort();
            assert_eq!(places, expected, "{}", tool.name);
        }
    }
}

#[test]
fn an_operation_has_the_statuses_of_its_effect_and_of_all_its_failures() {
    for (_, contract, document) in both() {
        for (tool, http, operation) in operations(&contract, &document) {
            let successes: &[u16] = match tool.effect {
                EffectSpec::Read | EffectSpec::ReadTask => &[200],
                EffectSpec::Issue => &[201],
                EffectSpec::Act(_) => &[200],
                EffectSpec::Task(_) => &[200, 202],
            };
            let of_requests = [
                "unauthenticated",
                "method_not_allowed",
                "request_timeout",
                "body_too_large",
                "handed_over",
                "no_route",
                "internal",
            ];
            let of_bodies = http.has_body().then_some("unsupported_media_type");
            let roles = of_requests.into_iter().chain(of_bodies).map(|role| contract.role(role).expect("a role"));
            let errors: Vec<_> = tool.errors.iter().chain(roles).collect();
            let mut expected: BTreeSet<_> = errors.iter().map(|error| error.http).collect();
            expected.extend(successes);
            let responses = operation["responses"].as_object().expect("responses");
            let statuses: BTreeSet<u16> = responses.keys().map(|status| status.parse().expect("a status")).collect();
            assert_eq!(statuses, expected, "{}", tool.name);
            for (status, response) in responses {
                let response = resolve(&document, response);
                let required = |name: &str| resolve(&document, &response["headers"][name])["required"] == true;
                assert!(
                    required("X-Request-Id") && response["description"].as_str().is_some_and(|text| !text.is_empty())
                );
                assert_eq!([required("Location"), required("Allow")], [status == "202", status == "405"], "{response}");
            }
            for error in errors {
                let response = resolve(&document, &responses[&error.http.to_string()]);
                let failure = json!({"code": error.code, "message": "Why.", "retryable": error.retryable});
                let mut failure = failure.as_object().expect("an object").clone();
                failure.extend(error.retryable.then(|| ("retry_after_seconds".to_owned(), json!(1))));
                failure.extend(error.fields.iter().map(|field| (field.name.clone(), json!("text"))));
                let validator = validator(&document, &response["content"]["application/json"]["schema"]);
                assert!(validator.is_valid(&json!(failure)), "{}: {failure:?}", tool.name);
                assert!(!validator.is_valid(&json!({"code": "no_such_code", "message": "Why.", "retryable": false})));
                let more = failure.into_iter().chain([("more".to_owned(), json!(1))]).collect::<Map<_, _>>();
                assert!(!validator.is_valid(&json!(more)), "it is closed");
                assert_eq!(response["headers"].get("Retry-After").is_some(), retries(&document, response));
            }
        }
    }
}

fn retries(document: &Value, response: &Value) -> bool {
    let schema = &response["content"]["application/json"]["schema"];
    let several = schema["oneOf"].as_array();
    let schemas = several.map_or(vec![schema], |several| several.iter().collect());
    schemas.into_iter().any(|schema| resolve(document, schema)["properties"]["retryable"]["const"] == true)
}

/// The documents use references where the schemas of `tools/list` repeat.
#[test]
fn every_example_is_what_its_schema_says_and_all_of_its_arguments_are_there() {
    for (_, contract, document) in both() {
        for (tool, _, operation) in operations(&contract, &document) {
            for (n, example) in (1..).zip(&tool.examples) {
                let name = format!("example_{n}");
                let mut shown = Map::new();
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let Some(value) = parameter["examples"].get(&name).map(|example| &example["value"]) else {
                        continue;
                    };
                    assert!(validator(&document, &parameter["schema"]).is_valid(value), "{}: {value}", tool.name);
                    shown.insert(parameter["name"].as_str().expect("a name").to_owned(), value.clone());
                }
                let content = &operation["requestBody"]["content"]["application/json"];
                if let Some(value) = content["examples"].get(&name).map(|example| &example["value"]) {
                    assert!(validator(&document, &content["schema"]).is_valid(value), "{}: {value}", tool.name);
                    shown.extend(value.as_object().expect("an object").clone());
                }
                let sorted = |map: &Map<String, Value>| {
                    map.iter().map(|(name, value)| (name.clone(), value.to_string())).collect::<BTreeSet<_>>()
                };
                assert_eq!(sorted(&shown), sorted(&example.arguments), "{}", tool.name);
            }
        }
    }
}

/// Tasks on printers and tasks on trays have different target fields.
#[test]
fn derived_results_of_two_resources_have_different_fields() {
    let [_, (_, contract, document)] = both();
    let result = |tool: &str| {
        let mut twins = operations(&contract, &document);
        let (_, _, operation) = twins.find(|(known, ..)| known.name == tool).expect("a twin");
        let schema = &operation["responses"]["202"]["content"]["application/json"]["schema"];
        let properties = resolve(&document, schema)["properties"].as_object().expect("properties");
        properties.keys().cloned().collect::<Vec<_>>()
    };
    assert!(result("print_page").contains(&"printer_id".to_owned()));
    assert!(result("fill_tray").contains(&"tray_id".to_owned()));
}

/// Most of the drawn arguments fit their schemas, and some just miss them.
#[tokio::test]
async fn an_answer_has_the_status_the_headers_and_the_body_of_its_operation() {
    let [(_, contract, document), _] = both();
    let (server, key, _) = cast().await;
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (mut statuses, mut task_id) = (BTreeSet::new(), json!(format!("task_{}", "0".repeat(32))));
    for tool in base_tools(&PHONES) {
        let (_, twin, operation) =
            operations(&contract, &document).find(|(known, ..)| known.name == tool.name).expect("a twin");
        let schema: Value = serde_json::from_str(tool.input_schema).expect("JSON");
        let drawn = objects(&schema, vec!["toolCallId".to_owned()]);
        for n in 0..100 {
            let mut arguments = drawn.new_tree(&mut runner).expect("arguments").current();
            let ids = [("device_id", json!(phone(1 + n % CAST.len() as u32))), ("task_id", task_id.clone())];
            let ids = ids.into_iter().filter(|_| n % 5 > 0);
            // The clock stands still, so no answer may be held.
            for (name, value) in ids.chain([("wait_seconds", json!(0))]) {
                if schema["properties"].get(name).is_some() {
                    arguments.insert(name.to_owned(), value);
                }
            }
            let request =
                build_request(server.sign(&key, tool.http.as_ref().expect("a twin").method, ""), twin, arguments);
            let request = match n {
                0 => request.header("x-signature", "-"),
                1 => Signed { method: "PATCH", ..request },
                2 if twin.has_body() => request.body(json!({})).header("content-type", "text/plain"),
                _ => request,
            };
            let answer = server.v1(&request).await;
            let about = format!("{} {} {}: {answer:?}", request.method, request.target, request.body);
            let response = resolve(&document, &operation["responses"][answer.status.to_string()]);
            let media = &response["content"]["application/json"];
            assert!(media.is_object() && answer.header("content-type") == Some("application/json"), "{about}");
            let fits = validator(&document, &media["schema"]);
            fits.validate(&answer.body).unwrap_or_else(|wrong| panic!("{wrong}: {about}"));
            for name in ["X-Request-Id", "Retry-After", "Location", "Allow"] {
                let header = resolve(&document, &response["headers"][name]);
                let is_sent = answer.header(&name.to_lowercase()).is_some();
                let may_be_sent = name == "Retry-After" && header.is_object();
                assert!(is_sent == (header["required"] == true) || is_sent && may_be_sent, "{name}: {about}");
            }
            statuses.insert(answer.status);
            task_id = answer.body.get("task_id").cloned().unwrap_or(task_id);
        }
    }
    assert_eq!(statuses, BTreeSet::from([200, 201, 202, 400, 401, 404, 405, 409, 415]));
}

fn build_request(mut request: Signed, twin: &Http, mut arguments: Map<String, Value>) -> Signed {
    let encoded = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>()
    };
    request.target.clone_from(&twin.path);
    for name in twin.parameters() {
        let id = arguments.shift_remove(name).unwrap_or_default();
        request.target = request.target.replace(&format!("{{{name}}}"), &encoded(&id));
    }
    if twin.has_body() {
        return request.body(arguments.into());
    }
    let members = arguments.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>();
    request.target = format!("{}?{}", request.target, members.join("&"));
    request
}
