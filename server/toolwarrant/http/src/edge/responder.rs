//! The interface that answers requests, and the body of an answer.
//!
//! The edge owns the connection and passes each request and its peer address to the responder. A
//! body that consists of bytes stays as it is; only axum's own bodies are boxed.

use super::Peer;
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use std::borrow::Cow;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use toolwarrant_base::BoxFuture;
use toolwarrant_core::reply::Answer;
use tower_service::Service;

/// Answers the requests of connections.
pub trait Responder: Send + Sync + 'static {
    /// Answers a request that `peer` has sent.
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<ResponseBody>>;
}

impl<R: Responder + ?Sized> Responder for Arc<R> {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<ResponseBody>> {
        (**self).respond(request, peer)
    }
}

/// A router gives the same answer to every peer.
impl Responder for Router {
    fn respond<'a>(&'a self, request: Request<Incoming>, _: Cow<'a, Peer>) -> BoxFuture<'a, Response<ResponseBody>> {
        let answering = self.clone().call(request);
        Box::pin(async move {
            let Ok(response) = answering.await;
            response.map(ResponseBody::from)
        })
    }
}

/// The body of an answer.
#[derive(Debug)]
pub struct ResponseBody(BodyKind);

#[derive(Debug)]
enum BodyKind {
    Whole(Bytes),
    Foreign(Body),
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self(BodyKind::Whole(bytes))
    }
}

impl From<Answer> for ResponseBody {
    fn from(answer: Answer) -> Self {
        Bytes::from(answer).into()
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<Body> for ResponseBody {
    fn from(body: Body) -> Self {
        Self(BodyKind::Foreign(body))
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.0 {
            BodyKind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodyKind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            BodyKind::Foreign(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Whole(bytes) => bytes.is_empty(),
            BodyKind::Foreign(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyKind::Foreign(body) => body.size_hint(),
        }
    }
}
