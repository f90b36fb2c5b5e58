//! A gate in front of a connection: whether the first byte of a request may leave, and whether it has.
//!
//! The library writes from a task of its own, which can still run when the request was given up. So the gate is one atomic state: either
//! the writer passes it, or who gave up shuts it, never both.

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

/// The gate of one request.
pub(super) struct Gate {
    state: AtomicU8,
    may_leave: Box<dyn Fn() -> bool + Send + Sync>,
}

/// How a gate stood when it was shut.
pub(super) enum Verdict {
    /// No byte came to it, and none can pass it any more.
    Waiting,
    /// The first byte was refused.
    Refused,
    /// The first byte has passed.
    Left,
}

const WAITING: u8 = 0;
const LEFT: u8 = 1;
const REFUSED: u8 = 2;
const SHUT: u8 = 3;

impl Gate {
    pub(super) fn new(may_leave: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { state: AtomicU8::new(WAITING), may_leave: Box::new(may_leave) }
    }

    /// Lets nothing through that has not begun to pass.
    pub(super) fn shut(&self) -> Verdict {
        match self.state.compare_exchange(WAITING, SHUT, SeqCst, SeqCst) {
            Err(LEFT) => Verdict::Left,
            Err(REFUSED) => Verdict::Refused,
            _ => Verdict::Waiting,
        }
    }

    /// Asked before each write.
    pub(super) fn pass(&self) -> io::Result<()> {
        if self.state.load(SeqCst) == WAITING {
            let verdict = if (self.may_leave)() { LEFT } else { REFUSED };
            // Whoever shut it meanwhile is right.
            let _ = self.state.compare_exchange(WAITING, verdict, SeqCst, SeqCst);
        }
        if self.state.load(SeqCst) == LEFT {
            return Ok(());
        }
        Err(io::Error::other("the request is not to leave any more"))
    }
}

/// Makes connections with the gate in them. Inside of it, TLS and tunnels stand already.
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

/// A connection behind its gate.
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

/// Vectored writes stay off, so each byte comes through `poll_write`.
impl<S: AsyncWrite + Unpin> AsyncWrite for GatedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.gate.pass()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
