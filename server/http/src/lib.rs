//! HTTP in front of a pipeline. [`edge`] owns connections and their limits, `mcp` serves JSON-RPC at `/mcp`, `v1` serves signed
//! HTTP below `/v1`, [`monitor`] serves health and metrics, and [`echo`] tells where requests come from.
//!
//! No transport knows a tool by name. This file owns what they share: the routes, request ids and JSON responses. No other
//! crate of the server uses axum or hyper. Start at [`Endpoint::router`].

mod credentials;
pub mod echo;
pub mod edge;
mod mcp;
pub mod monitor;
mod spliced;
mod v1;

pub use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Extensions, Method, Response, StatusCode};
use axum::routing::any;
use edge::{AuthThrottle, HostOriginPolicy, Limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::{Handlers, Pipeline};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A pipeline with all that is needed to serve it over HTTP.
pub struct Endpoint<H> {
    pipeline: Pipeline<H>,
    policy: HostOriginPolicy,
    limits: Limits,
    throttle: AuthThrottle,
    ids: RequestIds,
    routes: v1::Routes,
    answers: mcp::Answers,
}

impl<H: Handlers> Endpoint<H> {
    /// Serves `pipeline` to the requests that `policy` allows. `base` is the path of the public URL, without a slash at its end.
    /// `process` identifies this process in request ids.
    pub fn new(pipeline: Pipeline<H>, policy: HostOriginPolicy, limits: Limits, base: &str, process: u32) -> Self {
        Self {
            pipeline,
            policy,
            limits,
            throttle: AuthThrottle::default(),
            ids: RequestIds { process: format!("{process:08x}"), next: AtomicU64::new(1) },
            routes: v1::Routes::new(H::CATALOGUE, base),
            answers: mcp::Answers::of(&H::CATALOGUE.service),
        }
    }

    /// Counts what an address did wrong, and slows one that goes on.
    async fn strike(&self, extensions: &Extensions) {
        edge::slow_down(&self.throttle, extensions, self.pipeline.now()).await;
    }

    /// Every route: `/mcp`, everything below `/v1`, and clear answers on other paths that clients try.
    pub fn router(self) -> Router {
        Router::new()
            .route("/mcp", any(mcp::serve::<H>))
            .route("/mcp/", any(mcp::serve::<H>))
            .route("/register", any(no_oauth::<H>))
            .fallback(other_path::<H>)
            .with_state(Arc::new(self))
    }
}

/// Answers below `/v1`, and on paths without a route.
async fn other_path<H: Handlers>(State(endpoint): State<Arc<Endpoint<H>>>, request: Request) -> Response<Body> {
    if v1::owns(request.uri().path()) {
        return v1::serve(&endpoint, request).await;
    }
    let id = endpoint.ids.of(request.headers());
    refuse(&Failure::plain(H::CATALOGUE.roles.no_route), &id)
}

/// Answers on `/register`. Clients without credentials try to register with an OAuth server there, and show the answer to their
/// user.
async fn no_oauth<H: Handlers>(State(endpoint): State<Arc<Endpoint<H>>>, request: Request) -> Response<Body> {
    let id = endpoint.ids.of(request.headers());
    if request.method() != Method::POST {
        return refuse(&Failure::plain(H::CATALOGUE.roles.no_route), &id);
    }
    let unauthenticated = H::CATALOGUE.roles.unauthenticated;
    let failure = Failure::new(unauthenticated, "this server has no OAuth");
    respond(StatusCode::BAD_REQUEST, body_of(&failure), &id)
}

/// Gives each request an id: the one that the client sent, if it is harmless, or the next of this process.
#[derive(Debug)]
struct RequestIds {
    process: String,
    next: AtomicU64,
}

impl RequestIds {
    fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        match headers.get(REQUEST_ID) {
            Some(given) if (1..=64).contains(&given.len()) && given.as_bytes().iter().all(harmless) => given.clone(),
            _ => {
                let id = format!("{}-{}", self.process, self.next.fetch_add(1, Relaxed));
                HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("unknown"))
            }
        }
    }
}

/// Whether a body is declared as JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let essence = types.next().and_then(|value| value.to_str().ok()).and_then(|value| value.split(';').next());
    types.next().is_none() && essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn respond(status: StatusCode, body: impl Into<Body>, request_id: &HeaderValue) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(REQUEST_ID, request_id.clone());
    response
}

/// Refuses a request outside of JSON-RPC, with the status of the failure.
fn refuse(failure: &Failure, request_id: &HeaderValue) -> Response<Body> {
    respond(status(failure), body_of(failure), request_id)
}

fn status(failure: &Failure) -> StatusCode {
    StatusCode::from_u16(failure.def().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A failure as JSON. A failure contains nothing that JSON cannot express, so this never comes out empty.
fn body_of(failure: &Failure) -> Vec<u8> {
    serde_json::to_vec(failure).unwrap_or_default()
}
