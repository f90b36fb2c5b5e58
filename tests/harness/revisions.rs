//! Requests in each revision of the protocol.

use crate::harness::{Key, Server, read};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use toolwarrant_core::revision::Revision;

/// Returns the headers of a request in a revision. In a revision without a handshake they repeat
/// parts of the body.
pub(crate) fn headers(revision: Revision, body: &Value) -> Vec<(&'static str, String)> {
    let mut headers = vec![("mcp-protocol-version", revision.features().name.to_owned())];
    if !revision.features().handshake {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        headers.extend(text(&body["method"]).map(|method| ("mcp-method", method)));
        headers.extend(text(&body["params"]["name"]).map(|name| ("mcp-name", name)));
    }
    headers
}

/// Returns the body of a request with id 1. In a revision without a handshake it states the
/// revision, and the capabilities of the client.
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

/// Sends a request in a revision. Returns status and answer.
pub(crate) async fn ask(server: &Server, key: &Key, revision: Revision, method: &str, params: Value) -> (u16, Value) {
    let body = body(revision, method, params);
    send(server.post(key), &headers(revision, &body), &body).await
}

/// Sends a request with this body. Returns status and answer.
pub(crate) async fn send(mut request: RequestBuilder, headers: &[(&str, String)], body: &Value) -> (u16, Value) {
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    read(request.body(body.to_string()).send().await.expect("an answer")).await
}
