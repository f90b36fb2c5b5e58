//! The messages of JSON-RPC 2.0 as they stand in a body.

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use toolwarrant_base::json;
use toolwarrant_base::wording::Words;

pub(super) const VERSION: &str = r#""2.0""#;

#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// It is answered.
    Request(RpcRequest<'a>),
    /// A notification, or a response to a request that this server never made.
    Unanswered,
    /// Has its id if it could be read.
    Invalid { id: Option<&'a str>, what: Words },
}

#[derive(Debug)]
pub(crate) struct RpcRequest<'a> {
    /// The JSON of a string or an integer.
    pub(crate) id: &'a str,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
    pub(super) json: &'a str,
}

#[derive(Debug)]
pub(crate) enum Params<'a> {
    /// Left out, or null.
    Absent,
    /// An object in which no member that a method here reads occurs twice.
    Read(ParamMembers<'a>),
    Unusual,
}

/// The members that the methods here read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParamMembers<'a> {
    pub(crate) name: Option<&'a RawValue>,
    pub(crate) arguments: Option<&'a RawValue>,
    pub(crate) meta: Option<&'a RawValue>,
    pub(crate) cursor: Option<&'a RawValue>,
    pub(crate) protocol_version: Option<&'a RawValue>,
}

impl<'a> RpcRequest<'a> {
    /// Reads the message again, which only refusals need.
    pub(crate) fn params_json(&self) -> Option<&'a RawValue> {
        match self.params {
            Params::Absent => None,
            Params::Read(_) | Params::Unusual => json::read::<Members<'a>>(self.json).ok()?.params,
        }
    }
}

impl<'a> Message<'a> {
    pub(crate) fn request(&self) -> Option<&RpcRequest<'a>> {
        match self {
            Self::Request(request) => Some(request),
            Self::Unanswered | Self::Invalid { .. } => None,
        }
    }

    pub(crate) fn wants_answer(&self) -> bool {
        !matches!(self, Self::Unanswered)
    }
}

/// A member that is null differs from one that is absent.
#[derive(serde::Deserialize)]
pub(super) struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) error: Option<&'a RawValue>,
}

/// Reads a member even if it is null. A plain `Option` would treat null as absent.
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub(super) fn is_id(json: &str) -> bool {
    json.starts_with('"') || json.strip_prefix('-').unwrap_or(json).bytes().all(|byte| byte.is_ascii_digit())
}
