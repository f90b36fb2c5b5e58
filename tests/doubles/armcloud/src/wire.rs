//! Ports that can refuse all connections, and HTTP whose answers can be cut.

use crate::faults::CutAnswer;
use crate::platform;
use crate::world::World;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

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
}

pub(crate) async fn serve(world: Arc<World>, stream: TcpStream) -> io::Result<()> {
    let answer = service_fn(|request| Box::pin(platform::answer(world.clone(), request)));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    let ended = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let mut stream = connection.into_parts().io.into_inner();
    if let Some(CutAnswer { sent, is_reset }) = ended.as_ref().err().and_then(|error| error.source()?.downcast_ref()) {
        stream.write_all(sent).await?;
        if *is_reset {
            stream.set_zero_linger()?;
        }
    }
    Ok(())
}
