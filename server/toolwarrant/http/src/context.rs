//! The parts that the transports share: the pipeline with the limits around it, request ids, and
//! responses with JSON.

use crate::edge::{self, AuthThrottle, HostOriginPolicy, Limits, Peer};
use crate::head::Head;
use crate::ids::{REQUEST_ID, RequestIds};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use toolwarrant_base::wording::Echo;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::{Handlers, Pipeline};

const ESSENCE: &str = "application/json";
const JSON: HeaderValue = HeaderValue::from_static(ESSENCE);

/// Limit on the header memory that an answer takes over from its request. hyper keeps this memory
/// for the connection's next request, however long it waits for that.
const HEADERS_KEPT: usize = 32;

/// Everything that a transport needs to answer requests.
pub(crate) struct Context<H> {
    pub(crate) pipeline: Pipeline<H>,
    pub(crate) policy: HostOriginPolicy,
    pub(crate) limits: Limits,
    pub(crate) throttle: AuthThrottle,
    pub(crate) ids: RequestIds,
}

impl<H: Handlers> Context<H> {
    /// Counts a failed authentication of an address, and delays its answer after too many.
    pub(crate) async fn strike(&self, sender: Option<&Peer>) {
        edge::slow_down(&self.throttle, sender, self.pipeline.now()).await;
    }
}

/// Returns true if a body is declared as JSON.
pub(crate) fn is_json<'a>(head: impl Into<Head<'a>>) -> bool {
    let Some(Some(declared)) = head.into().content_type.at_most_once() else { return false };
    let is_essence = |text: &str| text.split(';').next().is_some_and(|text| text.trim().eq_ignore_ascii_case(ESSENCE));
    declared == ESSENCE || declared.to_str().is_ok_and(is_essence)
}

pub(crate) fn respond(
    status: StatusCode,
    body: impl Into<Bytes>,
    request_id: impl Into<HeaderValue>,
) -> Response<Body> {
    respond_in(HeaderMap::new(), status, body, request_id)
}

/// Like [`respond`], but stores the answer's headers in the memory of the request's headers.
pub(crate) fn respond_in(
    mut headers: HeaderMap,
    status: StatusCode,
    body: impl Into<Bytes>,
    request_id: impl Into<HeaderValue>,
) -> Response<Body> {
    if headers.capacity() > HEADERS_KEPT {
        headers = HeaderMap::new();
    }
    headers.clear();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(REQUEST_ID, request_id.into());
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Responds without a body.
pub(crate) fn empty(status: StatusCode, request_id: &HeaderValue) -> Response<Body> {
    let mut response = respond(status, Bytes::new(), request_id);
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// Refuses a request outside of JSON-RPC, with the status of the failure.
pub(crate) fn refuse(failure: &Failure, request_id: &HeaderValue) -> Response<Body> {
    respond(status(failure), body_of(failure), request_id)
}

/// Adds a challenge for credentials of `scheme` to a response with status 401.
pub(crate) fn challenge<H: Handlers>(response: &mut Response<Body>, scheme: &str) {
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

/// Returns a failure as JSON. A failure contains only values that JSON can express, so the result
/// is never empty.
pub(crate) fn body_of(failure: &Failure) -> Vec<u8> {
    serde_json::to_vec(failure).unwrap_or_default()
}

/// Returns serde_json's message about JSON of the wrong shape, without the position in the text.
pub(crate) fn reason(error: &serde_json::Error) -> Echo {
    let text = error.to_string();
    Echo::of(text.split(" at line ").next().unwrap_or_default())
}
