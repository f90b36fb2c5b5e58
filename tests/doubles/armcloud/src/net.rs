//! Connections between loopback addresses, and plain HTTP/1.1 over them, for phones and for
//! proxies. Other addresses are never contacted.

use serde::de::DeserializeOwned;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

const ANSWER_MAX: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

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

/// Returns `None` if the other side closes without an answer.
pub(crate) async fn exchange(mut stream: TcpStream, request: &[u8]) -> io::Result<Option<Reply>> {
    stream.write_all(request).await?;
    let mut read = Vec::new();
    let head_end = loop {
        if let Some(at) = position(&read, b"\r\n\r\n") {
            break at + 4;
        }
        if read.len() > ANSWER_MAX || stream.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&read[..head_end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
    let is_chunked = header(&head, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let mut body = read.split_off(head_end);
    loop {
        let is_whole = match length {
            Some(length) => body.len() >= length,
            None => is_chunked && body.ends_with(b"0\r\n\r\n"),
        };
        if is_whole || body.len() > ANSWER_MAX {
            break;
        }
        if stream.read_buf(&mut body).await? == 0 {
            match length {
                Some(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                None => break,
            }
        }
    }
    let body = if is_chunked { dechunk(&body) } else { body };
    Ok(Some(Reply { status, head, body }))
}

pub(crate) async fn post<T: DeserializeOwned>(control: &str, path: &str, body: &str) -> io::Result<T> {
    let host = control.trim_start_matches("http://").trim_end_matches("/double");
    let address: SocketAddr = host.parse().map_err(io::Error::other)?;
    let length = body.len();
    let request = format!("POST /double/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}");
    let reply = exchange(TcpStream::connect(address).await?, request.as_bytes()).await?;
    let reply = reply.ok_or_else(|| io::Error::other("the double does not answer"))?;
    Ok(serde_json::from_slice(&reply.body)?)
}

/// Goes on after an error, which concerns only the client of that connection.
pub(crate) async fn serve_each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream));
        }
    }
}

pub(crate) fn reply_text(body: &str) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
    Reply { status: 200, head, body: body.as_bytes().to_vec() }
}

pub(crate) async fn within<T>(seconds: Option<f64>, work: impl Future<Output = T>) -> Option<T> {
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).filter(|limit| !limit.is_zero()) {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = position(rest, b"\r\n") {
        let size = std::str::from_utf8(&rest[..at]).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(chunk) = size.filter(|size| *size > 0).and_then(|size| rest.get(at + 2..at + 2 + size)) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(at + 4 + chunk.len()..).unwrap_or_default();
    }
    body
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
