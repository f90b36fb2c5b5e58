//! Reads a usual request in one pass. This module exists for speed alone: the parent reads every
//! message without it.

use super::message::{Message, ParamMembers, Params, RpcRequest, VERSION, is_id};
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use toolwarrant_base::json;

/// Returns `None` for any message but a valid request.
pub(super) fn read_request(json: &str) -> Option<Message<'_>> {
    // A derived reader would accept a list of an object's values as the object.
    json.trim_start().strip_prefix('{')?;
    let Usual { jsonrpc, id, method, params, .. } = json::read(json).ok()?;
    let (id, method) = (id.get(), toolwarrant_core::args::read_text(method.get())?);
    let params = params.map_or(Params::Absent, Params::Read);
    let sound = jsonrpc.get() == VERSION && is_id(id);
    sound.then_some(Message::Request(RpcRequest { id, method, params, json }))
}

#[derive(serde::Deserialize)]
struct Usual<'a> {
    #[serde(borrow)]
    jsonrpc: &'a RawValue,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "object")]
    params: Option<ParamMembers<'a>>,
    // Refuses a message with one of these members twice.
    #[serde(rename = "result")]
    _result: Option<IgnoredAny>,
    #[serde(rename = "error")]
    _error: Option<IgnoredAny>,
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum ParamName {
    Name,
    Arguments,
    #[serde(rename = "_meta")]
    Meta,
    Cursor,
    ProtocolVersion,
    #[serde(other)]
    Other,
}

fn object<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ParamMembers<'a>>, D::Error> {
    struct Object;
    impl<'de> Visitor<'de> for Object {
        type Value = ParamMembers<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParamMembers<'de>, A::Error> {
            let mut members = ParamMembers::default();
            while let Some(name) = map.next_key()? {
                let member = match name {
                    ParamName::Name => &mut members.name,
                    ParamName::Arguments => &mut members.arguments,
                    ParamName::Meta => &mut members.meta,
                    ParamName::Cursor => &mut members.cursor,
                    ParamName::ProtocolVersion => &mut members.protocol_version,
                    ParamName::Other => {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                };
                if member.replace(map.next_value()?).is_some() {
                    return Err(A::Error::custom("a member occurs twice"));
                }
            }
            Ok(members)
        }
    }
    deserializer.deserialize_map(Object).map(Some)
}
