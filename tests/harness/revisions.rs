//! Requests in each revision of the protocol.

use crate::harness::{Key, Server, read};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use toolwarrant_core::revision::Revision;

/// Repeats parts of the body in a revision without a handshake.
pub(crate) fn headers(revision: Revision, body: &Value) -> Vec<(&'static str, String)> {
    let mut headers = vec![("mcp-protocol-version", revision.features().name.to_owned())];
    if !revision.features().handshake {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        headers.extend(text(&body["method"]).map(|method| ("mcp-method", method)));
        let name = text(&body["params"]["name"]).or_else(|| text(&body["params"]["taskId"]));
        headers.extend(name.map(|name| ("mcp-name", name)));
    }
    headers
}

/// States the revision and the capabilities of the client in a revision without a handshake. The id
/// is 1.
pub(crate) fn body(revision: Revision, method: &str, mut params: Value) -> Value {
    if !revision.features().handshake {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision.features().name,
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) async fn ask(server: &Server, key: &Key, revision: Revision, method: &str, params: Value) -> (u16, Value) {
    let body = body(revision, method, params);
    send(server.post(key), &headers(revision, &body), &body).await
}

pub(crate) async fn send(mut request: RequestBuilder, headers: &[(&str, String)], body: &Value) -> (u16, Value) {
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    read(request.body(body.to_string()).send().await.expect("an answer")).await
}
