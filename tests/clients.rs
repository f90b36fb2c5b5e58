//! An official client of the protocol, against the program as users start it.

use crate::program::Program;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use std::path::Path;

#[tokio::test]
async fn the_official_rust_client_lists_the_tools_and_calls_each() {
    let mut program = Program::start(&[]).await;
    let key = &program.keys[0];
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", program.url))
        .auth_header(format!("{}:{}", key.id, key.secret));
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await.expect("a session");
    let server = client.peer_info().expect("the server's answer to initialize");
    assert_eq!(server.protocol_version.to_string(), "2025-03-26");
    let tools = client.list_all_tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    let contract =
        toolwarrant_spec::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec")).expect("the contract");
    assert_eq!(names, contract.tools().map(|tool| tool.name.clone()).collect::<Vec<_>>());
    let mut task_id = Value::Null;
    for tool in contract.tools() {
        for example in &tool.examples {
            let mut arguments = example.arguments.clone();
            // No example can know the id of a task that exists.
            arguments.entry("task_id").and_modify(|id| *id = task_id.clone());
            let call = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
            let result = client.call_tool(call).await.expect("a result");
            assert_ne!(result.is_error, Some(true), "{}", tool.name);
            let text = &result.content[0].as_text().expect("text").text;
            let value: Value = serde_json::from_str(text).expect("JSON");
            assert!(value.is_object(), "{text}");
            task_id = value.get("task_id").cloned().unwrap_or(task_id);
        }
    }
    client.cancel().await.expect("an end");
    assert!(program.stop().await.0.success());
}
