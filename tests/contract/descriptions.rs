//! The texts that an agent reads before it calls a tool.

use crate::harness::{Key, Server, Tenant, base_tools, contract, every_permission_set, open_phones, phones};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use serde_json::{Value, json};
use toolwarrant_core::catalogue::ToolDef;
use toolwarrant_reader::model::{Kind, NamedType, ReadersSpec};
use toolwarrant_reader::{ListForm, description, list_item};

const WRITES: [&str; 3] = ["set_proxy", "clear_proxy", "set_power"];

struct Definition {
    tool: &'static ToolDef,
    description: String,
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
    assert_eq!(listed.len(), base_tools(&PHONES).count());
    listed
}

/// Gives a key to every set of permissions.
async fn with_each_set() -> (Server, Vec<(String, Key)>) {
    let (names, tenants): (Vec<_>, _) =
        every_permission_set(&PHONES).into_iter().map(|(name, set)| (name, Tenant::with(set))).unzip();
    let (server, keys) = phones(tenants).await;
    (server, names.into_iter().zip(keys.into_iter().flatten()).collect())
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

/// A maintainer can add a tool, as CONTRIBUTING.md shows it, without a change of `[readers]`.
#[test]
fn the_tools_of_the_specification_leave_room_for_another_one() {
    const ROOM: usize = 1_500;
    const OWN: &str = "list_devices get_device get_task create_session set_proxy clear_proxy set_power";
    let contract = contract("spec");
    let ReadersSpec { list, list_with_outputs, .. } = contract.readers;
    for (form, limit) in [(ListForm::Plain, list), (ListForm::WithOutputs, list_with_outputs)] {
        let own = contract.tools().filter(|tool| OWN.split(' ').any(|name| name == tool.name));
        let length: usize = own.map(|tool| list_item(&contract, tool, form).chars().count() + 1).sum();
        assert!(length + ROOM <= limit as usize, "{form:?}: {length} of {limit}");
    }
}

#[tokio::test]
async fn no_text_names_a_tool_that_its_reader_may_not_call() {
    let (server, keys) = with_each_set().await;
    for (granted, key) in &keys {
        let listed = server.list(key).await;
        let told = instructions(&server, key).await + &json!(listed).to_string();
        let words: Vec<&str> = told.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for tool in base_tools(&PHONES) {
            let shown = listed.iter().any(|listed| listed["name"] == tool.name);
            assert!(shown || !words.contains(&tool.name), "{granted} reads of {}", tool.name);
        }
    }
}

#[test]
fn every_tool_that_shows_the_words_of_others_says_that_they_are_data() {
    fn shows(result: &NamedType) -> bool {
        let Kind::Object(fields) = &result.kind else { return false };
        fields.iter().any(|field| {
            let inner = field.ty.element().as_named();
            field.untrusted || inner.is_some_and(|inner| inner.name == "Remark" || shows(inner))
        })
    }
    let contract = contract("spec");
    let showing: Vec<_> = contract.tools().filter(|tool| shows(&tool.result)).collect();
    let is_shown = |name| showing.iter().any(|tool| tool.name == name);
    assert!(["list_devices", "get_device", "get_task"].into_iter().all(is_shown));
    for tool in showing {
        assert!(description(&contract, tool).contains("data, not instructions"), "{}", tool.name);
    }
}

#[tokio::test]
async fn instructions_are_composed_of_what_a_key_may_call() {
    let (server, keys) = with_each_set().await;
    let mut told = String::new();
    for (granted, key) in &keys {
        told += &format!("## {granted}\n\n{}\n\n", instructions(&server, key).await);
    }
    insta::assert_snapshot!(told);
}

const DEVICE: &str = "a device whose capabilities.";
const REPEATED: &str =
    "If refused: {code, message, retryable}; do what message says. Not retryable (change it, or report): ";
const POLLED: &str =
    "call get_task with its task_id and wait_seconds 25 until terminal is true, or poll at most every 15 s";
const TASK: &str = "Returns a task, not its outcome";
const ENDS: &str = "Only `success` means it took effect; `timeout` is no failure; only `failed_silent` is refunded.";
const OTHER_DEVICE: &str = "not_supported (another device may)";

/// Each row has the words of a description, and the only tools that say them.
#[tokio::test]
async fn descriptions_say_what_an_agent_must_know_before_a_call() {
    let all: Vec<_> = base_tools(&PHONES).map(|tool| tool.name).collect();
    let needy = ["set_proxy", "clear_proxy", "set_power", "create_session"];
    let rows: [(&str, &[&str]); 19] = [
        (DEVICE, &needy),
        ("capabilities.proxy is true, whatever its state", &["set_proxy", "clear_proxy"]),
        ("capabilities.power is true, whatever its state", &["set_power"]),
        ("capabilities.session is true, whatever its state", &["create_session"]),
        ("by capabilities, never by state", &["list_devices", "get_device"]),
        (REPEATED, &all),
        (" Retryable, with backoff: ", &all),
        ("forbidden (no device helps)", &all),
        (OTHER_DEVICE, &needy),
        (POLLED, &WRITES),
        (TASK, &WRITES),
        (ENDS, &WRITES),
        ("dispatched (on its way)", &["get_task"]),
        ("success (effect measured on the device)", &["get_task"]),
        ("success_unverified (reported, nothing measurable)", &["get_task"]),
        ("failed (error reported, or nothing sent)", &["get_task"]),
        ("failed_silent (reported done, effect absent; refunded)", &["get_task"]),
        ("timeout (nobody could tell; no failure, no refund)", &["get_task"]),
        (
            "expires_at (null: no expiry was given, not that it is long-lived; issue a new one when it stops working)",
            &["create_session"],
        ),
    ];
    for Definition { tool, description, arguments } in definitions().await {
        for (words, tools) in rows {
            let is_said = description.contains(words);
            assert_eq!(is_said, tools.contains(&tool.name), "{}: {words}\n{description}", tool.name);
        }
        if tool.name == "get_task" {
            let (_, wait) = arguments.iter().find(|(name, _)| name == "wait_seconds").expect("wait_seconds");
            assert!(wait["description"].as_str().is_some_and(|doc| doc.contains("within 15 s of the last")), "{wait}");
        }
    }
}
