//! The parts of an HTTP request that describe its message: the revision of the protocol and, in
//! revisions without a handshake, `_meta` and headers that repeat a part of the body.
//!
//! A header that contradicts the body is refused, because intermediaries read only the headers.
//! Headers are compared byte for byte. `initialize` is served regardless of its headers. Start at
//! [`of_message`].

use super::envelope::{Message, ParamMembers, Params, RpcRequest, present};
use super::follow;
use super::method::Method;
use super::refusal::HttpRefusal;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use toolwarrant_base::wording::Echo;
use toolwarrant_base::{json, words};
use toolwarrant_core::args::read_text;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::revision::Revision;

struct Mirror {
    header: HeaderName,
    shown: &'static str,
    read: fn(&str) -> Option<Cow<'_, str>>,
}

static REVISION: Mirror =
    Mirror { header: HeaderName::from_static("mcp-protocol-version"), shown: "MCP-Protocol-Version", read: literal };
static METHOD: Mirror = Mirror { header: HeaderName::from_static("mcp-method"), shown: "Mcp-Method", read: literal };
static NAME: Mirror = Mirror { header: HeaderName::from_static("mcp-name"), shown: "Mcp-Name", read: decode_value };

/// Returns the revision in which a single message is answered. An error ends the HTTP request.
pub(super) fn of_message<H: Handlers>(headers: &HeaderMap, message: &Message<'_>) -> Result<Revision, HttpRefusal> {
    let Some(request) = message.request() else { return Ok(revision::<H>(headers)?) };
    let named = revision::<H>(headers);
    if request.method == "initialize" && !named.as_ref().is_ok_and(|named| lacks_handshake(*named, request)) {
        return Ok(Revision::FALLBACK);
    }
    let checked = named.and_then(|named| match named.features().handshake {
        true => Ok(named),
        false => check::<H>(headers, request, named).map(|()| named),
    });
    checked.map_err(|failure| HttpRefusal { failure, id: request.id.to_owned() })
}

pub(super) fn revision<H: Handlers>(headers: &HeaderMap) -> Result<Revision, Failure> {
    let mut named = headers.get_all(&REVISION.header).iter().map(HeaderValue::as_bytes);
    let Some(first) = named.next() else { return Ok(Revision::FALLBACK) };
    let served = H::CATALOGUE.service.served;
    // Some proxies send headers twice. Two different values name no revision.
    let known = str::from_utf8(first).ok().and_then(|name| Revision::from_request(name, served));
    if let (Some(revision), true) = (known, named.all(|other| other == first)) {
        return Ok(revision);
    }
    let all: Vec<_> = headers.get_all(&REVISION.header).iter().map(HeaderValue::as_bytes).collect();
    let sent = Echo::of(&String::from_utf8_lossy(&all.join(&b", "[..])));
    let served: Vec<_> = served.iter().map(|revision| revision.features().name).collect();
    let what = words!["the revision `", sent, "` of MCP-Protocol-Version is not served here"];
    let failure = Failure::new(H::CATALOGUE.roles.unsupported_version, what);
    Err(failure.with("supported", served).with("requested", sent.as_str()))
}

fn lacks_handshake(named: Revision, request: &RpcRequest<'_>) -> bool {
    !named.features().handshake && own(request).is_some_and(|own| own.meta.is_some())
}

