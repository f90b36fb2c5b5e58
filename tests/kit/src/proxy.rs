//! A proxy's side of SOCKS5 (RFC 1928 and 1929) and of HTTP CONNECT.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const HEAD_MAX: usize = 64 << 10;

#[derive(Debug)]
pub struct ProxyClient {
    pub stream: TcpStream,
    /// The host and the port to which it wants to be connected.
    pub to: String,
    /// The kind of the address in SOCKS5, which CONNECT does not have.
    address: Option<u8>,
}

impl ProxyClient {
    /// Demands `login`, a `user:password`. Returns `None` if the client is refused.
    pub async fn meet(mut stream: TcpStream, login: Option<&str>) -> io::Result<Option<Self>> {
        match stream.read_u8().await? {
            5 => Self::meet_over_socks(stream, login).await,
            first => Self::meet_over_http(stream, first, login).await,
        }
    }

    async fn meet_over_socks(mut stream: TcpStream, login: Option<&str>) -> io::Result<Option<Self>> {
        let method = if login.is_some() { 2 } else { 0 };
        if !read_counted(&mut stream).await?.contains(&method) {
            return stream.write_all(&[5, 0xff]).await.map(|()| None);
        }
        stream.write_all(&[5, method]).await?;
        if let Some(login) = login {
            stream.read_u8().await?;
            let (user, password) = (read_counted(&mut stream).await?, read_counted(&mut stream).await?);
            let is_right = [&user, &b":"[..], &password].concat() == login.as_bytes();
            stream.write_all(&[1, u8::from(!is_right)]).await?;
            if !is_right {
                return Ok(None);
            }
        }
        let [5, 1, 0, kind] = read(&mut stream).await? else {
            return stream.write_all(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]).await.map(|()| None);
        };
        let host = match kind {
            1 => read::<4>(&mut stream).await.map(|four| Ipv4Addr::from(four).to_string())?,
            4 => read::<16>(&mut stream).await.map(|six| format!("[{}]", Ipv6Addr::from(six)))?,
            _ => String::from_utf8_lossy(&read_counted(&mut stream).await?).into_owned(),
        };
        let port = stream.read_u16().await?;
        Ok(Some(Self { stream, to: format!("{host}:{port}"), address: Some(kind) }))
    }

    async fn meet_over_http(mut stream: TcpStream, first: u8, login: Option<&str>) -> io::Result<Option<Self>> {
        let head = char::from(first).to_string() + &read_head(&mut stream).await?;
        let basic = login.map(|login| format!("Basic {}\r\n", BASE64_STANDARD.encode(login)));
        let to = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
        match (to, basic.is_none_or(|basic| head.contains(&basic))) {
            (Some(to), true) => Ok(Some(Self { stream, to: to.to_owned(), address: None })),
            _ => stream.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n").await.map(|()| None),
        }
    }

    /// Says whether the client is connected. Names an address of another kind than the client did.
    pub async fn answer(&mut self, is_connected: bool) -> io::Result<()> {
        let refused = if is_connected { 0 } else { 5 };
        let answer = match (&self.address, is_connected) {
            (Some(1), _) => [&[5, refused, 0], &[3, 1, b'x', 0, 0][..]].concat(),
            (Some(_), _) => [&[5, refused, 0], &[1, 0, 0, 0, 0, 0, 0][..]].concat(),
            (None, true) => b"HTTP/1.1 200 Fine\r\nX: y\r\n\r\n".to_vec(),
            (None, false) => b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        self.stream.write_all(&answer).await
    }

    /// Answers a request in place of the other side.
    pub async fn lie(mut self, body: &str) -> io::Result<()> {
        read_head(&mut self.stream).await?;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.stream.write_all(answer.as_bytes()).await
    }
}

async fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.map(|_| bytes)
}

/// Reads a length and as many bytes.
async fn read_counted(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut bytes).await.map(|_| bytes)
}

/// Reads byte by byte, so that the body stays unread.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_MAX {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
