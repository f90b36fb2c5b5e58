//! A gate before a responder. While it is held, requests wait unread. Once the responder is gone,
//! the answer is to repeat the request.

use crate::context::{body_of, respond_without_id, status};
use crate::edge::{Peer, Responder};
use crate::mcp::error;
use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::Incoming;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::{RwLock, RwLockWriteGuard};
use toolwarrant_base::BoxFuture;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::failure::Failure;

pub struct Gate {
    responder: RwLock<Option<Arc<dyn Responder>>>,
    catalogue: &'static Catalogue,
}

impl Gate {
    #[must_use]
    pub fn new(responder: Arc<dyn Responder>, catalogue: &'static Catalogue) -> Self {
        Self { responder: RwLock::new(Some(responder)), catalogue }
    }

    /// Returns once the requests under way are answered. Later requests wait until the result is
    /// dropped.
    pub async fn hold(&self) -> RwLockWriteGuard<'_, Option<Arc<dyn Responder>>> {
        self.responder.write().await
    }

    /// Nothing was done, so a balancer may send the request to another process.
    fn hand_over(&self, is_v1: bool) -> Response<Body> {
        let failure = Failure::plain(self.catalogue.roles.handed_over);
        let body = if is_v1 { body_of(&failure).into() } else { Bytes::from(error("null", &failure)) };
        let mut response = respond_without_id(status(&failure), body);
        if let Some(seconds) = failure.def().retry_after_seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl Responder for Gate {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            match &*self.responder.read().await {
                Some(responder) => responder.respond(request, peer).await,
                None => self.hand_over(request.uri().path().contains("/v1/")),
            }
        })
    }
}
