//! Requests, and the checks of replies. Opens one connection for a reply that is checked; does not
//! load the server.

use crate::folder::Key;
use crate::server::Server;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use toolwarrant_signing as signing;

/// The longest time for a reply.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The number of devices on a page.
pub(crate) const PAGE: u32 = 100;

/// The device of requests that can use any device.
pub(crate) const DEVICE: u32 = 1;

/// The revisions of the protocol, the first one first.
pub(crate) const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Returns the operations that every section measures, in the first revision.
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

/// Reads the n-th device.
pub(crate) fn get_device(n: u32) -> Value {
    call("get_device", json!({"device_id": device(n)}))
}

/// Returns the id of the n-th simulated device, from 1 on.
pub(crate) fn device(n: u32) -> String {
    format!("phone-{n:07}")
}

/// Returns a call of a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    message("tools/call", json!({"name": tool, "arguments": arguments}))
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Returns a message as the bytes of a request.
pub(crate) fn request(key: &Key, message: &Value) -> Vec<u8> {
    with_headers(key, message, "")
}

/// Returns a call in a revision that is named in a header. Since 2026-07-28 the message contains
/// it, too.
pub(crate) fn in_revision(key: &Key, revision: &str, tool: &str, arguments: &Value) -> Vec<u8> {
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

fn with_headers(Key { key_id, secret }: &Key, message: &Value, headers: &str) -> Vec<u8> {
    let body = message.to_string();
    let length = body.len();
    let credentials = format!("X-Api-Key: {key_id}\r\nX-Api-Secret: {secret}\r\n");
    let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let head = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{types}{credentials}{headers}");
    format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Returns a signed GET. Each has its own nonce.
pub(crate) fn sign_get(Key { key_id, secret }: &Key, target: &str) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (timestamp, nonce) = (now.as_secs().to_string(), format!("{:032x}", NEXT.fetch_add(1, Relaxed)));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, idempotency_key) = ("GET", "");
    let request = signing::Request {
        key_id,
        timestamp: &timestamp,
        nonce: &nonce,
        method,
        path,
        query,
        idempotency_key,
        body: b"",
    };
    let signature = signing::header(&signing::sign(secret, &request.canonical()));
    let headers = format!("X-Api-Key: {key_id}\r\nX-Timestamp: {timestamp}\r\nX-Nonce: {nonce}\r\n");
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}X-Signature: {signature}\r\n\r\n").into_bytes()
}

/// A reply that was checked and is a success.
pub(crate) struct WireReply(Vec<u8>);

/// Returns the reply to one request, which must be a success.
pub(crate) fn ask(server: &Server, request: &[u8]) -> Result<WireReply> {
    let mut stream = TcpStream::connect(server.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&closing(request)?)?;
    let mut octets = Vec::new();
    stream.read_to_end(&mut octets)?;
    let reply = WireReply(octets);
    let body: Value = serde_json::from_slice(reply.body()?)?;
    let rpc = body["id"] == 1 && body["result"].is_object() && body["result"]["isError"] != true;
    let sound = rpc || body["jsonrpc"].is_null();
    ensure!(reply.0.starts_with(OK) && sound, "{}", String::from_utf8_lossy(&reply.0));
    Ok(reply)
}

/// Returns the same request with a header that asks the server to close the connection.
pub(crate) fn closing(request: &[u8]) -> Result<Vec<u8>> {
    let line = find(request, b"\r\n").context("a request line")?;
    Ok([&request[..line], b"\r\nConnection: close", &request[line..]].concat())
}

impl WireReply {
    pub(crate) fn body(&self) -> Result<&[u8]> {
        let at = find(&self.0, HEAD_END).context("a reply without an end of its head")?;
        Ok(&self.0[at + HEAD_END.len()..])
    }

    /// Returns the form of all replies to that request.
    pub(crate) fn form(&self) -> Result<Form> {
        let body = self.body()?;
        Ok(Form { length: Some(body.len()), begins: body[..24].into(), ends: body[body.len() - 6..].into() })
    }
}

/// The form of a successful reply. Its beginning and its end identify it: a failure has `isError`
/// there.
pub(crate) struct Form {
    length: Option<usize>,
    begins: Box<[u8]>,
    ends: Box<[u8]>,
}

impl Form {
    /// Returns the same form for requests that differ, with replies of any length.
    pub(crate) fn of_any_length(self) -> Self {
        Self { length: None, ..self }
    }

    /// Returns true if a reply fits: its head, up to where its body begins, and its body.
    pub(crate) fn fits(&self, head: &[u8], body: &[u8]) -> bool {
        let Self { length, begins, ends } = self;
        head.starts_with(OK)
            && length.is_none_or(|length| body.len() == length)
            && body.starts_with(begins)
            && body.ends_with(ends)
    }
}

/// Returns the length of the body that a head announces.
pub(crate) fn length_of(head: &[u8]) -> Option<usize> {
    let digits = &head[find(head, b"\r\ncontent-length: ")? + 18..];
    str::from_utf8(&digits[..find(digits, b"\r\n")?]).ok()?.parse().ok()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// The end of a head.
pub(crate) const HEAD_END: &[u8] = b"\r\n\r\n";

/// Returns the position of the wanted bytes.
pub(crate) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}
