//! The proxies of phones, SOCKS5 and HTTP CONNECT. They do not exist: a connection that a phone
//! opens to one leads to [`serve_phone`]. Its requests leave from [the address of the
//! proxy](crate::addresses::of_proxy).

use crate::net;
use crate::switches::Asked;
use crate::traffic::exit;
use crate::truth::Seat;
use crate::world::World;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Debug)]
struct ProxyConnection {
    world: Arc<World>,
    host: String,
    port: u16,
    seat: Seat,
}

const HEAD_MAX: usize = 64 << 10;

pub(crate) async fn serve_phone(
    world: Arc<World>,
    seat: Seat,
    (host, port): (&str, u16),
    stream: TcpStream,
) -> io::Result<()> {
    let proxy = ProxyConnection { world, host: host.to_owned(), port, seat };
    proxy.connection(stream).await
}

impl ProxyConnection {
    fn scope(&self) -> Asked<'_> {
        Asked { endpoint: "", seats: std::slice::from_ref(&self.seat) }
    }

    async fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut first = [0];
        let is_open = stream.peek(&mut first).await? > 0;
        if !is_open || self.world.switches().is_set(self.scope(), |set| &mut set.proxy_dead) {
            return Ok(());
        }
        if first == [5] { self.socks(&mut stream).await } else { self.http(&mut stream).await }
    }

    /// Serves CONNECT to an IPv4 address or a name (RFC 1928 and 1929).
    async fn socks(&self, stream: &mut TcpStream) -> io::Result<()> {
        let [_, count] = read(stream).await?;
        let mut methods = vec![0; usize::from(count)];
        stream.read_exact(&mut methods).await?;
        let login = self.login();
        let method = if login.is_some() { 2 } else { 0 };
        if !methods.contains(&method) {
            return stream.write_all(&[5, 0xff]).await;
        }
        stream.write_all(&[5, method]).await?;
        if let Some(login) = login {
            let [_version] = read(stream).await?;
            let (user, password) = (text(stream).await?, text(stream).await?);
            let is_right = format!("{user}:{password}") == login;
            stream.write_all(&[1, u8::from(!is_right)]).await?;
            if !is_right {
                return Ok(());
            }
        }
        let [_, command, _, kind] = read(stream).await?;
        let host = match kind {
            1 => Ipv4Addr::from(read::<4>(stream).await?).to_string(),
            3 => text(stream).await?,
            _ => return stream.write_all(&[5, 8, 0, 1, 0, 0, 0, 0, 0, 0]).await,
        };
        let port = u16::from_be_bytes(read(stream).await?);
        if command != 1 {
            return stream.write_all(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        }
        let reached = self.reach(&host, port).await;
        let code = if matches!(reached, ProxyOutcome::Nobody) { 5 } else { 0 };
        stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        self.pass(stream, reached).await
    }

    async fn http(&self, stream: &mut TcpStream) -> io::Result<()> {
        let head = head(stream).await?;
        let mut lines = head.split("\r\n");
        let mut parts = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let fields: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        if let Some(login) = self.login() {
            let expected = format!("Basic {}", BASE64_STANDARD.encode(login));
            if field(&fields, "proxy-authorization") != Some(&expected) {
                let refused =
                    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"double\"\r\n";
                return stream
                    .write_all(format!("{refused}Content-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())
                    .await;
            }
        }
        let (host, port) = target.rsplit_once(':').unwrap_or((target, "80"));
        let (Ok(port), "CONNECT") = (port.parse(), method) else { return stream.write_all(BAD_REQUEST).await };
        let reached = self.reach(host, port).await;
        if matches!(reached, ProxyOutcome::Nobody) {
            return stream.write_all(BAD_GATEWAY).await;
        }
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        self.pass(stream, reached).await
    }

    async fn reach(&self, host: &str, port: u16) -> ProxyOutcome {
        let asked = self.scope();
        let source = {
            let mut switches = self.world.switches();
            if let Some(body) = switches.take(asked, |set| &mut set.proxy_lies) {
                return ProxyOutcome::Told(body);
            }
            let forwarder = switches.take(asked, |set| &mut set.forwarder);
            forwarder.unwrap_or_else(|| exit(&self.world, &mut switches, asked, (&self.host, self.port)))
        };
        let Some(to) = net::resolve(host) else { return ProxyOutcome::Nobody };
        net::connect(source, to, port).await.map_or(ProxyOutcome::Nobody, ProxyOutcome::Stream)
    }

    async fn pass(&self, stream: &mut TcpStream, reached: ProxyOutcome) -> io::Result<()> {
        match reached {
            ProxyOutcome::Nobody => Ok(()),
            ProxyOutcome::Told(body) => {
                head(stream).await?;
                let length = body.len();
                stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes()).await
            }
            ProxyOutcome::Stream(mut to) => tokio::io::copy_bidirectional(stream, &mut to).await.map(drop),
        }
    }

    fn login(&self) -> Option<String> {
        self.world.switches().take(self.scope(), |set| &mut set.proxy_login)
    }
}

enum ProxyOutcome {
    Nobody,
    Told(String),
    Stream(TcpStream),
}

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BAD_GATEWAY: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

async fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn text(stream: &mut TcpStream) -> io::Result<String> {
    let [length] = read(stream).await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads byte by byte, so that the body stays unread.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let [byte] = read(stream).await?;
        head.push(byte);
        if head.len() > HEAD_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn field<'a>(fields: &[&'a str], name: &str) -> Option<&'a str> {
    let named = fields.iter().filter_map(|line| line.split_once(':'));
    named.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
