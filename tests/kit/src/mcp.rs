//! Keys, and calls of tools over `/mcp`.

use crate::http::exchange;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::sleep;

#[derive(Clone, Debug)]
pub struct KeyPair {
    pub id: String,
    pub secret: String,
}

impl KeyPair {
    pub fn read(printed: &Value) -> Result<Self> {
        let text = |name: &str| printed[name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
        Ok(Self { id: text("key_id")?, secret: text("secret")? })
    }

    #[must_use]
    pub fn request(&self, message: &str, headers: &str) -> String {
        let (Self { id, secret }, length) = (self, message.len());
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-api-key: {id}\r\n\
             x-api-secret: {secret}\r\n{headers}content-length: {length}\r\n\r\n{message}"
        )
    }

    #[must_use]
    pub fn call_request(&self, tool: &str, arguments: &Value, headers: &str) -> String {
        self.request(&message("tools/call", &json!({"name": tool, "arguments": arguments})), headers)
    }
}

fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

pub async fn rpc(address: SocketAddr, key: &KeyPair, method: &str, params: &Value) -> Result<Value> {
    let request = key.request(&message(method, params), "connection: close\r\n");
    exchange(address, request.as_bytes()).await?.json()
}

/// Returns a failure of the tool as the inner error. Asks a replica again that misses its store for
/// a moment: it refuses the request before it does anything. One that never finds it shows after a
/// minute.
pub async fn call(address: SocketAddr, key: &KeyPair, tool: &str, arguments: &Value) -> Result<Result<Value, Value>> {
    let call = json!({"name": tool, "arguments": arguments});
    for _ in 0..300 {
        let answer = rpc(address, key, "tools/call", &call).await?;
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        if !why.starts_with("this replica of the server cannot reach its store") {
            return outcome(&answer);
        }
        sleep(Duration::from_millis(200)).await;
    }
    bail!("the replica does not reach its store")
}

pub fn outcome(answer: &Value) -> Result<Result<Value, Value>> {
    let content = answer["result"]["content"].as_array().with_context(|| format!("no result: {answer}"))?;
    let (first, notes) = content.split_first().with_context(|| format!("no item: {answer}"))?;
    let is_note = |item: &Value| item["text"].as_str().is_some_and(|text| text.starts_with("Left out"));
    ensure!(notes.iter().all(is_note), "an item that is no note: {answer}");
    let value = serde_json::from_str(first["text"].as_str().context("an item without text")?)?;
    match answer["result"]["isError"].as_bool().with_context(|| format!("no `isError`: {answer}"))? {
        true => Ok(Err(value)),
        false => Ok(Ok(value)),
    }
}
