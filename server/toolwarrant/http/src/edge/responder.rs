//! The interface between the edge, which owns connections, and the answers to requests.

use super::Peer;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use tower_service::Service;

pub trait Responder: Send + Sync + 'static {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>>;
}

impl<R: Responder + ?Sized> Responder for Arc<R> {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        (**self).respond(request, peer)
    }
}

impl Responder for Router {
    fn respond<'a>(&'a self, request: Request<Incoming>, _: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        let answering = self.clone().call(request);
        Box::pin(async move {
            let Ok(response) = answering.await;
            response
        })
    }
}
