//! Connections over TCP without encryption. The server gets no password there, neither in plain
//! text nor as an MD5 hash: it must prove by SCRAM that it knows the password.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

#[derive(Clone, Copy)]
pub(crate) struct ScramOnly;

/// It ends if the first message of its server asks for anything but SCRAM.
pub(crate) struct ScramStream {
    socket: Socket,
    /// Type, length and code of the first message.
    head: [u8; 9],
    length: usize,
}

impl MakeTlsConnect<Socket> for ScramOnly {
    type Stream = ScramStream;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(*self)
    }
}

impl TlsConnect<Socket> for ScramOnly {
    type Stream = ScramStream;
    type Error = Infallible;
    type Future = Ready<Result<ScramStream, Infallible>>;

    fn connect(self, socket: Socket) -> Self::Future {
        ready(Ok(ScramStream { socket, head: [0; 9], length: 0 }))
    }
}

impl TlsStream for ScramStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl ScramStream {
    /// Needs no more than the head: the driver answers only whole messages, and none that asks for
    /// a password is shorter.
    fn examine(&mut self, bytes: &[u8]) -> io::Result<()> {
        let taken = bytes.len().min(self.head.len() - self.length);
        self.head[self.length..][..taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
        match self.head {
            _ if taken == 0 || self.length < self.head.len() => Ok(()),
            // An error, no password, or SASL.
            [b'E', ..] | [b'R', _, _, _, _, 0, 0, 0, 0 | 10] => Ok(()),
            _ => Err(io::Error::other(
                "the server asks for the password by another method than SCRAM, and the connection is not encrypted; \
                 let pg_hba.conf ask for scram-sha-256, or give the URL `sslmode=verify-full`",
            )),
        }
    }
}

impl AsyncRead for ScramStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(self.examine(&buffer.filled()[before..])),
            other => other,
        }
    }
}

impl AsyncWrite for ScramStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
