//! Requests, and checks of replies.

use crate::server::Server;
use anyhow::{Context, Result, ensure};
use kit::KeyPair;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use toolwarrant::base::json;
use toolwarrant_signing as signing;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const PAGE: u32 = 100;

pub(crate) const DEVICE: u32 = 1;

/// Of the protocol, the oldest first.
pub(crate) const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

pub(crate) fn operations() -> [(&'static str, Value); 4] {
    let client = json!({"name": "bench", "version": "1"});
    let hello = json!({"protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": client});
    [
        ("initialize", message("initialize", hello)),
        ("tools/list", message("tools/list", json!({}))),
        ("get_device", get_device(DEVICE)),
        ("list_devices", call("list_devices", json!({"limit": PAGE}))),
    ]
}

pub(crate) fn get_device(n: u32) -> Value {
    call("get_device", json!({"device_id": device(n)}))
}

pub(crate) fn device(n: u32) -> String {
    format!("phone-{n:07}")
}

pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    message("tools/call", json!({"name": tool, "arguments": arguments}))
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn request(key: &KeyPair, message: &Value) -> Vec<u8> {
    with_headers(key, message, "")
}

/// Names the revision in a header. Since 2026-07-28 the message has it, too.
pub(crate) fn in_revision(key: &KeyPair, revision: &str, tool: &str, arguments: &Value) -> Vec<u8> {
    let mut message = call(tool, arguments.clone());
    let mut headers = format!("MCP-Protocol-Version: {revision}\r\n");
    if revision == "2026-07-28" {
        headers += &format!("Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        });
    }
    with_headers(key, &message, &headers)
}

fn with_headers(KeyPair { id, secret }: &KeyPair, message: &Value, headers: &str) -> Vec<u8> {
    let body = message.to_string();
    let length = body.len();
    let credentials = format!("X-Api-Key: {id}\r\nX-Api-Secret: {secret}\r\n");
    let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let head = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{types}{credentials}{headers}");
    format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

pub(crate) fn sign_get(KeyPair { id, secret }: &KeyPair, target: &str) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (timestamp, nonce) = (now.as_secs().to_string(), format!("{:032x}", NEXT.fetch_add(1, Relaxed)));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, idempotency_key) = ("GET", "");
    let request = signing::Request {
        key_id: id,
        timestamp: &timestamp,
        nonce: &nonce,
        method,
        path,
        query,
        idempotency_key,
        body: b"",
    };
    let signature = signing::header(&signing::sign(secret, &request.canonical()));
    let headers = format!("X-Api-Key: {id}\r\nX-Timestamp: {timestamp}\r\nX-Nonce: {nonce}\r\n");
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}X-Signature: {signature}\r\n\r\n").into_bytes()
}

pub(crate) struct WireReply(Vec<u8>);

pub(crate) fn ask(server: &Server, request: &[u8]) -> Result<WireReply> {
    let mut stream = TcpStream::connect(server.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&closing(request)?)?;
    let mut octets = Vec::new();
    stream.read_to_end(&mut octets)?;
    let reply = WireReply(octets);
    let body: Value = json::read_bytes(reply.body()?)?;
    let rpc = body["id"] == 1 && body["result"].is_object() && body["result"]["isError"] != true;
    let sound = rpc || body["jsonrpc"].is_null();
    ensure!(reply.0.starts_with(OK) && sound, "{}", String::from_utf8_lossy(&reply.0));
    Ok(reply)
}

pub(crate) fn closing(request: &[u8]) -> Result<Vec<u8>> {
    let line = find(request, b"\r\n").context("a request line")?;
    Ok([&request[..line], b"\r\nConnection: close", &request[line..]].concat())
}

impl WireReply {
    pub(crate) fn body(&self) -> Result<&[u8]> {
        let at = find(&self.0, HEAD_END).context("a reply without an end of its head")?;
        Ok(&self.0[at + HEAD_END.len()..])
    }

    pub(crate) fn form(&self) -> Result<Form> {
        let body = self.body()?;
        Ok(Form { length: Some(body.len()), begins: body[..24].into(), ends: body[body.len() - 6..].into() })
    }
}

/// The beginning and the end identify a success: a failure has `isError` there.
pub(crate) struct Form {
    length: Option<usize>,
    begins: Box<[u8]>,
    ends: Box<[u8]>,
}

impl Form {
    pub(crate) fn of_any_length(self) -> Self {
        Self { length: None, ..self }
    }

    pub(crate) fn fits(&self, head: &[u8], body: &[u8]) -> bool {
        let Self { length, begins, ends } = self;
        head.starts_with(OK)
            && length.is_none_or(|length| body.len() == length)
            && body.starts_with(begins)
            && body.ends_with(ends)
    }
}

pub(crate) fn length_of(head: &[u8]) -> Option<usize> {
    let digits = &head[find(head, b"\r\ncontent-length: ")? + 18..];
    str::from_utf8(&digits[..find(digits, b"\r\n")?]).ok()?.parse().ok()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

pub(crate) const HEAD_END: &[u8] = b"\r\n\r\n";

pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}
