//! Connections with faults: closed, reset or cut off at a chosen byte of an answer, and a port that
//! can refuse all connections.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Close,
    Reset,
    ResetAfterFirstByte,
    /// Of this number of bytes.
    HalfBody(usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Connection(Arc<Mutex<Option<Cut>>>);

impl Connection {
    pub(crate) fn cut(&self, cut: Cut) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    fn choose_cut(&self) -> Option<Cut> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected<IncomingStream<'_, Door>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.io().connection.clone()
    }
}

/// While the double does not listen, no other program gets the port.
#[derive(Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    _held: TcpSocket,
}

impl Port {
    pub(crate) fn take(address: SocketAddr) -> io::Result<Self> {
        let held = TcpSocket::new_v4()?;
        held.set_reuseaddr(true)?;
        held.bind(address)?;
        Ok(Self { address: held.local_addr()?, _held: held })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        socket.listen(1_024)
    }

    pub(crate) fn open(&self, closed: watch::Receiver<bool>) -> io::Result<Door> {
        Ok(Door { listener: self.listen()?, closed })
    }
}

#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    closed: watch::Receiver<bool>,
}

impl Listener for Door {
    type Io = Spoilable;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Without this option, Nagle's algorithm may delay a reset, which is then still
                    // a reset.
                    let _ = stream.set_nodelay(true);
                    return (Spoilable::new(stream, self.closed.clone()), address);
                }
                Err(error) => {
                    eprintln!("a connection cannot be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(crate) struct Spoilable {
    stream: TcpStream,
    connection: Connection,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_closed: bool,
    /// `None` until the head is written.
    body_written: Option<usize>,
}

impl Spoilable {
    fn new(stream: TcpStream, mut closed: watch::Receiver<bool>) -> Self {
        let closing = Box::pin(async move {
            // An error means that the program is ending.
            let _ = closed.wait_for(|closed| *closed).await;
        });
        let connection = Connection::default();
        Self { stream, connection, closing, is_closed: false, body_written: None }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.is_closed || self.closing.as_mut().poll(context).is_ready() {
            self.is_closed = true;
            return Err(self.reset());
        }
        Ok(())
    }

    fn reset(&self) -> io::Error {
        let _ = self.stream.set_zero_linger();
        io::ErrorKind::ConnectionReset.into()
    }
}

impl AsyncRead for Spoilable {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Spoilable {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let end: io::Error = io::ErrorKind::BrokenPipe.into();
        match self.connection.choose_cut() {
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
            Some(Cut::Close) => Poll::Ready(Err(end)),
            Some(Cut::Reset) => Poll::Ready(Err(self.reset())),
            Some(Cut::ResetAfterFirstByte) => {
                let first = &bytes[..bytes.len().min(1)];
                match Pin::new(&mut self.stream).poll_write(context, first) {
                    Poll::Ready(Ok(_)) => Poll::Ready(Err(self.reset())),
                    other => other,
                }
            }
            Some(Cut::HalfBody(length)) => {
                let (head, before) = match self.body_written {
                    Some(written) => (0, written),
                    // The head is written in one piece.
                    None => (bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4), 0),
                };
                let allowed = bytes.len().min(head + (length / 2).saturating_sub(before));
                if allowed == 0 {
                    return Poll::Ready(Err(end));
                }
                let written = Pin::new(&mut self.stream).poll_write(context, &bytes[..allowed]);
                if let Poll::Ready(Ok(written)) = &written {
                    self.body_written = Some(before + written.saturating_sub(head));
                }
                written
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
