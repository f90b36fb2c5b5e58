//! Properties of every tool of every contract: these tests read the catalogue and name no tool.

use crate::harness::shop::{CATALOGUE as SHOP, shop};
use crate::harness::{Key, Server, Tenant, base_tools, contract, every_permission_set, mute_phones, phones};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::catalogue::{Catalogue, PermissionSet};
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_reader::model::{Contract, ToolSpec};
use toolwarrant_reader::{ListForm, list_item, type_schema};

/// Starts one server each, with a key for every set of permissions.
async fn both() -> Vec<(&'static Catalogue, Contract, Server, Vec<Vec<Key>>)> {
    let tenants =
        |catalogue| every_permission_set(catalogue).into_iter().map(|(_, set)| Tenant::with(set)).collect::<Vec<_>>();
    let (phones, phone_keys) = phones(tenants(&PHONES)).await;
    let (shop, shop_keys) = shop(tenants(&SHOP)).await;
    vec![
        (&PHONES, contract("spec"), phones, phone_keys),
        (&SHOP, contract("tests/services/print_shop/spec"), shop, shop_keys),
    ]
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::validator_for(schema).expect("a schema")
}

#[tokio::test]
async fn every_permission_set_is_shown_just_its_tools() {
    let mut shown = String::new();
    for (catalogue, _, server, keys) in both().await {
        for ((granted, _), keys) in every_permission_set(catalogue).iter().zip(&keys) {
            let tools = server.list(&keys[0]).await;
            let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
            writeln!(shown, "{} {granted}: {}", catalogue.service.name, names.join(" ")).expect("text");
        }
    }
    insta::assert_snapshot!(shown);
}

/// `cargo xtask gen` measures lengths and tokens on this text.
#[tokio::test]
async fn a_listed_tool_is_byte_for_byte_the_item_that_its_contract_makes() {
    for (_, contract, server, keys) in both().await {
        let key = &keys.last().expect("all permissions")[0];
        for (revision, form) in [("2025-03-26", ListForm::Plain), ("2025-06-18", ListForm::WithOutputs)] {
            let request = server.post(key).header("mcp-protocol-version", revision);
            let request = request.body(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string());
            let answer = request.send().await.expect("an answer").text().await.expect("text");
            let items: Vec<_> = contract.tools_with(None).map(|tool| list_item(&contract, tool, form)).collect();
            for item in &items {
                assert!(answer.contains(item), "{item} is not in {answer}");
            }
            assert!(answer.contains(&format!("{{\"tools\":[{}]}}", items.join(","))));
        }
    }
}

#[tokio::test]
async fn a_tool_is_listed_exactly_if_it_can_be_called_and_else_is_forbidden_by_name_too() {
    for (catalogue, _, server, keys) in both().await {
        for ((names, set), keys) in every_permission_set(catalogue).iter().zip(&keys) {
            let listed = server.list(&keys[0]).await;
            for tool in base_tools(catalogue) {
                let is_listed = listed.iter().any(|item| item["name"] == tool.name);
                // No host adds as many members, so a caller who may call the tool gets an error
                // about the arguments.
                let many: serde_json::Map<_, _> = (0..40).map(|n| (format!("x{n}"), json!(n))).collect();
                let failure = server.call(&keys[0], tool.name, many.into()).await.unwrap_err();
                let expected = if is_listed { "invalid_argument" } else { "forbidden" };
                assert_eq!(failure["code"], expected, "{names} {}", tool.name);
                assert!(tool.errors.iter().any(|error| failure["code"] == error.code), "{}", tool.name);
                assert_eq!(set.covers(tool.permission.bit), is_listed, "{names} {}", tool.name);
            }
        }
    }
}

