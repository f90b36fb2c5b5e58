//! One line of a client: its kind, and the parts of it that HTTP needs in headers. Start at
//! [`Message::read`].
//!
//! An invalid message also goes to the server, which reports the error. This module only finds out
//! if an answer is due, and under which ids.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use toolwarrant_common::json;

#[derive(Debug)]
pub(super) struct Message {
    pub(super) body: Bytes,
    pub(super) kind: Kind,
    /// The ids to answer, as JSON; `null` for a message without a readable id.
    pub(super) ids: Vec<String>,
    pub(super) head: Head,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cancel(String),
    /// Its answer names the revision.
    Initialize,
    /// Its answer says which tools only read.
    List,
    Call(String),
    Other,
    Batch,
}

/// Headers that spare gateways from parsing the message.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// From 2026-07-28 on, every message has one in its `_meta`.
    pub(super) revision: Option<HeaderValue>,
    pub(super) method: Option<HeaderValue>,
    pub(super) name: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    /// Of any type, so that the id of an invalid message is found too.
    method: Option<Value>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    name: Value,
    uri: Value,
    #[serde(rename = "taskId")]
    task_id: Value,
    #[serde(rename = "requestId")]
    request_id: Value,
    #[serde(rename = "_meta")]
    meta: Value,
}

const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

impl Message {
    pub(super) fn read(body: Bytes) -> Self {
        if let Ok(envelope) = json::read_bytes::<Envelope<'_>>(&body) {
            let ids = envelope.reply_id().into_iter().collect();
            let params = envelope.params();
            let (kind, head) = (envelope.kind(&params), envelope.head(&params));
            return Self { kind, ids, head, body };
        }
        // An object here has a repeated or malformed member. The server reports the error.
        let batch = json::read_bytes::<Vec<&RawValue>>(&body);
        let kind = if batch.is_ok() { Kind::Batch } else { Kind::Other };
        let awaited = |item: &RawValue| {
            let envelope = json::read::<Envelope<'_>>(item.get());
            envelope.map_or(Some(NO_ID.to_owned()), |envelope| envelope.reply_id())
        };
        // A batch has one set of headers. The first revision that an item names applies to all.
        let revision = batch.iter().flatten().find_map(|item| {
            let envelope = json::read::<Envelope<'_>>(item.get()).ok()?;
            envelope.head(&envelope.params()).revision
        });
        let ids = match &batch {
            Ok(items) if !items.is_empty() => items.iter().filter_map(|item| awaited(item)).collect(),
            _ => vec![NO_ID.to_owned()],
        };
        Self { kind, ids, head: Head { revision, ..Head::default() }, body }
    }

    pub(super) fn answer(&self, error: &Value) -> Option<Bytes> {
        let one = |id: &String| {
            let id: Value = json::read(id).unwrap_or_default();
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        };
        let answers: Vec<_> = self.ids.iter().map(one).collect();
        match (&self.kind, &answers[..]) {
            (_, []) => None,
            (Kind::Batch, _) => Some(Value::from(answers).to_string().into()),
            (_, [first, ..]) => Some(first.to_string().into()),
        }
    }
}

pub(super) const NO_ID: &str = "null";

impl Envelope<'_> {
    /// Returns no id for notifications and responses. A message that is neither of them, nor a
    /// request, gets a refusal.
    fn reply_id(&self) -> Option<String> {
        let Self { id, method, params: _, result, error } = self;
        let is_response = method.is_none() && (result.is_some() || error.is_some());
        let is_notification = method.is_some() && id.is_none();
        (!is_response && !is_notification).then(|| id.map_or(NO_ID.to_owned(), canonical))
    }

    fn params(&self) -> Params {
        self.params.and_then(|params| json::read(params.get()).ok()).unwrap_or_default()
    }

    fn method(&self) -> Option<&str> {
        self.method.as_ref().and_then(Value::as_str)
    }

    fn kind(&self, params: &Params) -> Kind {
        match self.method().unwrap_or_default() {
            "notifications/cancelled" if self.id.is_none() => Kind::Cancel(params.request_id.to_string()),
            "initialize" => Kind::Initialize,
            "tools/list" => Kind::List,
            "tools/call" => Kind::Call(params.name.as_str().unwrap_or_default().to_owned()),
            _ => Kind::Other,
        }
    }

    fn head(&self, params: &Params) -> Head {
        let method = self.method();
        let name = match method {
            Some("tools/call" | "prompts/get") => params.name.as_str(),
            Some("resources/read") => params.uri.as_str(),
            Some("tasks/get" | "tasks/cancel" | "tasks/update") => params.task_id.as_str(),
            _ => None,
        };
        let method = method.filter(|method| is_plain(method));
        let value = |text: &str| HeaderValue::from_str(text).ok();
        Head {
            revision: params.meta[REVISION].as_str().and_then(value),
            method: method.and_then(value),
            name: name.and_then(|name| value(&encode_name(name))),
        }
    }
}

/// Removes white space, so that two spellings of one id are equal.
pub(super) fn canonical(id: &RawValue) -> String {
    json::read::<Value>(id.get()).unwrap_or_default().to_string()
}

/// Treats a member that is `null` as present, unlike a missing one.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Encodes as Streamable HTTP of 2026-07-28 defines it under "Value Encoding".
fn encode_name(name: &str) -> Cow<'_, str> {
    let marked = name.starts_with(OPEN) && name.ends_with(CLOSE);
    if is_plain(name) && !marked {
        name.into()
    } else {
        format!("{OPEN}{}{CLOSE}", BASE64_STANDARD.encode(name)).into()
    }
}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

fn is_plain(text: &str) -> bool {
    text.trim() == text && text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Message {
        Message::read(Bytes::copy_from_slice(line.as_bytes()))
    }

    #[test]
    fn a_message_is_answered_under_its_ids_if_an_answer_is_due() {
        let cases: &[(&str, &[&str])] = &[
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, &["1"]),
            (r#"{"jsonrpc":"2.0","id":"a\u0062","method":"ping","params":[]}"#, &[r#""ab""#]),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, &[]),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, &[]),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#, &[]),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, &["null"]),
            (r#"{"jsonrpc":"2.0","id":7}"#, &["7"]),
            (r#"{"id":1,"id":2,"method":"ping"}"#, &["null"]),
            (r#"{"id":1,"method":5}"#, &["1"]),
            ("5", &["null"]),
            ("{", &["null"]),
            ("[]", &["null"]),
            (r#"[{"id":1,"method":"ping"},{"method":"x"},{"id":"b","method":"ping"},5]"#, &["1", r#""b""#, "null"]),
            (r#"[{"method":"x"}]"#, &[]),
        ];
        for (line, ids) in cases {
            assert_eq!(read(line).ids, *ids, "{line}");
        }
    }

    #[test]
    fn a_name_goes_into_a_header_as_the_protocol_says() {
        let cases = [
            ("list_printers", "list_printers"),
            ("Hello, \u{4e16}\u{754c}", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (name, header) in cases {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
            let Message { head, .. } = read(&call.to_string());
            assert_eq!(
                (head.method.expect("a method"), head.name.expect("a name")),
                ("tools/call".parse().expect("a value"), header.parse().expect("a value"))
            );
        }
    }
}
