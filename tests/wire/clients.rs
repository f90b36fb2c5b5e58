//! The official Rust client of the protocol, against the program as users start it, in every served
//! revision.

use crate::harness::bridge::Bridge;
use crate::harness::contract;
use crate::harness::program::Program;
use crate::harness::writes::proxy;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ExtensionCapabilities,
    GetTaskParams, Implementation, JsonObject, ProtocolVersion, TASKS_EXTENSION_ID, TaskPayload,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use std::time::Duration;
use tokio::task::JoinSet;

type Client = RunningService<RoleClient, ClientConfig>;

#[tokio::test]
async fn the_official_rust_client_lists_the_tools_and_calls_each_in_every_revision() {
    let mut clients = JoinSet::new();
    for revision in contract("spec").service.served {
        clients.spawn(async move {
            let mut program = Program::start(&[]).await;
            let mut local = Bridge::over_stdio(program.home.path(), &[]);
            let (config, mode) = pin(revision);
            let over_stdio = config.clone().serve_with_lifecycle(local.pipes(), mode.clone()).await;
            for client in [connect(&program, config, mode).await, over_stdio.expect("a session")] {
                assert_eq!(revision_of(&client), revision);
                lists_and_calls(client).await;
            }
            program.stop().await;
        });
    }
    clients.join_all().await;
}

/// The client declares the extension for tasks.
#[tokio::test]
async fn the_official_rust_client_follows_a_task_over_http_and_over_the_bridge() {
    let mut program = Program::start(&[]).await;
    let mut capabilities = ClientCapabilities::default();
    capabilities.extensions = Some(ExtensionCapabilities::from([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())]));
    let config = ClientConfig::new(capabilities, Implementation::default());
    let mode = || ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let mut bridge = Bridge::with_key(&program.url, &program.keys[0]);
    let over_http = config.clone().serve_with_lifecycle(transport(&program), mode()).await.expect("a session");
    let over_bridge = config.serve_with_lifecycle(bridge.pipes(), mode()).await.expect("a session");
    for (client, phone) in [(over_http, 1), (over_bridge, 15)] {
        let Value::Object(arguments) = proxy(phone, "k") else { unreachable!() };
        let call = CallToolRequestParams::new("set_proxy").with_arguments(arguments);
        let CallToolResponse::Task(made) = client.call_tool_once(call).await.expect("an answer") else {
            panic!("no task")
        };
        let result = loop {
            let read = client.get_task(GetTaskParams::new(made.task.task_id.clone())).await.expect("a task");
            match read.task.payload {
                TaskPayload::Working => tokio::time::sleep(Duration::from_millis(500)).await,
                TaskPayload::Completed { result } => break result,
                other => panic!("{other:?}"),
            }
        };
        let result: CallToolResult = serde_json::from_value(result.into()).expect("a result");
        assert_eq!(parse_result(&result)["status"], "success", "{result:?}");
        client.cancel().await.expect("an end");
    }
    program.stop().await;
}

async fn lists_and_calls(client: Client) {
    let (contract, revision) = (contract("spec"), revision_of(&client));
    let structured = *revision >= *"2025-06-18";
    let tools = client.list_all_tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, contract.tools_with(None).map(|tool| tool.name.clone()).collect::<Vec<_>>());
    assert!(tools.iter().all(|tool| tool.output_schema.is_some() == structured), "{revision}: {tools:?}");
    let mut task_id = Value::Null;
    for tool in contract.tools_with(None) {
        for example in &tool.examples {
            let mut arguments = example.arguments.clone();
            // An example cannot know the id of an existing task.
            arguments.entry("task_id").and_modify(|id| *id = task_id.clone());
            let call = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
            let result = client.call_tool(call).await.expect("a result");
            assert_ne!(result.is_error, Some(true), "{revision}: {result:?}");
            let value = parse_result(&result);
            assert_eq!(result.structured_content.as_ref(), structured.then_some(&value), "{revision}: {}", tool.name);
            task_id = value.get("task_id").cloned().unwrap_or(task_id);
        }
    }
    client.cancel().await.expect("an end");
}

fn parse_result(result: &CallToolResult) -> Value {
    let text = &result.content[0].as_text().expect("text").text;
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert!(value.is_object(), "{text}");
    value
}

fn pin(revision: &str) -> (ClientConfig, ClientLifecycleMode) {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str() == revision);
    let version = known.expect("a revision that the client knows").clone();
    let mode = if version.has_initialize() {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] }
    };
    (ClientConfig::default().with_protocol_version(version), mode)
}

async fn connect(program: &Program, config: ClientConfig, mode: ClientLifecycleMode) -> Client {
    config.serve_with_lifecycle(transport(program), mode).await.expect("a session")
}

fn transport(program: &Program) -> StreamableHttpClientTransport<reqwest::Client> {
    let key = &program.keys[0];
    let config = StreamableHttpClientTransportConfig::with_uri(program.url.clone());
    StreamableHttpClientTransport::from_config(config.auth_header(format!("{}:{}", key.id, key.secret)))
}

fn revision_of(client: &Client) -> String {
    client.peer_info().expect("the server's answer").protocol_version.to_string()
}
