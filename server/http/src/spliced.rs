//! A response body in three pieces, so that a long piece that many responses share is sent without copying it.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::array;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A shared piece below this size costs less to copy than to send as a piece of its own.
const COPY_BELOW: usize = 4 * 1024;

/// The bytes of one response. The middle piece may be shared with other responses.
#[derive(Debug)]
pub(super) struct Spliced {
    head: Vec<u8>,
    shared: Bytes,
    tail: Bytes,
}

impl Spliced {
    pub(super) fn new(head: [&str; 3], shared: &Bytes, tail: &[&str]) -> Self {
        if shared.len() >= COPY_BELOW {
            return Self { head: head.concat().into(), shared: shared.clone(), tail: tail.concat().into() };
        }
        let length = |parts: &[&str]| parts.iter().map(|part| part.len()).sum::<usize>();
        let mut whole = Vec::with_capacity(length(&head) + shared.len() + length(tail));
        head.iter().for_each(|part| whole.extend_from_slice(part.as_bytes()));
        whole.extend_from_slice(shared);
        tail.iter().for_each(|part| whole.extend_from_slice(part.as_bytes()));
        whole.into()
    }

    /// Appends the whole response to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { head, shared, tail } = self;
        for piece in [head, &**shared, tail] {
            out.extend_from_slice(piece);
        }
    }
}

impl From<Vec<u8>> for Spliced {
    fn from(head: Vec<u8>) -> Self {
        Self { head, shared: Bytes::new(), tail: Bytes::new() }
    }
}

impl From<Spliced> for Body {
    fn from(Spliced { head, shared, tail }: Spliced) -> Self {
        if shared.is_empty() {
            return head.into();
        }
        let left = head.len() + shared.len() + tail.len();
        Self::new(Pieces { left, pieces: [head.into(), shared, tail].into_iter() })
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