fn check<H: Handlers>(headers: &HeaderMap, request: &RpcRequest<'_>, named: Revision) -> Result<(), Failure> {
    let method = &request.method;
    let invalid = |what: &'static str| Failure::new(H::CATALOGUE.roles.invalid_params, what);
    METHOD.check::<H>(headers, method, method)?;
    let known = Method::of::<H>(method, named);
    let Own { name, meta } = own(request).ok_or_else(|| invalid("`params` is no object, or names a member twice"))?;
    let name = match known {
        Some(Method::CallTool) => name.and_then(|name| read_text(name.get())),
        // Some hosts leave the header out here, after the call that made the task.
        Some(Method::Task(_)) => task_id(request).filter(|_| headers.contains_key(&NAME.header)),
        _ => None,
    };
    if let Some(name) = name {
        NAME.check::<H>(headers, method, &name)?;
    }
    let Meta { revision, capabilities } =
        meta.and_then(object).ok_or_else(|| invalid("`params` lacks `_meta`, an object"))?;
    let revision = revision
        .and_then(|revision| read_text(revision.get()))
        .ok_or_else(|| invalid("`_meta` lacks `io.modelcontextprotocol/protocolVersion`, a string"))?;
    if !capabilities.is_some_and(|capabilities| capabilities.get().starts_with('{')) {
        return Err(invalid("`_meta` lacks `io.modelcontextprotocol/clientCapabilities`, an object"));
    }
    REVISION.check::<H>(headers, method, &revision)?;
    if matches!(known, Some(Method::Task(_))) && !follows(request) {
        return Err(follow::missing_capability(H::CATALOGUE));
    }
    known.map(drop).ok_or_else(|| Method::unknown::<H>(method))
}

/// Returns true if the request declares the extension for tasks, which it does for itself alone.
pub(super) fn follows(request: &RpcRequest<'_>) -> bool {
    let meta = own(request).and_then(|own| object::<Meta<'_>>(own.meta?));
    let capabilities = meta.and_then(|meta| object::<Capabilities<'_>>(meta.capabilities?));
    let extensions = capabilities.and_then(|capabilities| object::<Extensions<'_>>(capabilities.extensions?));
    extensions.and_then(|extensions| extensions.tasks).is_some_and(|tasks| tasks.get().starts_with('{'))
}

/// Returns `None` if there is none, or more than one.
pub(super) fn task_id<'a>(request: &RpcRequest<'a>) -> Option<Cow<'a, str>> {
    let TaskParams { task_id } = request.params_json().and_then(object)?;
    read_text(task_id?.get())
}

/// Returns `None` if the parameters are not an object, or name a used member twice.
fn own<'a>(request: &RpcRequest<'a>) -> Option<Own<'a>> {
    match request.params {
        Params::Absent => Some(Own::default()),
        Params::Read(ParamMembers { name, meta, .. }) => Some(Own { name, meta }),
        Params::Unusual => request.params_json().and_then(object),
    }
}

#[derive(Default, Deserialize)]
struct Own<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Capabilities<'a> {
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Extensions<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/tasks")]
    tasks: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct TaskParams<'a> {
    #[serde(borrow, rename = "taskId")]
    task_id: Option<&'a RawValue>,
}

/// Rejects a list of an object's values, which serde would accept.
fn object<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Option<T> {
    json.get().starts_with('{').then(|| json::read(json.get()).ok()).flatten()
}

impl Mirror {
    fn check<H: Handlers>(&self, headers: &HeaderMap, method: &str, body: &str) -> Result<(), Failure> {
        let Self { header, shown, read } = self;
        let mut values = headers.get_all(header).iter();
        let wrong = match (values.next(), values.next()) {
            (None, _) => words![" is missing"],
            (Some(_), Some(_)) => words![" is given more than once"],
            (Some(value), None) => match value.to_str().ok().and_then(read) {
                Some(value) if value == body => return Ok(()),
                Some(value) => words![" is `", Echo::of(&value), "`"],
                None => words![" cannot be read"],
            },
        };
        let (method, body) = (Echo::of(method), Echo::of(body));
        let what = words!["with `", method, "`, the header ", *shown, wrong, ", and the body says `", body, "`"];
        Err(Failure::new(H::CATALOGUE.roles.header_mismatch, what))
    }
}

fn literal(value: &str) -> Option<Cow<'_, str>> {
    Some(value.into())
}

/// Reads a value. It may be encoded as `=?base64?...?=`, and must be if it is not visible ASCII.
fn decode_value(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return literal(value);
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}
