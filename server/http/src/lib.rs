//! HTTP in front of a pipeline. [`edge`] owns connections and their limits, `mcp` serves JSON-RPC at `/mcp`, `v1` serves signed
//! HTTP below `/v1`, [`monitor`] serves health and metrics, and [`echo`] tells where requests come from.
//!
//! No transport knows a tool by name. This file owns what they share: the routes, request ids and JSON responses. No other
//! crate of the server uses axum or hyper. Start at `Endpoint::answer`.

mod credentials;
pub mod echo;
pub mod edge;
mod head;
mod ids;
mod mcp;
pub mod monitor;
mod v1;

pub use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use edge::{AuthThrottle, HasPeer, HostOriginPolicy, Limits, Peer, Reply, Responder};
use head::Head;
use hyper::body::Incoming;
use ids::{REQUEST_ID, RequestIds};
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::{Handlers, Pipeline};

const ESSENCE: &str = "application/json";
const JSON: HeaderValue = HeaderValue::from_static(ESSENCE);

/// Room for headers that an answer takes over. hyper keeps it for the connection's next request, however long it waits for that.
const HEADERS_KEPT: usize = 32;

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
            ids: RequestIds::of_process(process),
            routes: v1::Routes::new(H::CATALOGUE, base),
            answers: mcp::Answers::of(&H::CATALOGUE.service),
        }
    }

    /// The endpoint for whoever has no connection: a router with all that is served.
    pub fn router(self: Arc<Self>) -> Router {
        let answer = async |State(endpoint): State<Arc<Self>>, mut request: Request<Body>| {
            let peer = request.extensions_mut().remove::<Peer>();
            endpoint.answer(request, peer.map(Cow::Owned)).await.map(Body::new)
        };
        Router::new().fallback(answer).with_state(self)
    }

    /// Counts what an address did wrong, and slows one that goes on.
    async fn strike(&self, sender: &impl HasPeer) {
        edge::slow_down(&self.throttle, sender, self.pipeline.now()).await;
    }

    /// Answers one request: on `/mcp`, on everything below `/v1`, and clearly on other paths that clients try.
    async fn answer<B>(&self, mut request: Request<B>, peer: Option<Cow<'_, Peer>>) -> Response<Reply>
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
    {
        match request.uri().path() {
            "/mcp" | "/mcp/" => mcp::serve(self, request, peer.as_deref()).await,
            path if v1::owns(path) => {
                peer.and_then(|peer| request.extensions_mut().insert(peer.into_owned()));
                v1::serve(self, request.map(Body::new)).await.map(Reply::from)
            }
            // Clients without credentials try to register with an OAuth server here, and show the answer to their user.
            "/register" if request.method() == Method::POST => {
                let failure = Failure::new(H::CATALOGUE.roles.unauthenticated, "this server has no OAuth");
                respond(StatusCode::BAD_REQUEST, body_of(&failure), self.ids.of(request.headers()))
            }
            _ => refuse(&Failure::plain(H::CATALOGUE.roles.no_route), &self.ids.of(request.headers())),
        }
    }
}

impl<H: Handlers> Responder for Endpoint<H> {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Reply>> {
        Box::pin(self.answer(request, Some(peer)))
    }
}

/// Whether a body is declared as JSON.
fn is_json<'a>(head: impl Into<Head<'a>>) -> bool {
    let Some(Some(declared)) = head.into().content_type.at_most_once() else { return false };
    let is_essence = |text: &str| text.split(';').next().is_some_and(|text| text.trim().eq_ignore_ascii_case(ESSENCE));
    declared == ESSENCE || declared.to_str().is_ok_and(is_essence)
}

fn respond<B>(status: StatusCode, body: impl Into<B>, request_id: impl Into<HeaderValue>) -> Response<B> {
    respond_in(HeaderMap::new(), status, body, request_id)
}

/// The same, with the headers of the answer in the memory of those that the request came with.
fn respond_in<B>(
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
fn refuse<B: From<Vec<u8>>>(failure: &Failure, request_id: &HeaderValue) -> Response<B> {
    respond(status(failure), body_of(failure), request_id)
}

fn status(failure: &Failure) -> StatusCode {
    StatusCode::from_u16(failure.def().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A failure as JSON. A failure contains nothing that JSON cannot express, so this never comes out empty.
fn body_of(failure: &Failure) -> Vec<u8> {
    serde_json::to_vec(failure).unwrap_or_default()
}