#[tokio::test]
async fn every_example_works_and_its_result_is_what_its_type_says() {
    for (catalogue, contract, server, keys) in both().await {
        let key = &keys.last().expect("all permissions")[0];
        let mut task_id = Value::Null;
        for tool in contract.tools_with(None) {
            let def = catalogue.tool(&tool.name).expect("the same tools");
            let (input, output) = (json(def.input_schema), type_schema(&tool.result));
            assert!(!tool.examples.is_empty(), "{} has no example", tool.name);
            for example in &tool.examples {
                let mut arguments = Value::Object(example.arguments.clone());
                assert!(validator(&input).is_valid(&arguments), "{}: {arguments}", tool.name);
                if let Some(known) = arguments.get_mut("task_id") {
                    // An example cannot know the id of an existing task, and this clock does not
                    // advance.
                    (*known, arguments["wait_seconds"]) = (task_id.clone(), json!(0));
                }
                let result = server.call(key, &tool.name, arguments).await.expect("the example works");
                let problems: Vec<_> = validator(&output).iter_errors(&result).map(|error| error.to_string()).collect();
                assert!(problems.is_empty(), "{}: {problems:?}", tool.name);
                assert_contains(&result, &Value::Object(example.result.clone()));
                task_id = result.get("task_id").cloned().unwrap_or(task_id);
            }
        }
    }
}

fn assert_contains(whole: &Value, part: &Value) {
    match part {
        Value::Object(members) => members.iter().for_each(|(name, value)| assert_contains(&whole[name], value)),
        part => assert_eq!(whole, part),
    }
}

#[tokio::test]
async fn refusals_come_in_the_order_of_the_pipeline() {
    let nobody = PermissionSet::default();
    let all = PermissionSet(u64::MAX);
    let own = [("device", "phone-0000001"), ("printer", "p-1"), ("tray", "p-1")];
    let own = own.into_iter().fold(Grants::nothing(), |own, (resource, id)| own.with(resource, Granted::some([id])));
    let tenants = || vec![Tenant::with(nobody), Tenant::with(all), Tenant { grants: own.clone(), ..Tenant::with(all) }];
    let (phones, phone_keys) = mute_phones(tenants()).await;
    let (shop, shop_keys) = shop(tenants()).await;
    // Contract, server, and targets: one that offers all, one that offers nothing, one that does
    // not exist, one unreachable.
    let worlds = [
        (contract("spec"), phones, phone_keys, ["phone-0000001", "", "phone-9999999", ""]),
        (contract("tests/services/print_shop/spec"), shop, shop_keys, ["p-1", "p-2", "p-9", "p-gone"]),
    ];
    for (contract, server, keys, [offering, refusing, absent, unreachable]) in worlds {
        let [nobody, everybody, owner] = [&keys[0][0], &keys[1][0], &keys[2][0]];
        for tool in contract.tools_with(None) {
            let Some(target) = &tool.target else { continue };
            let arguments = |id| on(tool, id);
            // A write that passes the checks may conflict with an earlier one.
            let through = if tool.task().is_some() { ["ok", "device_busy", "printer_busy"] } else { ["ok"; 3] };
            let code = async |key, id| match server.call(key, &tool.name, arguments(id)).await {
                Ok(_) => "ok".to_owned(),
                Err(failure) => failure["code"].as_str().expect("a code").to_owned(),
            };
            assert_eq!(code(nobody, offering).await, "forbidden");
            assert_eq!(code(nobody, "ILLEGAL ID").await, "forbidden", "arguments are looked at after the permission");
            assert_eq!(code(everybody, "ILLEGAL ID").await, "invalid_argument");
            assert_eq!(code(everybody, absent).await, "not_found");
            for key in [everybody, owner] {
                let code = code(key, offering).await;
                assert!(through.contains(&&*code), "{}: {code}", tool.name);
            }
            if !unreachable.is_empty() {
                assert_eq!(code(everybody, unreachable).await, "upstream_unavailable");
            }
            if !refusing.is_empty() {
                let expected = if target.requires.is_some() { "not_supported" } else { "ok" };
                assert_eq!(code(everybody, refusing).await, expected);
                let there = server.call(owner, &tool.name, arguments(refusing)).await.unwrap_err();
                let nowhere = server.call(owner, &tool.name, arguments(absent)).await.unwrap_err();
                assert_eq!(there, nowhere, "another application's target cannot be told from one that does not exist");
            }
        }
    }
}

fn on(tool: &ToolSpec, target: &str) -> Value {
    let mut arguments = tool.examples[0].arguments.clone();
    arguments.extend(tool.target.as_ref().map(|known| (known.arg.clone(), json!(target))));
    Value::Object(arguments)
}

