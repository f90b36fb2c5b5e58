//! The texts that an agent reads before it calls a tool: the definitions in `tools/list`, and the
//! instructions of `initialize`. Their words are committed in `spec/generated` and in a snapshot.

use crate::harness::revisions::ask;
use crate::harness::{Key, Server, Tenant, every_permission_set, open_phones, phones};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use serde_json::{Value, json};
use std::path::Path;
use toolwarrant_core::catalogue::ToolDef;
use toolwarrant_core::revision::Revision;
use toolwarrant_reader::model::{Kind, NamedType, ReadersSpec};
use toolwarrant_reader::{description, load};

/// A tool from `tools/list`.
struct Definition {
    tool: &'static ToolDef,
    description: String,
    /// The name and the schema of each argument.
    arguments: Vec<(String, Value)>,
}

impl Definition {
    fn says(&self, words: &str) {
        assert!(self.description.contains(words), "{} does not say: {words}\n{}", self.tool.name, self.description);
    }
}

async fn definitions() -> Vec<Definition> {
    let (server, key) = open_phones().await;
    let definition = |listed: &Value| Definition {
        tool: PHONES.tool(listed["name"].as_str().expect("a name")).expect("a tool"),
        description: listed["description"].as_str().expect("a description").to_owned(),
        arguments: listed["inputSchema"]["properties"].as_object().expect("properties").clone().into_iter().collect(),
    };
    let listed: Vec<_> = server.list(&key).await.iter().map(definition).collect();
    assert_eq!(listed.len(), PHONES.tools.len());
    listed
}

async fn instructions(server: &Server, key: &Key) -> String {
    let answer = server.rpc(key, "initialize", json!({"protocolVersion": "2025-03-26"})).await;
    answer["result"]["instructions"].as_str().expect("instructions").to_owned()
}

#[tokio::test]
async fn every_definition_has_the_arguments_preconditions_and_failures_of_its_tool() {
    for listed in definitions().await {
        let Definition { tool, description, arguments } = &listed;
        for (name, schema) in arguments {
            listed.says(name);
            assert!(schema["description"].as_str().is_some_and(|doc| !doc.is_empty()), "{}: {name}", tool.name);
        }
        listed.says(&format!("\nNeeds permission {}", tool.permission.name));
        let (last, retryable) =
            description.split_once("Not retryable").expect("failures").1.split_once("Retryable").expect("both");
        for error in tool.errors {
            assert!(
                if error.retryable() { retryable } else { last }.contains(error.code),
                "{}: {}",
                tool.name,
                error.code
            );
        }
        listed.says("Use it ");
    }
}

/// The contract's `[readers]` states the length that each client takes whole. The compiler checks
/// the contract; this test checks the texts on the wire.
#[tokio::test]
async fn every_text_is_short_enough_for_those_who_read_it() {
    let contract = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec")).expect("a contract");
    let ReadersSpec { description: most, argument, list, list_with_outputs, instructions: told_most, lead, brief: _ } =
        contract.readers;
    let fits = |text: &str, most: u32| text.chars().count() <= most as usize;
    for Definition { tool, description, arguments } in definitions().await {
        assert!(fits(&description, most), "{}", tool.name);
        for (name, schema) in arguments {
            let doc = schema["description"].as_str();
            assert!(doc.is_some_and(|doc| fits(doc, argument)), "{}: {name}", tool.name);
        }
    }
    let (server, key) = open_phones().await;
    for (revision, most) in [(Revision::V2025_03_26, list), (Revision::V2025_11_25, list_with_outputs)] {
        let (_, listed) = ask(&server, &key, revision, "tools/list", json!({})).await;
        assert!(fits(&listed["result"].to_string(), most), "{revision:?}");
    }
    let told = instructions(&server, &key).await;
    assert!(fits(&told, told_most), "{told}");
    assert!(told.lines().next().is_some_and(|first| fits(first, lead)), "{told}");
}

#[tokio::test]
async fn no_text_names_a_tool_that_its_reader_may_not_call() {
    let sets = every_permission_set(&PHONES);
    let (server, keys) = phones(sets.iter().map(|(_, set)| Tenant::with(*set)).collect()).await;
    for ((granted, _), keys) in sets.iter().zip(&keys) {
        let listed = server.list(&keys[0]).await;
        let told = instructions(&server, &keys[0]).await + &json!(listed).to_string();
        let words: Vec<&str> = told.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for tool in PHONES.tools {
            let shown = listed.iter().any(|listed| listed["name"] == tool.name);
            assert!(shown || !words.contains(&tool.name), "{granted} reads of {}", tool.name);
        }
    }
}

/// A name can contain text that looks like an instruction.
#[test]
fn every_tool_that_shows_the_words_of_others_says_that_they_are_data() {
    fn shows(result: &NamedType) -> bool {
        let Kind::Object(fields) = &result.kind else { return false };
        fields.iter().any(|field| {
            let inner = field.ty.element().as_named();
            field.untrusted || inner.is_some_and(|inner| inner.name == "Remark" || shows(inner))
        })
    }
    let contract = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec")).expect("a contract");
    let showing: Vec<_> = contract.tools().filter(|tool| shows(&tool.result)).collect();
    let is_shown = |name| showing.iter().any(|tool| tool.name == name);
    assert!(["list_devices", "get_device", "get_task"].into_iter().all(is_shown));
    for tool in showing {
        assert!(description(&contract, tool).contains("data, not instructions"), "{}", tool.name);
    }
}

#[tokio::test]
async fn instructions_are_composed_of_what_a_key_may_call() {
    let sets = every_permission_set(&PHONES);
    let (server, keys) = phones(sets.iter().map(|(_, set)| Tenant::with(*set)).collect()).await;
    let mut told = String::new();
    for ((granted, _), keys) in sets.iter().zip(&keys) {
        told += &format!("## {granted}\n\n{}\n\n", instructions(&server, &keys[0]).await);
    }
    insta::assert_snapshot!(told);
}
