//! A gate before a responder. While it is held, requests wait unread. Once the responder is gone,
//! it tells them to repeat.

use super::{Peer, Responder};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::{RwLock, RwLockWriteGuard};
use toolwarrant_base::BoxFuture;

/// A responder behind a gate.
pub struct Gate(RwLock<Option<Arc<dyn Responder>>>);

/// The answers to a request that came too late, under `/v1` and elsewhere. Nothing was done, so it
/// may be sent to another process.
const REPEAT: [&str; 2] = [
    r#"{"code":"overloaded","message":"this process does not lead any more: repeat the request after `retry_after_seconds`.","retryable":true,"retry_after_seconds":1}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"this process does not lead any more: repeat the request after `retry_after_seconds`.","data":{"code":"overloaded","message":"this process does not lead any more: repeat the request after `retry_after_seconds`.","retryable":true,"retry_after_seconds":1}}}"#,
];

impl Gate {
    /// Puts a gate before a responder. It is open.
    #[must_use]
    pub fn new(responder: Arc<dyn Responder>) -> Self {
        Self(RwLock::new(Some(responder)))
    }

    /// Returns once the requests under way are answered, with the responder. Later requests wait
    /// until the result is dropped. If the responder is taken out of it, they are told to repeat.
    pub async fn hold(&self) -> RwLockWriteGuard<'_, Option<Arc<dyn Responder>>> {
        self.0.write().await
    }
}

impl Responder for Gate {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            match &*self.0.read().await {
                Some(responder) => responder.respond(request, peer).await,
                None => repeat(request.uri().path().contains("/v1/")),
            }
        })
    }
}

fn repeat(is_v1: bool) -> Response<Body> {
    let [v1, mcp] = REPEAT;
    let mut response = Response::new(Body::from(if is_v1 { v1 } else { mcp }));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
