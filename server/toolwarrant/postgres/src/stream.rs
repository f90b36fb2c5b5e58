//! The stream that the driver reads and writes, encrypted or not.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

pub(crate) struct ServerStream<S> {
    pub(crate) inner: S,
    /// The hash of the certificate to which SCRAM binds the session.
    pub(crate) end_point: Option<Vec<u8>>,
    /// The stream ends if this asks for anything but SCRAM.
    pub(crate) head: Option<FirstMessage>,
}

/// Type, length and code of the first message of a server.
#[derive(Default)]
pub(crate) struct FirstMessage {
    bytes: [u8; 9],
    length: usize,
}

impl FirstMessage {
    /// Fails if the message asks for anything but SCRAM. Needs no more than the head: the driver
    /// answers only whole messages, and none that asks for a password is shorter.
    pub(crate) fn examine(&mut self, bytes: &[u8]) -> io::Result<()> {
        let taken = bytes.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..][..taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
        match self.bytes {
            _ if taken == 0 || self.length < self.bytes.len() => Ok(()),
            // An error, no password, or SASL.
            [b'E', ..] | [b'R', _, _, _, _, 0, 0, 0, 0 | 10] => Ok(()),
            _ => Err(io::Error::other(
                "the server asks for the password by another method than SCRAM, and the connection is not encrypted; \
                 let pg_hba.conf ask for scram-sha-256, or give the URL `sslmode=verify-full`",
            )),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for ServerStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.end_point.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ServerStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        match (read, &mut self.head) {
            (Poll::Ready(Ok(())), Some(head)) => Poll::Ready(head.examine(&buffer.filled()[before..])),
            (other, _) => other,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ServerStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