#[tokio::test]
async fn not_supported_is_answered_exactly_if_the_flag_is_false() {
    let (server, keys) = mute_phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let page = server.call(&keys[0][0], "list_devices", json!({"limit": 60})).await.expect("a page");
    let devices = page["devices"].as_array().expect("devices");
    let contract = contract("spec");
    for tool in contract.tools_with(None) {
        let Some(capability) = tool.target.as_ref().and_then(|target| target.requires.as_ref()) else { continue };
        let mut seen = [false; 2];
        for device in devices {
            let offered = device["capabilities"][capability] == true;
            seen[usize::from(offered)] = true;
            let id = device["device_id"].as_str().expect("an id");
            let outcome = server.call(&keys[0][0], &tool.name, on(tool, id)).await;
            let refused = outcome.is_err_and(|failure| failure["code"] == "not_supported");
            assert_eq!(refused, !offered, "{} on {device}", tool.name);
        }
        assert_eq!(seen, [true, true], "the cast has both for {capability}");
    }
}

/// The framework looks up the contract's entry for a state by its position.
#[test]
fn states_stand_in_the_order_of_the_framework_under_its_names() {
    let names: Vec<_> = TaskStatus::ALL.iter().map(|status| status.as_str()).collect();
    assert_eq!(names, toolwarrant_reader::STATES);
    for catalogue in [&PHONES, &SHOP] {
        assert_eq!(catalogue.states.iter().map(|state| state.name).collect::<Vec<_>>(), names);
    }
}

#[test]
fn a_resource_admits_what_its_identifiers_type_does() {
    for (catalogue, [id, other]) in [(&PHONES, ["phone-0000001", "PHONE"]), (&SHOP, ["p-1", "q-1"])] {
        assert!(!catalogue.resources.is_empty());
        for resource in catalogue.resources {
            assert_eq!([id, other].map(|id| resource.ids.admits(id)), [true, false], "{}", resource.name);
        }
    }
    for resource in SHOP.resources {
        for (text, expected) in [("", true), ("p", true), ("p-", true), ("p-1", true), ("q", false), ("p-A", false)] {
            assert_eq!(resource.ids.can_begin(text), expected, "{text}: such an id has three to eight characters");
        }
        assert!(resource.ids.can_begin("p-123456") && !resource.ids.can_begin("p-1234567"));
    }
}

#[test]
fn no_handler_writes_the_name_of_an_argument_as_text() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/phones/tools");
    let contract = contract("spec");
    let arguments = || contract.tools().flat_map(|tool| &tool.args);
    for file in std::fs::read_dir(tools).expect("a folder").flatten() {
        let code = std::fs::read_to_string(file.path()).expect("a file of handlers");
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        for text in code.split('"').skip(1).step_by(2) {
            let named = arguments().find(|field| text == field.name || text.contains(&format!("`{}`", field.name)));
            assert!(named.is_none(), "{:?}: \"{text}\"", file.file_name());
        }
    }
}

#[test]
fn input_schemas_keep_to_what_every_provider_takes() {
    const BANNED: &str = "$ref $defs oneOf anyOf allOf not if const patternProperties additionalProperties \
        exclusiveMinimum exclusiveMaximum $schema format";
    fn walk(schema: &Value, path: &str) {
        let Some(object) = schema.as_object() else { return };
        for key in BANNED.split(' ') {
            assert!(!object.contains_key(key), "{path} has {key}");
        }
        assert!(object["type"].is_string(), "{path}: {schema}");
        assert!(object["type"] != "array" || object.contains_key("items"), "{path} has no items");
        assert!(
            object.get("enum").is_none_or(|values| values.as_array().expect("a list").iter().all(Value::is_string))
        );
        assert!(object.get("default") != Some(&Value::Null), "{path} has a null default");
        for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{path}.{name}");
            assert!(name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)));
            walk(property, &format!("{path}.{name}"));
        }
        if let Some(items) = object.get("items") {
            walk(items, &format!("{path}[]"));
        }
    }
    for catalogue in [&PHONES, &SHOP] {
        for tool in catalogue.tools {
            let schema = json(tool.input_schema);
            assert_eq!(schema["type"], "object");
            assert!(schema["properties"].is_object(), "{} has no properties", tool.name);
            assert!(tool.name.len() <= 37);
            walk(&schema, tool.name);
        }
    }
}
