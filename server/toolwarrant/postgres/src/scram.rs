//! Connections over TCP without encryption. The server gets no password there, neither in plain
//! text nor as an MD5 hash: it must prove by SCRAM that it knows the password.

use crate::stream::Stream;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

#[derive(Clone, Copy)]
pub(crate) struct ScramOnly;

/// Type, length and code of the first message of a server.
#[derive(Default)]
pub(crate) struct Head {
    bytes: [u8; 9],
    length: usize,
}

impl MakeTlsConnect<Socket> for ScramOnly {
    type Stream = Stream<Socket>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(*self)
    }
}

impl TlsConnect<Socket> for ScramOnly {
    type Stream = Stream<Socket>;
    type Error = Infallible;
    type Future = Ready<Result<Stream<Socket>, Infallible>>;

    fn connect(self, socket: Socket) -> Self::Future {
        ready(Ok(Stream { inner: socket, end_point: None, head: Some(Head::default()) }))
    }
}

impl Head {
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
