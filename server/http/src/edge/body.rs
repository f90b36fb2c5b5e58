//! Reads a whole request body within the limits on size and time.

use super::Limits;
use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use tokio::time::{Instant, timeout_at};

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is larger than the limit, or its head says so.
    #[error("the body is larger than the server takes")]
    TooLarge,
    /// It missed a deadline.
    #[error("the body did not arrive in time")]
    Timeout,
    /// The connection ended, or the framing is wrong.
    #[error("the body broke off")]
    Broken,
}

/// Reads the whole of `body`. A body that arrives in one piece, as small ones do, is returned without a copy.
///
/// # Errors
/// See [`BodyError`]. A body whose head announces too large a size is refused before any of it is read.
pub async fn read_body(mut body: Body, limits: &Limits) -> Result<Bytes, BodyError> {
    let most = limits.body_bytes;
    if body.size_hint().lower() > most as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut deadline = None;
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while !body.is_end_stream() {
        let Some(piece) = next_piece(&mut body, limits, &mut deadline).await? else { break };
        if piece.len() > most - first.len().max(joined.len()) {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() {
            first = piece;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&piece);
        }
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

/// The next piece of the body, or an empty piece in place of trailers, which no route uses. Reads the clock and sets `deadline`
/// only if it has to wait.
async fn next_piece(
    body: &mut Body,
    limits: &Limits,
    deadline: &mut Option<Instant>,
) -> Result<Option<Bytes>, BodyError> {
    let mut frame = body.frame();
    let frame = match poll_fn(|cx| Poll::Ready(Pin::new(&mut frame).poll(cx))).await {
        Poll::Ready(frame) => frame,
        Poll::Pending => {
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + limits.body);
            timeout_at(deadline.min(now + limits.body_gap), frame).await.map_err(|_| BodyError::Timeout)?
        }
    };
    let frame = frame.transpose().map_err(|_| BodyError::Broken)?;
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_piece_is_returned_without_a_copy() {
        let bytes = Bytes::from("x".repeat(100));
        let read = read_body(Body::from(bytes.clone()), &Limits::default()).await.expect("read");
        assert_eq!(read.as_ptr(), bytes.as_ptr());
        assert_eq!(read_body(Body::empty(), &Limits::default()).await, Ok(Bytes::new()));
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_not() {
        let limits = Limits { body_bytes: 4, ..Limits::default() };
        assert_eq!(read_body(Body::from("four"), &limits).await, Ok(Bytes::from("four")));
        assert_eq!(read_body(Body::from("fives"), &limits).await, Err(BodyError::TooLarge));
    }
}
