//! The body of a response: an answer of its own, or a long text that many responses share, which is sent without copying it.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::array;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use toolwarrant_core::reply::Answer;

/// A shared text below this size costs less to copy than to send as a piece of its own.
const COPY_BELOW: usize = 4 * 1024;

/// The bytes of one response, which hyper sends with its head in one write.
#[derive(Debug)]
pub(super) enum Spliced {
    Own(Answer),
    Shared([Bytes; 3]),
}

impl Spliced {
    /// Puts a text that responses may share between what is this response's own.
    pub(super) fn new(head: [&str; 3], shared: Bytes, tail: &'static str) -> Self {
        let [a, b, c] = head.map(str::as_bytes);
        match shared.len() {
            ..COPY_BELOW => Self::Own([a, b, c, &shared, tail.as_bytes()].concat().into()),
            _ => Self::Shared([[a, b, c].concat().into(), shared, Bytes::from_static(tail.as_bytes())]),
        }
    }

    /// Returns it in one piece.
    pub(super) fn whole(self) -> Answer {
        match self {
            Self::Own(answer) => answer,
            Self::Shared(pieces) => pieces.concat().into(),
        }
    }
}

impl From<Answer> for Spliced {
    fn from(answer: Answer) -> Self {
        Self::Own(answer)
    }
}

impl From<Spliced> for Body {
    fn from(spliced: Spliced) -> Self {
        match spliced {
            Spliced::Own(answer) => Bytes::from(answer).into(),
            Spliced::Shared(pieces) => {
                let left = pieces.iter().map(Bytes::len).sum();
                Self::new(Pieces { left, pieces: pieces.into_iter() })
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn a_shared_text_leaves_and_is_joined_as_the_same_bytes_as_a_copied_one() {
        for length in [0, 1, COPY_BELOW - 1, COPY_BELOW, 3 * COPY_BELOW] {
            let (shared, expected) = (Bytes::from(vec![b'x'; length]), format!("abc{}d", "x".repeat(length)));
            let spliced = || Spliced::new(["a", "b", "c"], shared.clone(), "d");
            assert_eq!(matches!(spliced(), Spliced::Shared(_)), length >= COPY_BELOW);
            let body = Body::from(spliced());
            assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
            assert_eq!(body.collect().await.expect("bytes").to_bytes(), expected);
            assert_eq!(Bytes::from(spliced().whole()), expected);
        }
    }
}
