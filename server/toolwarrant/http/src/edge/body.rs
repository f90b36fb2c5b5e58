//! Reads a whole request body within the limits on size and time, and counts the bytes of bodies
//! and answers while they are in memory. Start at [`read_body`].

use super::connection::Peer;
use super::limits::Limits;
use super::quota::Share;
use super::turns::without_wakeups;
use axum::body::HttpBody;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Frame;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body is larger than the server accepts")]
    TooLarge,
    #[error("the body did not arrive in time")]
    Timeout,
    /// Bodies of this client, or of all, take too much memory, or the client has too many requests
    /// in flight.
    #[error("the server has no room for the body")]
    Overloaded,
    #[error("the body ended early")]
    Broken,
}

/// Bytes of each body or answer outside of the quota: the limit on connections bounds them.
const FREE: usize = 16 * 1024;

/// This many pieces may have any size; more must have this average size. Each piece costs far more
/// than its bytes.
const PIECES: usize = 1_024;
const PIECE_MIN: usize = 64;

#[derive(Debug, Clone, Copy)]
pub enum BodyRoom {
    /// [`Limits::bodies_bytes`]: the caller is verified.
    Verified,
    /// [`Limits::unverified_bytes`]: the caller can only be verified after the body.
    Unverified,
}

/// Reads the whole of `body`; `peer` is `None` if it does not come over a connection. A body in one
/// piece is not copied. A larger body holds its part of `room` until its bytes are dropped.
pub async fn read_body(
    body: impl HttpBody<Data = Bytes> + Unpin,
    peer: Option<&Peer>,
    room: BodyRoom,
    limits: &Limits,
) -> Result<Bytes, BodyError> {
    let read = read_whole(body, peer, room, limits).await;
    if let (Err(BodyError::TooLarge | BodyError::Overloaded), Some(peer)) = (&read, peer) {
        peer.connection.refuse_body();
    }
    read
}

async fn read_whole(
    mut body: impl HttpBody<Data = Bytes> + Unpin,
    peer: Option<&Peer>,
    room: BodyRoom,
    limits: &Limits,
) -> Result<Bytes, BodyError> {
    let most = limits.body_bytes;
    if peer.is_some_and(|peer| peer.crowded) {
        return Err(BodyError::Overloaded);
    }
    if body.size_hint().lower() > most as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut deadline = None;
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut share = None::<Share>;
    let mut pieces = 0;
    while !body.is_end_stream() {
        let Some(piece) = next_piece(&mut body, peer, limits, &mut deadline).await? else { break };
        if pieces >= PIECES && first.len().max(joined.len()) < pieces * PIECE_MIN {
            return Err(BodyError::Broken);
        }
        pieces += 1;
        if piece.len() > most - first.len().max(joined.len()) {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() && joined.is_empty() {
            first = piece;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&mem::take(&mut first));
            }
            joined.extend_from_slice(&piece);
            let counted = share.as_ref().map_or(0, |share| share.amount);
            if let Some(peer) = peer.filter(|_| joined.len() > FREE + counted)
                && !grow(&mut share, peer, room, joined.len() - FREE - counted)
            {
                return Err(BodyError::Overloaded);
            }
        }
    }
    let whole = if joined.is_empty() { first } else { joined.freeze() };
    Ok(match share {
        Some(share) => Bytes::from_owner(Counted { bytes: whole, _share: share }),
        None => whole,
    })
}

fn grow(share: &mut Option<Share>, Peer { address, connection, .. }: &Peer, room: BodyRoom, bytes: usize) -> bool {
    if let Some(share) = share {
        return share.grow(bytes);
    }
    let quota = match room {
        BodyRoom::Verified => &connection.quotas.bodies,
        BodyRoom::Unverified => &connection.quotas.unverified,
    };
    *share = quota.take(*address, bytes);
    share.is_some()
}

/// Counts an answer until it has left or its connection has ended. Returns `None` if its client, or
/// all, leave too much unread.
pub(crate) fn count_answer(answer: Bytes, peer: Option<&Peer>) -> Option<Bytes> {
    let Some(Peer { address, connection, .. }) = peer.filter(|_| answer.len() > FREE) else { return Some(answer) };
    let share = connection.quotas.answers.take(*address, answer.len())?;
    Some(Bytes::from_owner(Counted { bytes: answer, _share: share }))
}

