//! A client's stream. It ends a connection whose client does not read its answer, and notices a
//! client that closes its side. It also gives a client whose body was refused time to read why.

use super::connection::Connection;
use super::limits::Limits;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

const AHEAD_MAX: usize = 8 * 1024;

/// Time for a client that still sends a refused body to read why.
const LINGER: Duration = Duration::from_secs(2);

/// While an answer is held, the stream reads ahead to see whether the client has closed its side.
pub(super) struct ClientStream<S> {
    stream: S,
    connection: Arc<Connection>,
    patience: Patience,
    /// Present while the client is slower than the server.
    slow: Option<Slow>,
    ahead: Vec<u8>,
    /// Starts at the end of an answer whose request was not read completely.
    lingering: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy)]
struct Patience {
    stall: Duration,
    rate: u64,
}

struct Slow {
    since: Instant,
    taken: u64,
    stalled: bool,
    deadline: Pin<Box<Sleep>>,
}

impl<S> ClientStream<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>, limits: &Limits) -> Self {
        let patience = Patience { stall: limits.answer, rate: limits.answer_rate.max(1) };
        Self { stream, connection, patience, slow: None, ahead: Vec::new(), lingering: None }
    }

    /// Fails a write that waits longer than the patience.
    fn limit(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => {
                let slow = self.slow.get_or_insert_with(|| Slow::new(Instant::now()));
                ready!(slow.poll_deadline(context, self.patience));
                Poll::Ready(Err(ErrorKind::TimedOut.into()))
            }
            Poll::Ready(Ok(bytes)) => {
                if let Some(slow) = &mut self.slow {
                    slow.taken += *bytes as u64;
                    slow.stalled = false;
                }
                written
            }
            Poll::Ready(Err(_)) => written,
        }
    }
}

impl Slow {
    fn new(now: Instant) -> Self {
        Self { since: now, taken: 0, stalled: false, deadline: Box::pin(sleep_until(now)) }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, Patience { stall, rate }: Patience) -> Poll<()> {
        if !self.stalled {
            self.stalled = true;
            let in_all = self.since + stall + Duration::from_secs_f64(self.taken as f64 / rate as f64);
            self.deadline.as_mut().reset(in_all.min(Instant::now() + stall));
        }
        self.deadline.as_mut().poll(context)
    }
}

impl<S: AsyncRead + Unpin> ClientStream<S> {
    fn look_ahead(&mut self, context: &mut Context<'_>) {
        while self.connection.hangup.is_awaited() && self.ahead.len() < AHEAD_MAX {
            let mut bytes = [0; 1024];
            let mut into = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut into) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) if !into.filled().is_empty() => self.ahead.extend_from_slice(into.filled()),
                Poll::Ready(Ok(()) | Err(_)) => self.connection.hangup.set(),
            }
        }
    }

    /// Discards bytes until the client has read the answer and closes. If the server closed the
    /// socket first, the client could lose the answer.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let over = self.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        while over.as_mut().poll(context).is_pending() {
            let mut bytes = [0; 4 * 1024];
            let mut into = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut into)) {
                Ok(()) if !into.filled().is_empty() => {}
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.connection.reads();
        if self.ahead.is_empty() {
            let before = into.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(context, into);
            if into.filled().len() > before {
                self.connection.has_read();
            }
            return read;
        }
        self.connection.has_read();
        let taken = self.ahead.len().min(into.remaining());
        into.put_slice(&self.ahead[..taken]);
        if taken == self.ahead.len() {
            self.ahead = Vec::new();
        } else {
            self.ahead.drain(..taken);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limit(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper also flushes whenever a request makes no progress, and does not read meanwhile.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.slow = None;
        self.look_ahead(context);
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.connection.mark_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.connection.has_refused_body() {
                return Poll::Ready(Ok(()));
            }
        }
        self.linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::ConnectionLimiter;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::timeout;

    fn stream(limits: Limits) -> (ClientStream<DuplexStream>, DuplexStream) {
        let permit = ConnectionLimiter::new(limits).acquire([192, 0, 2, 1].into()).expect("a permit");
        let (ours, theirs) = duplex(1024);
        (ClientStream::new(ours, Arc::clone(&permit.connection), &limits), theirs)
    }

    /// Reads `bytes` bytes every `every` seconds. Returns the seconds until the connection ended.
    async fn read(bytes: usize, every: u64) -> (u64, io::Result<()>) {
        let (mut stream, mut client) = stream(Limits::default());
        let begin = Instant::now();
        let reading = tokio::spawn(async move {
            let mut some = vec![0; bytes];
            while client.read_exact(&mut some).await.is_ok() {
                sleep(Duration::from_secs(every)).await;
            }
        });
        let ended = stream.write_all(&vec![b'x'; 1024 * 1024]).await;
        reading.abort();
        (begin.elapsed().as_secs(), ended)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_too_slowly_is_given_up_and_one_that_is_just_slow_is_not() {
        let given_up = |ended: io::Result<()>| ended.expect_err("given up").kind() == ErrorKind::TimedOut;
        let (seconds, ended) = read(1, 1).await;
        assert!(given_up(ended) && seconds == 15, "a byte a second: {seconds} s");
        let (seconds, ended) = read(1024, 1).await;
        assert!(given_up(ended) && (19..=21).contains(&seconds), "a KiB a second: {seconds} s");
        let (seconds, ended) = read(1024, 16).await;
        assert!(given_up(ended) && seconds <= 31, "with pauses: {seconds} s");
        let (seconds, ended) = read(5 * 1024, 1).await;
        assert!(ended.is_ok() && seconds > 200, "5 KiB a second: {seconds} s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_clients_stream_is_noticed_after_its_next_request_which_is_not_lost() {
        let (mut stream, mut client) = stream(Limits::default());
        let connection = Arc::clone(&stream.connection);
        client.write_all(b"the next request").await.expect("written");
        let hangup = async {
            let flush = async {
                stream.flush().await.expect("flushed");
                sleep(Duration::from_secs(1)).await;
                stream.flush().await.expect("flushed");
            };
            tokio::join!(timeout(Duration::from_secs(5), connection.hangup.wait()), flush).0
        };
        let (hung_up, ()) = tokio::join!(hangup, async { drop(client) });
        hung_up.expect("it is seen");
        let mut all = String::new();
        stream.read_to_string(&mut all).await.expect("read");
        assert_eq!(all, "the next request");
    }
}
