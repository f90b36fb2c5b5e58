//! A gate in front of a connection: asks if the first byte of a request may leave, and records if
//! it has left. Start at [`Gate`].
//!
//! The library writes in its own task, which may still run after the caller has given up. So the
//! gate is decided once: either the writer passes it, or the caller shuts it, never both.

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

pub(super) struct Gate {
    verdict: OnceLock<Verdict>,
    may_leave: Mutex<Question>,
}

type Question = Pin<Box<dyn Future<Output = bool> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Left,
    Refused,
    Shut,
}

impl Gate {
    pub(super) fn new(may_leave: impl Future<Output = bool> + Send + 'static) -> Self {
        Self { verdict: OnceLock::new(), may_leave: Mutex::new(Box::pin(may_leave)) }
    }

    pub(super) fn shut(&self) -> Verdict {
        *self.verdict.get_or_init(|| Verdict::Shut)
    }

    /// Decides at the first write, and waits for the answer. The first byte is written right after
    /// that.
    pub(super) fn poll_pass(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let verdict = match self.verdict.get() {
            Some(verdict) => verdict,
            None => {
                let may_leave = self.may_leave.lock().unwrap_or_else(PoisonError::into_inner).as_mut().poll(context);
                let answer = if ready!(may_leave) { Verdict::Left } else { Verdict::Refused };
                self.verdict.get_or_init(|| answer)
            }
        };
        Poll::Ready(match verdict {
            Verdict::Left => Ok(()),
            Verdict::Refused | Verdict::Shut => Err(io::Error::other("the request is not to leave any more")),
        })
    }
}

/// TLS and tunnels are set up below the gate.
#[derive(Clone)]
pub(super) struct Gated<C> {
    pub(super) connector: C,
    pub(super) gate: Arc<Gate>,
}

impl<C> Service<Uri> for Gated<C>
where
    C: Service<Uri, Future: Send + 'static>,
{
    type Response = TokioIo<GatedStream<TokioIo<C::Response>>>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, gate) = (self.connector.call(to), self.gate.clone());
        Box::pin(async move { Ok(TokioIo::new(GatedStream { stream: TokioIo::new(connecting.await?), gate })) })
    }
}

pub(super) struct GatedStream<S> {
    stream: S,
    gate: Arc<Gate>,
}

impl<S: Connection> Connection for GatedStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GatedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

/// Vectored writes are off, so each byte goes through `poll_write`.
impl<S: AsyncWrite + Unpin> AsyncWrite for GatedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.gate.poll_pass(context))?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
