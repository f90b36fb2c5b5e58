//! The messages of JSON-RPC 2.0 as they stand in a body.

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use toolwarrant_base::wording::Words;

/// The value of `jsonrpc`.
pub(super) const VERSION: &str = r#""2.0""#;

/// A message, by the answer that it needs.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// A request, which is answered.
    Request(RpcRequest<'a>),
    /// A notification, or a response to a request that this server never made. Neither is answered.
    Unanswered,
    /// Not a JSON-RPC message, with the reason. `id` is its id if it could be read.
    Invalid { id: Option<&'a str>, what: Words },
}

/// A request.
#[derive(Debug)]
pub(crate) struct RpcRequest<'a> {
    /// The JSON of a string or an integer.
    pub(crate) id: &'a str,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
    /// The whole message.
    pub(super) json: &'a str,
}

/// The parameters of a request.
#[derive(Debug)]
pub(crate) enum Params<'a> {
    /// Left out, or null.
    Absent,
    /// An object in which no member that a method here reads occurs twice.
    Read(ParamMembers<'a>),
    /// Any other value. [`RpcRequest::params_json`] returns it.
    Unusual,
}

/// The members of `params` that the methods here read, each as JSON.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParamMembers<'a> {
    pub(crate) name: Option<&'a RawValue>,
    pub(crate) arguments: Option<&'a RawValue>,
    pub(crate) meta: Option<&'a RawValue>,
    pub(crate) cursor: Option<&'a RawValue>,
    pub(crate) protocol_version: Option<&'a RawValue>,
}

impl<'a> RpcRequest<'a> {
    /// Returns the JSON of the parameters. It reads the message again, which only refusals need.
    pub(crate) fn params_json(&self) -> Option<&'a RawValue> {
        match self.params {
            Params::Absent => None,
            Params::Read(_) | Params::Unusual => serde_json::from_str::<Members<'a>>(self.json).ok()?.params,
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

/// The members of a message that JSON-RPC defines. A member that is null differs from one that is
/// absent.
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

/// Reads a member that is present, even if it is null. A plain `Option` would treat null as absent.
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Returns true if JSON is a string or an integer.
pub(super) fn is_id(json: &str) -> bool {
    json.starts_with('"') || json.strip_prefix('-').unwrap_or(json).bytes().all(|byte| byte.is_ascii_digit())
}
