//! Connections between loopback addresses, and plain HTTP/1.1 over them, for phones and for
//! proxies. Other addresses are never contacted.

use serde::de::DeserializeOwned;
use std::io;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

const ANSWER_MAX: u64 = 16 << 20;

pub(crate) fn resolve(host: &str) -> Option<Ipv4Addr> {
    if host == "localhost" || host.ends_with(".localhost") {
        return Some(Ipv4Addr::LOCALHOST);
    }
    host.parse().ok()
}

pub(crate) async fn connect(source: Ipv4Addr, to: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    if !to.is_loopback() {
        return Err(io::ErrorKind::HostUnreachable.into());
    }
    let socket = TcpSocket::new_v4()?;
    socket.bind((source, 0).into())?;
    socket.connect((to, port).into()).await
}

/// Returns the whole answer, with its head. The request must ask the other side to close.
pub(crate) async fn exchange(mut stream: TcpStream, request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes()).await?;
    let mut read = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut read).await?;
    if read.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

pub(crate) async fn post<T: DeserializeOwned>(control: &str, path: &str, body: &str) -> io::Result<T> {
    let answer = kit::send("POST", &format!("{control}/{path}"), body).await.map_err(io::Error::other)?;
    Ok(serde_json::from_str(&answer.body)?)
}

/// Goes on after an error, which concerns only the client of that connection.
pub(crate) async fn serve_each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await
            && stream.set_nodelay(true).is_ok()
        {
            connections.spawn(serve(stream));
        }
    }
}
