//! Proxies that listen: SOCKS5 and HTTP on one port each, for clients that take a reading through a
//! proxy themselves. The source address of their requests is [that of the
//! proxy](crate::addresses::of_proxy) at `127.0.0.1` and their port. They reach only this machine.
//!
//! The switches of proxies apply here too if they are set for all pads.
//!
//! A phone can also open a connection to a proxy that does not exist. It leads to [`serve_phone`],
//! which takes the part of that proxy.

use crate::addresses;
use crate::net::{self, add_forwarded};
use crate::switches::{Asked, Switch};
use crate::truth::Seat;
use crate::world::{World, now};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The listeners, and the login that they require.
#[derive(Debug)]
pub(crate) struct Proxies {
    listeners: Vec<TcpListener>,
    login: Option<String>,
}

/// The settings of a proxy while it serves a connection.
#[derive(Clone, Debug)]
struct ProxyConnection {
    world: Arc<World>,
    host: String,
    port: u16,
    /// `user:password`.
    login: Option<String>,
    /// The pad that opened the connection, if a pad did. Its switches apply.
    seats: Vec<Seat>,
}

/// The longest head of a request to a proxy.
const HEAD_MAX: usize = 64 << 10;

impl Proxies {
    /// Opens `count` listeners on free ports.
    pub(crate) async fn listen(count: u16, login: Option<String>) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for _ in 0..count {
            listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?);
        }
        Ok(Self { listeners, login })
    }

    /// Describes their addresses, and the source addresses of their requests.
    pub(crate) fn show(&self) -> Value {
        let ports =
            self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).map(|address| address.port());
        let shown = ports
            .map(|port| json!({"host": "127.0.0.1", "port": port, "exit": addresses::of_proxy("127.0.0.1", port)}));
        shown.collect()
    }

    /// Serves them forever.
    pub(crate) async fn serve(self, world: Arc<World>) {
        let Self { listeners, login } = self;
        let mut open = JoinSet::new();
        for listener in listeners {
            let port = listener.local_addr().map_or(0, |address| address.port());
            let (world, host, login) = (world.clone(), "127.0.0.1".to_owned(), login.clone());
            let proxy = ProxyConnection { world, host, port, login, seats: Vec::new() };
            open.spawn(net::serve_each(listener, move |stream| {
                let proxy = proxy.clone();
                async move { proxy.connection(stream).await }
            }));
        }
        while open.join_next().await.is_some() {}
        std::future::pending::<()>().await;
    }
}

/// Serves a connection that a phone has opened to the proxy at `host` and `port`.
pub(crate) async fn serve_phone(
    world: Arc<World>,
    seat: Seat,
    (host, port): (&str, u16),
    stream: TcpStream,
) -> io::Result<()> {
    let proxy = ProxyConnection { world, host: host.to_owned(), port, login: None, seats: vec![seat] };
    proxy.connection(stream).await
}

