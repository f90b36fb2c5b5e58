//! Connections over TCP without encryption. The server gets no password there, neither in plain
//! text nor as an MD5 hash: it must prove by SCRAM that it knows the password.

use crate::stream::{FirstMessage, ServerStream};
use std::convert::Infallible;
use std::future::{Ready, ready};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

#[derive(Clone, Copy)]
pub(crate) struct ScramOnly;

impl MakeTlsConnect<Socket> for ScramOnly {
    type Stream = ServerStream<Socket>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(*self)
    }
}

impl TlsConnect<Socket> for ScramOnly {
    type Stream = ServerStream<Socket>;
    type Error = Infallible;
    type Future = Ready<Result<ServerStream<Socket>, Infallible>>;

    fn connect(self, socket: Socket) -> Self::Future {
        ready(Ok(ServerStream { inner: socket, end_point: None, head: Some(FirstMessage::default()) }))
    }
}
