//! `/mcp`: the Model Context Protocol over Streamable HTTP, stateless, revision 2025-03-26.
//!
//! [`serve`] checks one HTTP request, `envelope` reads its JSON-RPC messages, and a [`Session`] answers them. The outcome of a tool
//! is always a JSON-RPC result with status 200, also if the tool failed, so that the model reads it.

mod envelope;

pub(crate) use envelope::reason;

use super::edge::{self, BodyError, Peer};
use super::spliced::Spliced;
use super::{Endpoint, credentials, is_json, respond, status};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use axum::http::{Method, Response, StatusCode};
use bytes::Bytes;
use envelope::{Body as Posted, Message};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use toolwarrant_core::access::Caller;
use toolwarrant_core::catalogue::{ErrorDef, ServiceDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::ToolCall;
use toolwarrant_core::pipeline::{Admitted, Handlers};
use toolwarrant_core::reply::quote;
use toolwarrant_core::tasks::LongPoll;
use toolwarrant_core::wording::{Echo, Words};
use toolwarrant_core::words;

static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Answers one HTTP request to `/mcp`.
pub(super) async fn serve<H: Handlers>(State(endpoint): State<Arc<Endpoint<H>>>, request: Request) -> Response<Body> {
    let request_id = endpoint.ids.of(request.headers());
    let roles = &H::CATALOGUE.roles;
    let preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() != Method::POST && !preflight {
        return not_allowed::<H>(&request_id);
    }
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let origin = match endpoint.policy.check(request.headers(), authority) {
        Ok(origin) => origin,
        Err(refused) => return refuse(&Failure::exactly(roles.origin_not_allowed, refused.words()), &request_id),
    };
    if preflight {
        let Some(origin) = origin else { return not_allowed::<H>(&request_id) };
        let mut response = empty(StatusCode::NO_CONTENT, &request_id);
        edge::answer_preflight(response.headers_mut(), origin);
        return response;
    }
    let mut response = match post(&endpoint, request, &request_id).await {
        Ok(Some(body)) => respond(StatusCode::OK, body, &request_id),
        Ok(None) => empty(StatusCode::ACCEPTED, &request_id),
        Err(refused) => refused.respond::<H>(&request_id),
    };
    if let Some(origin) = origin {
        edge::allow_origin(response.headers_mut(), origin);
    }
    response
}

fn not_allowed<H: Handlers>(request_id: &HeaderValue) -> Response<Body> {
    let mut response = refuse(&Failure::plain(H::CATALOGUE.roles.method_not_allowed), request_id);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

fn empty(status: StatusCode, request_id: &HeaderValue) -> Response<Body> {
    let mut response = respond(status, "", request_id);
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// A refusal of the whole HTTP request.
struct Refusal {
    failure: Failure,
    /// The id of the message as JSON; `null` if it could not be read.
    id: String,
}

impl Refusal {
    fn new(def: &'static ErrorDef, what: impl Into<Words>) -> Self {
        Failure::new(def, what).into()
    }

    fn respond<H: Handlers>(self, request_id: &HeaderValue) -> Response<Body> {
        let mut response = respond(status(&self.failure), error(&self.id, &self.failure), request_id);
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = format!("Bearer realm=\"{}\"", H::CATALOGUE.service.name);
            if let Ok(challenge) = HeaderValue::try_from(challenge) {
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
        }
        response
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, id: "null".to_owned() }
    }
}

fn refuse(failure: &Failure, request_id: &HeaderValue) -> Response<Body> {
    respond(status(failure), error("null", failure), request_id)
}

/// Answers a POST request: authenticates it, reads its body, and runs its messages. Returns `None` if there is nothing to answer.
async fn post<H: Handlers>(
    endpoint: &Endpoint<H>,
    request: Request,
    request_id: &HeaderValue,
) -> Result<Option<Spliced>, Refusal> {
    let roles = &H::CATALOGUE.roles;
    let (head, body) = request.into_parts();
    let caller = match endpoint.pipeline.authenticate(credentials::read(&head.headers)) {
        Ok(caller) => caller,
        Err(failure) => {
            let peer = head.extensions.get::<Peer>();
            if let Some(delay) = peer.and_then(|peer| endpoint.throttle.failed(peer.0, endpoint.pipeline.now())) {
                tokio::time::sleep(delay).await;
            }
            return Err(failure.into());
        }
    };
    if !is_json(&head.headers) {
        return Err(Failure::plain(roles.unsupported_media_type).into());
    }
    let bytes = edge::read_body(body, &endpoint.limits).await.map_err(|error| match error {
        BodyError::TooLarge => Failure::plain(roles.body_too_large),
        BodyError::Timeout => Failure::plain(roles.request_timeout),
        BodyError::Broken => Failure::new(roles.parse_error, "the body ended early"),
    })?;
    let posted = envelope::read(&bytes).map_err(|bad| match bad {
        envelope::Unreadable::NotJson(what) => Refusal::new(roles.parse_error, what),
        envelope::Unreadable::NotRpc(what) => Refusal::new(roles.invalid_request, what),
    })?;
    let hold = if matches!(posted, Posted::Batch(_)) { LongPoll::Never } else { LongPoll::Allowed };
    let session = Session { endpoint, caller: &caller, request_id: request_id.to_str().unwrap_or_default(), hold };
    match posted {
        Posted::One(Message::Invalid { id, what }) => {
            Err(Refusal { failure: Failure::new(roles.invalid_request, what), id: id.unwrap_or("null").to_owned() })
        }
        Posted::One(message) => {
            let (id, initialize) =
                message.request().map_or(("null", false), |(id, method)| (id, method == "initialize"));
            if !initialize {
                check_version::<H>(&head.headers).map_err(|failure| Refusal { failure, id: id.to_owned() })?;
            }
            Ok(session.answer_all(&[message]).await.pop())
        }
        Posted::Batch(messages) => {
            if messages.is_empty() {
                return Err(Refusal::new(roles.invalid_request, "the batch is empty"));
            }
            if messages.iter().filter_map(Message::request).any(|(_, method)| method == "initialize") {
                return Err(Refusal::new(roles.invalid_request, "`initialize` cannot stand in a batch"));
            }
            check_version::<H>(&head.headers)?;
            let answers = session.answer_all(&messages).await;
            Ok((!answers.is_empty()).then(|| array(&answers).into()))
        }
    }
}

fn check_version<H: Handlers>(headers: &HeaderMap) -> Result<(), Failure> {
    let (service, role) = (&H::CATALOGUE.service, H::CATALOGUE.roles.unsupported_version);
    let unknown = headers
        .get_all(&PROTOCOL_VERSION)
        .iter()
        .find(|value| !service.accepted.iter().any(|revision| revision.as_bytes() == value.as_bytes()));
    match unknown {
        None => Ok(()),
        Some(value) => {
            let sent = Echo::of(&String::from_utf8_lossy(value.as_bytes()));
            let what = words!["MCP-Protocol-Version `", sent, "` is not known here"];
            Err(Failure::new(role, what).with("supported", service.accepted.to_vec()))
        }
    }
}

/// One authenticated HTTP request, whose messages are to be answered.
struct Session<'a, H> {
    endpoint: &'a Endpoint<H>,
    caller: &'a Caller,
    request_id: &'a str,
    hold: LongPoll,
}

impl<H: Handlers> Session<'_, H> {
    /// The answers to all messages; notifications have none. The cost of all messages is charged before the first one runs.
    async fn answer_all(&self, messages: &[Message<'_>]) -> Vec<Spliced> {
        let requests = messages.iter().filter(|message| message.wants_answer()).count();
        let cost = u32::try_from(requests.max(1)).unwrap_or(u32::MAX);
        let charged = self.endpoint.pipeline.charge_budget(self.caller, cost);
        let mut answers = Vec::with_capacity(requests);
        for message in messages {
            let answer = match (message, &charged) {
                (Message::Unanswered, _) => continue,
                (Message::Invalid { id, what }, _) => {
                    error(id.unwrap_or("null"), &Failure::new(H::CATALOGUE.roles.invalid_request, what.clone()))
                }
                (Message::Request { id, method, params }, Err(failure)) => {
                    self.over_budget(id, method, *params, failure)
                }
                (Message::Request { id, method, params }, Ok(admitted)) => {
                    self.answer(admitted, id, method, *params).await
                }
            };
            answers.push(answer);
        }
        answers
    }

    fn over_budget(&self, id: &str, method: &str, params: Option<&RawValue>, failure: &Failure) -> Spliced {
        if method != "tools/call" {
            return error(id, failure);
        }
        if let Ok(call) = self.call_params(params) {
            self.endpoint.pipeline.refused(self.caller, &call.name, self.request_id, failure);
        }
        failed(id, failure)
    }

    async fn answer(&self, admitted: &Admitted<'_>, id: &str, method: &str, params: Option<&RawValue>) -> Spliced {
        let roles = &H::CATALOGUE.roles;
        if let Some(params) = params.filter(|params| !params.get().starts_with('{')) {
            let what = words!["`params` is ", Echo::of(params.get()), ", not an object"];
            return error(id, &Failure::new(roles.invalid_params, what));
        }
        match method {
            "tools/call" => match self.call_params(params) {
                Ok(call) => self.call(admitted, id, &call).await,
                Err(failure) => error(id, &failure),
            },
            "tools/list" => match cursor(params) {
                None => result(id, &self.endpoint.pipeline.list(admitted)),
                Some(cursor) => {
                    let what = words!["`cursor` ", cursor, " is not one that tools/list returned: it returns one page"];
                    error(id, &Failure::new(roles.invalid_params, what))
                }
            },
            "initialize" => {
                let head = initialize_head(&self.endpoint.initialize_heads, params);
                Spliced::new([OPEN, id, head], &self.endpoint.pipeline.instructions(admitted), "}}")
            }
            "ping" => result(id, &Bytes::from_static(b"{}")),
            method => {
                let what = words!["there is no method `", Echo::of(method), "`"];
                error(id, &Failure::new(roles.method_not_found, what))
            }
        }
    }

    async fn call(&self, admitted: &Admitted<'_>, id: &str, call: &CallParams<'_>) -> Spliced {
        let arguments = call.arguments.unwrap_or(&NO_ARGUMENTS);
        let asked = ToolCall { tool: &call.name, arguments, request_id: self.request_id, hold: self.hold };
        match self.endpoint.pipeline.call(admitted, asked).await {
            Ok(answer) => content(id, answer.quoted(), false),
            Err(failure) if *failure.def() == *H::CATALOGUE.roles.unknown_tool => error(id, &failure),
            Err(failure) => failed(id, &failure),
        }
    }

    fn call_params<'p>(&self, params: Option<&'p RawValue>) -> Result<CallParams<'p>, Failure> {
        let role = H::CATALOGUE.roles.invalid_params;
        let params = params.ok_or_else(|| Failure::new(role, "tools/call needs `params` with the tool's `name`"))?;
        let call: CallParams<'p> = serde_json::from_str(params.get()).map_err(|error| {
            let what = envelope::reason(&error);
            Failure::new(role, words!["`params` of tools/call: ", what])
        })?;
        match call.arguments {
            Some(arguments) if !arguments.get().starts_with('{') => {
                Err(Failure::new(role, words!["`arguments` is ", Echo::of(arguments.get()), ", not an object"]))
            }
            _ => Ok(call),
        }
    }
}

