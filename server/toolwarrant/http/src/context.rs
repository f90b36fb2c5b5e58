//! The parts that the transports share: the pipeline with the limits around it, request ids, and
//! responses with JSON.

use crate::edge::{self, AuthThrottle, BodyError, HostOriginPolicy, Limits, Peer};
use crate::head::RequestHead;
use crate::ids::{REQUEST_ID, RequestIds};
use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use std::sync::Arc;
use toolwarrant_base::wording::Echo;
use toolwarrant_base::words;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_core::reply::Answer;
use toolwarrant_core::toolsets::Toolsets;

const ESSENCE: &str = "application/json";

const IDENTITY: &str = "identity";

pub(crate) struct Context<H> {
    pub(crate) pipeline: Arc<Pipeline<H>>,
    pub(crate) policy: HostOriginPolicy,
    pub(crate) limits: Limits,
    pub(crate) throttle: AuthThrottle,
    pub(crate) ids: RequestIds,
}

#[derive(Clone, Copy, Debug)]
pub struct ServerProcess<'a> {
    /// Of the program.
    pub version: &'a str,
    /// The path of the public URL, without a slash at its end.
    pub base: &'a str,
    /// Stands in request ids.
    pub id: u32,
    /// Those of `/v1`.
    pub toolsets: Toolsets,
}

impl<H: Handlers> Context<H> {
    /// Counts a failed authentication of an address, and delays its answer after too many.
    pub(crate) async fn strike(&self, sender: Option<&Peer>) {
        edge::slow_down(&self.throttle, sender, self.pipeline.now()).await;
    }
}

pub(crate) fn check_type<'a, H: Handlers>(head: impl Into<RequestHead<'a>>) -> Result<(), Failure> {
    let head = head.into();
    let role = H::CATALOGUE.roles.unsupported_media_type;
    let encoding = head.content_encoding.at_most_once();
    let encoding = encoding.map_or(Some("several"), |sent| sent.map(|sent| sent.to_str().unwrap_or("?")));
    match encoding.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(IDENTITY)) {
        Some(encoding) => {
            let sent = words!["the Content-Encoding of the body is `", Echo::of(encoding), "`, and only `", IDENTITY];
            Err(Failure::exactly(role, words![sent, "` is taken: send the body as it is, without compression."]))
        }
        None if is_json(head) => Ok(()),
        None => Err(Failure::plain(role)),
    }
}

fn is_json(head: RequestHead<'_>) -> bool {
    let Some(Some(declared)) = head.content_type.at_most_once() else { return false };
    let is_essence = |text: &str| text.split(';').next().is_some_and(|text| text.trim().eq_ignore_ascii_case(ESSENCE));
    declared == ESSENCE || declared.to_str().is_ok_and(is_essence)
}

pub(crate) fn explain_body<H: Handlers>(error: BodyError) -> Failure {
    let roles = &H::CATALOGUE.roles;
    match error {
        BodyError::TooLarge => Failure::plain(roles.body_too_large),
        BodyError::Timeout => Failure::plain(roles.request_timeout),
        BodyError::Overloaded => Failure::plain(roles.overloaded),
        BodyError::Broken => Failure::new(roles.parse_error, "the body ended early"),
    }
}

/// Refuses an answer with content of its own if its client leaves too many unread.
pub(crate) fn hold_answer<H: Handlers>(answer: impl Into<Bytes>, peer: Option<&Peer>) -> Result<Bytes, Failure> {
    let unread = "earlier answers to this address are not read yet and fill its room: read them, then repeat this.";
    edge::count_answer(answer.into(), peer).ok_or_else(|| Failure::exactly(H::CATALOGUE.roles.overloaded, unread))
}

/// Asks for no repeat of a call that must not be sent again.
pub(crate) fn hold_call<H: Handlers>(
    answer: Answer,
    peer: Option<&Peer>,
    request_id: impl AsRef<[u8]>,
) -> Result<Bytes, Failure> {
    let unknown = H::CATALOGUE.roles.outcome_unknown.filter(|_| answer.is_of_once());
    hold_answer::<H>(answer, peer).map_err(|failure| {
        let lost = "earlier answers to this address are not read yet and fill its room, so the answer to this call is lost. Do not \
                    repeat it: first read whether it was done.";
        let request_id = String::from_utf8_lossy(request_id.as_ref());
        unknown.map_or(failure, |unknown| Failure::exactly(unknown, lost).with("request_id", request_id))
    })
}

pub(crate) fn respond(
    status: StatusCode,
    body: impl Into<Bytes>,
    request_id: impl Into<HeaderValue>,
) -> Response<Body> {
    let mut response = respond_without_id(status, body);
    response.headers_mut().insert(REQUEST_ID, request_id.into());
    response
}

pub(crate) fn respond_without_id(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    make(status, ESSENCE, body.into())
}

pub(crate) fn make(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(crate) fn empty(status: StatusCode, request_id: &HeaderValue) -> Response<Body> {
    let mut response = respond(status, Bytes::new(), request_id);
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

pub(crate) fn refuse(failure: &Failure, request_id: &HeaderValue) -> Response<Body> {
    respond(status(failure), body_of(failure), request_id)
}

/// Adds a challenge for credentials of `scheme` to status 401, and the encodings of bodies to 415.
pub(crate) fn say_what_is_taken<H: Handlers>(response: &mut Response<Body>, scheme: &str) {
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(IDENTITY));
    }
    let challenge = format!("{scheme} realm=\"{}\"", H::CATALOGUE.service.name);
    if response.status() == StatusCode::UNAUTHORIZED
        && let Ok(challenge) = HeaderValue::try_from(challenge)
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
}

pub(crate) fn status(failure: &Failure) -> StatusCode {
    StatusCode::from_u16(failure.def().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Serialises a failure, which contains only values that JSON can express.
pub(crate) fn body_of(failure: &Failure) -> Vec<u8> {
    serde_json::to_vec(failure).unwrap_or_default()
}

/// Removes the byte order mark that some clients put before JSON (RFC 8259, section 8.1).
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

pub(crate) fn reason(error: &serde_json::Error) -> Echo {
    let text = error.to_string();
    Echo::of(text.split(" at line ").next().unwrap_or_default())
}