impl ProxyConnection {
    /// Returns the scope of the switches that apply.
    fn scope(&self) -> Asked<'_> {
        Asked { endpoint: "", seats: &self.seats }
    }

    async fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 || self.world.switches().take_flag(Switch::ProxyDead, self.scope()) {
            return Ok(());
        }
        if first == [5] { self.socks(&mut stream).await } else { self.http(&mut stream).await }
    }

    /// Serves SOCKS5 (RFC 1928 and 1929): CONNECT to an IPv4 address or a name.
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
        self.pass(stream, reached, Vec::new()).await
    }

    /// Serves HTTP: CONNECT, and requests with an absolute URL.
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
        let rest = target.strip_prefix("http://");
        let (authority, path) = rest.map_or((target, "/"), |rest| rest.split_at(rest.find('/').unwrap_or(rest.len())));
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
        let Ok(port) = port.parse() else { return stream.write_all(BAD_REQUEST).await };
        let reached = self.reach(host, port).await;
        if matches!(reached, ProxyOutcome::Nobody) {
            return stream.write_all(BAD_GATEWAY).await;
        }
        if method == "CONNECT" {
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            return self.pass(stream, reached, Vec::new()).await;
        }
        let is_hop = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            name.starts_with("proxy-") || name == "connection"
        };
        let kept: Vec<&str> = fields.iter().copied().filter(|line| !is_hop(line)).collect();
        let path = if path.is_empty() { "/" } else { path };
        let request = format!("{method} {path} HTTP/1.1\r\n{}\r\nConnection: close\r\n\r\n", kept.join("\r\n"));
        self.pass(stream, reached, request.into_bytes()).await
    }

    /// Connects as the switches say, and records it in the journal.
    async fn reach(&self, host: &str, port: u16) -> ProxyOutcome {
        let (own, asked) = ((self.host.as_str(), self.port), self.scope());
        let (lie, forwarder, rotates, forwards) = {
            let mut switches = self.world.switches();
            let lie = switches.take_text(Switch::ProxyLies, asked);
            let forwarder = switches.take_address(Switch::Forwarder, asked);
            let rotates = switches.take_flag(Switch::ProxyRotates, asked);
            (lie, forwarder, rotates, switches.take_flag(Switch::ProxyForwards, asked))
        };
        let source = match (forwarder, rotates) {
            (Some(forwarder), _) => forwarder,
            (None, true) => addresses::of_rotating_proxy(own.0, own.1, self.world.rotate()),
            (None, false) => addresses::of_proxy(own.0, own.1),
        };
        let way = if lie.is_some() { "answered by the proxy".to_owned() } else { source.to_string() };
        let proxy = format!("{}:{}", own.0, own.1);
        let pad = self.seats.first().map(|seat| self.world.truth().pad(*seat).code.clone());
        let by = if pad.is_some() { "command" } else { "client" };
        let entry = json!({"pad": pad, "to": format!("{host}:{port}"), "proxy": proxy, "set_by": by, "way": way});
        self.world.journal.write(now(), "traffic", entry);
        if let Some(body) = lie {
            return ProxyOutcome::Told(body);
        }
        let Some(to) = net::resolve(host) else { return ProxyOutcome::Nobody };
        let client = self.seats.first().map_or(Ipv4Addr::LOCALHOST, |seat| addresses::of_pad(seat.0));
        let by = forwards.then_some(client);
        net::connect(source, to, port).await.map_or(ProxyOutcome::Nobody, |stream| ProxyOutcome::Stream(stream, by))
    }

    /// Sends the part of the request that has been read, then forwards the data of both sides.
    async fn pass(&self, stream: &mut TcpStream, reached: ProxyOutcome, mut request: Vec<u8>) -> io::Result<()> {
        let (mut to, by) = match reached {
            ProxyOutcome::Nobody => return Ok(()),
            ProxyOutcome::Told(body) => {
                if request.is_empty() {
                    head(stream).await?;
                }
                let told = net::reply_text(&body);
                return stream.write_all(&[told.head.as_bytes(), &told.body].concat()).await;
            }
            ProxyOutcome::Stream(to, by) => (to, by),
        };
        if request.is_empty() && by.is_some() {
            request = head(stream).await?.into_bytes();
        }
        to.write_all(&add_forwarded(&request, by)).await?;
        tokio::io::copy_bidirectional(stream, &mut to).await.map(drop)
    }

    fn login(&self) -> Option<String> {
        self.world.switches().take_text(Switch::ProxyLogin, self.scope()).or_else(|| self.login.clone())
    }
}

/// The result of connecting.
enum ProxyOutcome {
    Nobody,
    /// The answer of a proxy that lies.
    Told(String),
    /// The stream, and the address for `X-Forwarded-For`.
    Stream(TcpStream, Option<Ipv4Addr>),
}

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BAD_GATEWAY: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

async fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads a text with its length before it.
async fn text(stream: &mut TcpStream) -> io::Result<String> {
    let [length] = read(stream).await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the head of a request byte by byte, so that the body stays unread.
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
