//! An official client of the protocol, against the program as users start it.

use crate::program::Program;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

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
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["list_devices", "get_device", "create_session"]);
    let cases = [
        ("list_devices", json!({"limit": 2}), "devices"),
        ("get_device", json!({"device_id": "phone-0000001"}), "spec"),
        ("create_session", json!({"device_id": "phone-0000001"}), "token"),
    ];
    for (name, arguments, member) in cases {
        let Value::Object(arguments) = arguments else { unreachable!("arguments are objects") };
        let result =
            client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await.expect("a result");
        assert_ne!(result.is_error, Some(true));
        let text = result.content[0].as_text().expect("text").text.clone();
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert!(value.get(member).is_some(), "{name}: {text}");
    }
    client.cancel().await.expect("an end");
    assert!(program.stop().await.0.success());
}
