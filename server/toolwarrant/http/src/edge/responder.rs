//! The interface that answers requests. The edge owns the connection and passes each request and
//! its peer address to the responder.

use super::Peer;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use tower_service::Service;

/// Answers the requests of connections.
pub trait Responder: Send + Sync + 'static {
    /// Answers a request that `peer` has sent.
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>>;
}

impl<R: Responder + ?Sized> Responder for Arc<R> {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        (**self).respond(request, peer)
    }
}

/// A router gives the same answer to every peer.
impl Responder for Router {
    fn respond<'a>(&'a self, request: Request<Incoming>, _: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        let answering = self.clone().call(request);
        Box::pin(async move {
            let Ok(response) = answering.await;
            response
        })
    }
}
