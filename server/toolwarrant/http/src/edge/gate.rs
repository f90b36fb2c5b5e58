//! A gate before a responder. While it is held, requests wait unread. Once the responder is gone,
//! the answer is to repeat the request.

use super::{Peer, Responder};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::{RwLock, RwLockWriteGuard};
use toolwarrant_base::BoxFuture;

pub struct Gate(RwLock<Option<Arc<dyn Responder>>>);

/// Under `/v1` and elsewhere. Nothing was done, so the request may be sent to another process.
const REPEAT: [&str; 2] = [
    r#"{"code":"overloaded","message":"this process does not lead any more: repeat the request after `retry_after_seconds`.","retryable":true,"retry_after_seconds":1}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"this process does not lead any more: repeat the request after `retry_after_seconds`.","data":{"code":"overloaded","message":"this process does not lead any more: repeat the request after `retry_after_seconds`.","retryable":true,"retry_after_seconds":1}}}"#,
];

impl Gate {
    #[must_use]
    pub fn new(responder: Arc<dyn Responder>) -> Self {
        Self(RwLock::new(Some(responder)))
    }

    /// Returns once the requests under way are answered. Later requests wait until the result is
    /// dropped.
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