/// Discards a body that was not read, as far as it has come. If more is to come, the connection
/// ends after the answer.
pub(crate) async fn skip_rest(mut body: impl HttpBody<Data = Bytes> + Unpin, peer: Option<&Peer>) {
    let Some(peer) = peer else { return };
    let (mut bytes, mut waited) = (0, false);
    while !body.is_end_stream() {
        match poll_fn(|context| Poll::Ready(poll_once(&mut body, context))).await {
            Poll::Ready(Some(Ok(frame))) if bytes < FREE => bytes += frame.data_ref().map_or(0, Bytes::len),
            Poll::Ready(None) => return,
            // hyper passes on what it has read in the next turn of the connection.
            Poll::Pending if !waited => {
                waited = true;
                yield_now().await;
            }
            Poll::Ready(Some(_)) | Poll::Pending => return peer.connection.refuse_body(),
        }
    }
}

struct Counted {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns an empty piece in place of trailers, which no route uses. Reads the clock and sets
/// `deadline` only if it has to wait.
async fn next_piece(
    body: &mut (impl HttpBody<Data = Bytes> + Unpin),
    peer: Option<&Peer>,
    limits: &Limits,
    deadline: &mut Option<Instant>,
) -> Result<Option<Bytes>, BodyError> {
    let frame = match poll_fn(|context| Poll::Ready(poll_once(body, context))).await {
        Poll::Ready(frame) => frame,
        Poll::Pending => {
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + limits.body);
            let connection = peer.map(|peer| &peer.connection);
            connection.inspect(|connection| connection.await_client());
            let frame = timeout_at(deadline.min(now + limits.body_gap), body.frame()).await;
            connection.map_or(Ok(()), |connection| connection.mark_received()).map_err(|_| BodyError::Broken)?;
            frame.map_err(|_| BodyError::Timeout)?
        }
    };
    let frame = frame.transpose().map_err(|_| BodyError::Broken)?;
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

/// Wakes its own task only if more pieces follow.
fn poll_once<B>(body: &mut B, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let (frame, wakes) = without_wakeups(|| Pin::new(&mut *body).poll_frame(context));
    let was_last = matches!(frame, Poll::Ready(Some(Ok(_)))) && body.is_end_stream();
    if wakes && !was_last {
        context.waker().wake_by_ref();
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    async fn read(body: Body, limits: &Limits) -> Result<Bytes, BodyError> {
        read_body(body, None, BodyRoom::Verified, limits).await
    }

    #[tokio::test]
    async fn one_piece_is_returned_without_a_copy() {
        let bytes = Bytes::from("x".repeat(100));
        let whole = read(Body::from(bytes.clone()), &Limits::default()).await.expect("read");
        assert_eq!(whole.as_ptr(), bytes.as_ptr());
        assert_eq!(read(Body::empty(), &Limits::default()).await, Ok(Bytes::new()));
    }

    struct Pieces {
        left: usize,
        size: usize,
    }

    impl HttpBody for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
            self.left = left;
            Poll::Ready(Some(Ok(Frame::data(vec![b'x'; self.size].into()))))
        }
    }

    #[tokio::test]
    async fn a_body_in_tiny_pieces_is_given_up_after_a_thousand_of_them() {
        let limits = Limits::default();
        for (left, size, is_read) in [(1_024, 1, true), (2_000, 64, true), (1_025, 1, false), (9_000, 63, false)] {
            let read = read_body(Pieces { left, size }, None, BodyRoom::Verified, &limits).await;
            let expected = if is_read { Ok(left * size) } else { Err(BodyError::Broken) };
            assert_eq!(read.map(|bytes| bytes.len()), expected, "{left} pieces of {size}");
        }
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_not() {
        let limits = Limits { body_bytes: 4, ..Limits::default() };
        assert_eq!(read(Body::from("four"), &limits).await, Ok(Bytes::from("four")));
        assert_eq!(read(Body::from("fives"), &limits).await, Err(BodyError::TooLarge));
    }
}
