//! A body of a few pieces, so that a long one which many answers share is sent without a copy of it.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::array;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Shorter ones cost less to copy than to send apart.
const SHORT: usize = 4 * 1024;

/// Bytes that are made for one answer, with some in their midst that it may share with others.
#[derive(Debug)]
pub(super) struct Spliced {
    head: Vec<u8>,
    shared: Bytes,
    tail: &'static [u8],
}

impl Spliced {
    pub(super) fn new(mut head: Vec<u8>, shared: &Bytes, tail: &'static [u8]) -> Self {
        if shared.len() >= SHORT {
            return Self { head, shared: shared.clone(), tail };
        }
        head.reserve_exact(shared.len() + tail.len());
        head.extend_from_slice(shared);
        head.extend_from_slice(tail);
        head.into()
    }

    /// Appends all of it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { head, shared, tail } = self;
        for piece in [head.as_slice(), shared, tail] {
            out.extend_from_slice(piece);
        }
    }
}

impl From<Vec<u8>> for Spliced {
    fn from(head: Vec<u8>) -> Self {
        Self { head, shared: Bytes::new(), tail: &[] }
    }
}

impl From<Spliced> for Body {
    fn from(Spliced { head, shared, tail }: Spliced) -> Self {
        if shared.is_empty() {
            return head.into();
        }
        let left = head.len() + shared.len() + tail.len();
        Self::new(Pieces { left, pieces: [head.into(), shared, Bytes::from_static(tail)].into_iter() })
    }
}

struct Pieces {
    pieces: array::IntoIter<Bytes, 3>,
    left: usize,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.next();
        self.left -= piece.as_ref().map_or(0, Bytes::len);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
