//! What the transports share: the pipeline with the limits around it, request ids, and responses with JSON.

use crate::edge::{self, AuthThrottle, HostOriginPolicy, Limits, Peer, ResponseBody};
use crate::head::Head;
use crate::ids::{REQUEST_ID, RequestIds};
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Response, StatusCode};
use toolwarrant_base::wording::Echo;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::{Handlers, Pipeline};

const ESSENCE: &str = "application/json";
const JSON: HeaderValue = HeaderValue::from_static(ESSENCE);

/// Room for headers that an answer takes over. hyper keeps it for the connection's next request, however long it waits for that.
const HEADERS_KEPT: usize = 32;

/// What a transport answers requests with.
pub(crate) struct Context<H> {
    pub(crate) pipeline: Pipeline<H>,
    pub(crate) policy: HostOriginPolicy,
    pub(crate) limits: Limits,
    pub(crate) throttle: AuthThrottle,
    pub(crate) ids: RequestIds,
}

impl<H: Handlers> Context<H> {
    /// Counts what an address did wrong, and slows one that goes on.
    pub(crate) async fn strike(&self, sender: Option<&Peer>) {
        edge::slow_down(&self.throttle, sender, self.pipeline.now()).await;
    }
}

/// Whether a body is declared as JSON.
pub(crate) fn is_json<'a>(head: impl Into<Head<'a>>) -> bool {
    let Some(Some(declared)) = head.into().content_type.at_most_once() else { return false };
    let is_essence = |text: &str| text.split(';').next().is_some_and(|text| text.trim().eq_ignore_ascii_case(ESSENCE));
    declared == ESSENCE || declared.to_str().is_ok_and(is_essence)
}

pub(crate) fn respond<B>(status: StatusCode, body: impl Into<B>, request_id: impl Into<HeaderValue>) -> Response<B> {
    respond_in(HeaderMap::new(), status, body, request_id)
}

/// The same, with the headers of the answer in the memory of those that the request came with.
pub(crate) fn respond_in<B>(
    mut headers: HeaderMap,
    status: StatusCode,
    body: impl Into<B>,
    request_id: impl Into<HeaderValue>,
) -> Response<B> {
    if headers.capacity() > HEADERS_KEPT {
        headers = HeaderMap::new();
    }
    headers.clear();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(REQUEST_ID, request_id.into());
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Refuses a request outside of JSON-RPC, with the status of the failure.
pub(crate) fn refuse<B: From<Vec<u8>>>(failure: &Failure, request_id: &HeaderValue) -> Response<B> {
    respond(status(failure), body_of(failure), request_id)
}

/// Asks for credentials of `scheme`, where a response says that there were none.
pub(crate) fn challenge<H: Handlers>(response: &mut Response<ResponseBody>, scheme: &str) {
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

/// A failure as JSON. A failure contains nothing that JSON cannot express, so this never comes out empty.
pub(crate) fn body_of(failure: &Failure) -> Vec<u8> {
    serde_json::to_vec(failure).unwrap_or_default()
}

/// The message of serde_json about JSON of the wrong shape, without the position in the text.
pub(crate) fn reason(error: &serde_json::Error) -> Echo {
    let text = error.to_string();
    Echo::of(text.split(" at line ").next().unwrap_or_default())
}
