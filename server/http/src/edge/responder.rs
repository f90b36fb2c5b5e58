//! Who answers requests, and the body of an answer.
//!
//! The edge owns the connection and hands each request over, with where it comes from beside it. A body that is bytes stays as it is; only
//! one of axum's own is boxed.

use super::Peer;
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use std::array;
use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use toolwarrant_core::BoxFuture;
use tower_service::Service;

/// Answers the requests of connections.
pub trait Responder: Send + Sync + 'static {
    /// Answers a request that `peer` has sent.
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<AnswerBody>>;
}

impl<R: Responder + ?Sized> Responder for Arc<R> {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<AnswerBody>> {
        (**self).respond(request, peer)
    }
}

/// A router finds the peer in the extensions of the request.
impl Responder for Router {
    fn respond<'a>(
        &'a self,
        mut request: Request<Incoming>,
        peer: Cow<'a, Peer>,
    ) -> BoxFuture<'a, Response<AnswerBody>> {
        request.extensions_mut().insert(peer.into_owned());
        let answering = self.clone().call(request);
        Box::pin(async move {
            let Ok(response) = answering.await;
            response.map(AnswerBody::from)
        })
    }
}

/// The body of an answer.
#[derive(Debug)]
pub struct AnswerBody(Kind);

#[derive(Debug)]
enum Kind {
    Pieces { left: usize, pieces: array::IntoIter<Bytes, 3> },
    Foreign(Body),
}

impl From<[Bytes; 3]> for AnswerBody {
    fn from(pieces: [Bytes; 3]) -> Self {
        Self(Kind::Pieces { left: pieces.iter().map(Bytes::len).sum(), pieces: pieces.into_iter() })
    }
}

impl From<Bytes> for AnswerBody {
    fn from(bytes: Bytes) -> Self {
        [bytes, Bytes::new(), Bytes::new()].into()
    }
}

impl From<Vec<u8>> for AnswerBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<Body> for AnswerBody {
    fn from(body: Body) -> Self {
        Self(Kind::Foreign(body))
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.0 {
            Kind::Pieces { left, pieces } => {
                let piece = pieces.next();
                *left -= piece.as_ref().map_or(0, Bytes::len);
                Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
            }
            Kind::Foreign(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Pieces { left, .. } => *left == 0,
            Kind::Foreign(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Pieces { left, .. } => SizeHint::with_exact(*left as u64),
            Kind::Foreign(body) => body.size_hint(),
        }
    }
}
