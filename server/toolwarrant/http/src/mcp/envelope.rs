//! Reads the JSON-RPC 2.0 messages in a body. It does not interpret methods and parameters.
//! Everything borrows from the body, and ids are echoed exactly as they were sent. Start at
//! [`read`].

mod message;
mod quick;

use message::{Members, VERSION, is_id};
pub(super) use message::{Message, ParamMembers, Params, RpcRequest, present};

use crate::context::{reason, without_mark};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::fmt;
use toolwarrant_base::bytes::is_deeper_than;
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::{json, words};

const MAX_BATCH: usize = 50;

/// No tool needs as much, and the stack has room for far more.
const MAX_DEPTH: usize = 64;

#[derive(Debug)]
pub(super) enum Body<'a> {
    One(Message<'a>),
    Batch(Vec<Message<'a>>),
}

#[derive(Debug)]
pub(super) enum UnreadableBody {
    /// Not JSON, not UTF-8, or too deep.
    NotJson(Words),
    /// JSON, but neither an object nor a list.
    NotRpc(Words),
}

pub(super) fn read(bytes: &[u8]) -> Result<Body<'_>, UnreadableBody> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| UnreadableBody::NotJson(words!["the body is not UTF-8 at byte ", error.valid_up_to()]))?;
    let text = without_mark(text);
    if is_deeper_than(MAX_DEPTH, bytes) {
        return Err(UnreadableBody::NotJson(words!["the body is nested deeper than ", MAX_DEPTH, " levels"]));
    }
    let not_json = |error: serde_json::Error| {
        let (why, line, column) = (reason(&error), error.line(), error.column());
        UnreadableBody::NotJson(words!["the body is not JSON: ", why, " at line ", line, " column ", column])
    };
    match text.trim_start_matches([' ', '\t', '\r', '\n']).as_bytes().first() {
        Some(b'[') => {
            let Batch(members) = json::read(text).map_err(|error| match error.classify() {
                Category::Data => UnreadableBody::NotRpc(words![reason(&error)]),
                _ => not_json(error),
            })?;
            members
                .into_iter()
                .map(|member| message(member.get()).map_err(not_json))
                .collect::<Result<_, _>>()
                .map(Body::Batch)
        }
        Some(b'{') => message(text).map_err(not_json).map(Body::One),
        _ => {
            json::read::<&RawValue>(text).map_err(not_json)?;
            Err(UnreadableBody::NotRpc("the body is neither an object nor a list".into()))
        }
    }
}

struct Batch<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Batch<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = list.next_element()? {
                    if messages.len() == MAX_BATCH {
                        return Err(A::Error::custom(format_args!("a batch has at most {MAX_BATCH} messages")));
                    }
                    messages.push(message);
                }
                Ok(Batch(messages))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

fn message(json: &str) -> Result<Message<'_>, serde_json::Error> {
    if let Some(request) = quick::read_request(json) { Ok(request) } else { parse_unusual(json) }
}

fn parse_unusual(json: &str) -> Result<Message<'_>, serde_json::Error> {
    if !json.trim_start().starts_with('{') {
        return Ok(Message::Invalid { id: None, what: words![Echo::of(json), " is no JSON-RPC message"] });
    }
    let members: Members<'_> = match json::read(json) {
        Ok(members) => members,
        Err(error) if error.classify() == Category::Data => {
            return Ok(Message::Invalid { id: None, what: words!["this is no JSON-RPC message: ", reason(&error)] });
        }
        Err(error) => return Err(error),
    };
    let Members { jsonrpc, id, method, params, result, error } = members;
    let known = id.map(RawValue::get).filter(|id| is_id(id));
    let invalid = |what: Words| Ok(Message::Invalid { id: known, what });
    if let (Some(id), None) = (id, known) {
        return invalid(words!["`id` is ", Echo::of(id.get()), "; it must be a string or an integer"]);
    }
    if jsonrpc.is_none_or(|version| version.get() != VERSION) {
        return invalid("`jsonrpc` must be \"2.0\"".into());
    }
    let Some(method) = method else {
        return match (id, result.is_some() || error.is_some()) {
            (Some(_), true) => Ok(Message::Unanswered),
            _ => invalid("`method` is missing".into()),
        };
    };
    let Some(method) = toolwarrant_core::args::read_text(method.get()) else {
        return invalid(words!["`method` is ", Echo::of(method.get()), "; it must be a string"]);
    };
    Ok(match known {
        Some(id) => {
            let params = params.filter(|params| params.get() != "null").map_or(Params::Absent, |_| Params::Unusual);
            Message::Request(RpcRequest { id, method, params, json })
        }
        None => Message::Unanswered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_message(message: &Message<'_>) -> String {
        match message {
            Message::Request(request) => {
                let RpcRequest { id, method, params: _, json: _ } = request;
                format!("{id} {method} {:?}", request.params_json().map(RawValue::get))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_quick_reader_of_messages_agrees_with_the_thorough_one() {
        let ids = ["1", "-1", "\"a\"", "null", "1.5", "[]", "01"];
        let methods = ["\"tools/call\"", "\"to\\u006fls\"", "\"\\ud800\"", "7", "null"];
        let params = [
            "",
            "{}",
            "{\"name\":\"x\",\"arguments\":{\"a\":[1,{}]}}",
            "null",
            "[]",
            "[\"x\"]",
            "{\"name\":1,\"name\":2}",
            "{\"cursor\":\"\\n\"}",
            "{",
            "1e999",
        ];
        let ends =
            ["", ",\"result\":1", ",\"result\":1,\"result\":2", ",\"x\":1,\"x\":2", ",\"jsonrpc\":\"2.0\"", " x"];
        let mut read = 0;
        for (id, method) in ids.iter().flat_map(|id| methods.map(|method| (id, method))) {
            for (params, end) in params.iter().flat_map(|params| ends.map(|end| (params, end))) {
                let params = if params.is_empty() { String::new() } else { format!(",\"params\":{params}") };
                for version in ["\"2.0\"", "2.0", "\"2.\\u0030\""] {
                    let text = format!("{{\"jsonrpc\":{version},\"id\":{id}{params},\"method\":{method}{end}}}");
                    let Some(usual) = quick::read_request(&text) else { continue };
                    read += 1;
                    assert_eq!(
                        describe_message(&usual),
                        describe_message(&parse_unusual(&text).expect(&text)),
                        "{text}"
                    );
                }
            }
        }
        assert_eq!(read, 3 * 2 * 4 * 3, "ids, methods, parameters and ends that are usual");
        let list = r#"["2.0",1,"tools/call",{"name":"x"},null,null]"#;
        assert!(matches!(message(list), Ok(Message::Invalid { id: None, .. })), "the values of a message are none");
    }
}
