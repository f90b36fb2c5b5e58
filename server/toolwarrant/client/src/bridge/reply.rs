//! The server's answer to one message. Start at [`Reply::read`].
//!
//! A server that refuses a request before it reads it does not know the id, and answers with
//! `null`. The client then gets the refusal under the ids that it waits for.

use super::message::{Kind, Message, NO_ID, canonical};
use bytes::Bytes;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolwarrant_common::json;

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) line: Option<Bytes>,
    pub(super) complaint: Option<String>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Value>,
}

impl Reply {
    pub(super) fn read(message: &Message, body: &Bytes) -> Option<Self> {
        let response: Option<Response<'_>> = json::read_bytes(body).ok();
        let refusal = response.as_ref().and_then(|response| response.error.as_ref());
        let complaint = refusal.and_then(|error| Some(error["message"].as_str()?.to_owned()));
        if message.ids.is_empty() {
            return (body.is_empty() || complaint.is_some()).then_some(Self { line: None, complaint });
        }
        let line = match (&message.kind, response) {
            (Kind::Batch, None) => {
                json::read_bytes::<Vec<&RawValue>>(body).ok()?;
                body.clone()
            }
            (_, Some(Response { id, result, error })) => {
                let id = canonical(id);
                match error {
                    Some(error) if id == NO_ID && message.ids[0] != NO_ID => message.answer(&error)?,
                    None if result.is_none() => return None,
                    _ if message.kind != Kind::Batch && ![&id, NO_ID].contains(&&*message.ids[0]) => return None,
                    _ => body.clone(),
                }
            }
            (_, None) => return None,
        };
        Some(Self { line: Some(line), complaint })
    }

    pub(super) fn revision(&self) -> Option<HeaderValue> {
        self.result()["protocolVersion"].as_str().and_then(|revision| HeaderValue::from_str(revision).ok())
    }

    pub(super) fn readers(&self) -> Vec<String> {
        let result = self.result();
        let tools = result["tools"].as_array().into_iter().flatten();
        let readers = tools.filter(|tool| tool["annotations"]["readOnlyHint"] == true);
        readers.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    }

    fn result(&self) -> Value {
        let response = self.line.as_deref().and_then(|line| json::read_bytes::<Response<'_>>(line).ok());
        let result = response.and_then(|response| json::read(response.result?.get()).ok());
        result.unwrap_or_default()
    }
}