static NO_ARGUMENTS: LazyLock<Box<RawValue>> =
    LazyLock::new(|| RawValue::from_string("{}".to_owned()).unwrap_or_default());

#[derive(serde::Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "envelope::present")]
    arguments: Option<&'a RawValue>,
}

/// The cursor of a `tools/list` request, cleaned for display.
fn cursor(params: Option<&RawValue>) -> Option<Echo> {
    #[derive(serde::Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        cursor: Option<&'a RawValue>,
    }
    let page: Page<'_> = serde_json::from_str(params?.get()).ok()?;
    page.cursor.map(|cursor| Echo::of(cursor.get()))
}

/// The response to `initialize` between its id and the instructions, for each protocol revision that is served. The first is the
/// fallback.
pub(super) fn initialize_heads(service: &ServiceDef) -> Vec<(&'static str, String)> {
    let ServiceDef { name, version, served, .. } = service;
    let server = json!({"name": name, "version": version});
    let head = |revision| {
        format!(
            r#","result":{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}},"serverInfo":{server},"instructions":"#
        )
    };
    served.iter().map(|revision| (*revision, head(revision))).collect()
}

/// The head for the revision that the client offers, or else for the fallback.
fn initialize_head<'a>(heads: &'a [(&'static str, String)], params: Option<&RawValue>) -> &'a str {
    #[derive(serde::Deserialize)]
    struct Offer<'a> {
        #[serde(borrow, rename = "protocolVersion")]
        version: Cow<'a, str>,
    }
    let offer: Option<Offer<'_>> = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let agreed = heads.iter().find(|(revision, _)| offer.as_ref().is_some_and(|offer| offer.version == *revision));
    agreed.or(heads.first()).map_or("", |(_, head)| head)
}

fn failed(id: &str, failure: &Failure) -> Spliced {
    content(id, &quote(&serde_json::to_string(failure).unwrap_or_default()), true)
}

/// The result of a tool: one text item. `text` is a JSON string that contains JSON.
fn content(id: &str, text: &Bytes, is_error: bool) -> Spliced {
    let tail = if is_error { r#"}],"isError":true}}"# } else { r#"}],"isError":false}}"# };
    Spliced::new([OPEN, id, r#","result":{"content":[{"type":"text","text":"#], text, tail)
}

fn result(id: &str, result: &Bytes) -> Spliced {
    Spliced::new([OPEN, id, r#","result":"#], result, "}")
}

fn error(id: &str, failure: &Failure) -> Spliced {
    let data = json!(failure);
    let error = json!({"code": failure.def().jsonrpc, "message": data["message"], "data": data});
    Spliced::new([OPEN, id, r#","error":"#], &error.to_string().into(), "}")
}

/// The beginning of a response, up to its id.
const OPEN: &str = r#"{"jsonrpc":"2.0","id":"#;

fn array(answers: &[Spliced]) -> Vec<u8> {
    let mut out = Vec::new();
    for answer in answers {
        out.push(if out.is_empty() { b'[' } else { b',' });
        answer.write(&mut out);
    }
    out.push(b']');
    out
}
