//! Makes requests to the callback listener through a proxy: SOCKS5 (RFC 1928, 1929) and HTTP
//! CONNECT (RFC 9110). A phone opens the connection if its platform can pass one on ([`Dial`]), and
//! otherwise this server, if an operator allows it.
//!
//! A client chooses the proxy's host, so the server connects only to addresses that [`ProxyHosts`]
//! admits. A name is resolved once, all of its addresses are checked, and one of them is used. The
//! proxy's own answer is not evidence; the callback listener sees the address of the request.
//! Errors and logs never contain a password, and buffers that held it are wiped.

use super::CallbackUrl;
use crate::phones::contract::{DeviceId, ProxyScheme, SetProxyArgs};
use crate::phones::port::Unreachable;
use crate::phones::proxy_hosts::ProxyHosts;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use toolwarrant::http::Expected;
use toolwarrant::text::Secret;

/// For both requests, including the look-up of the host.
const PATIENCE: Duration = Duration::from_secs(8);

/// The wait for a turn counts as part of the time of a reading.
const AT_ONCE: usize = 16;

const HEAD_BYTES: usize = 8 * 1024;

pub type DialedConnection = Box<dyn Duplex>;

pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A platform whose phones open connections, with a deadline.
#[async_trait]
pub trait Dial: Send + Sync {
    /// Connects a phone to a host, which is resolved there. If it cannot be reached, the connection
    /// may also just end.
    async fn dial(&self, id: &DeviceId, host: &str, port: u16) -> Result<DialedConnection, Unreachable>;
}

pub(super) async fn ask_from_phone(
    dial: &dyn Dial,
    id: &DeviceId,
    proxy: &SetProxyArgs,
    url: &CallbackUrl,
    pair: &[Expected; 2],
) -> Result<(), Unreachable> {
    let port = u16::try_from(proxy.port.get()).map_err(|_| Unreachable("the port is none".into()))?;
    let request = async |path| {
        let stream = dial.dial(id, proxy.host.as_str(), port).await?;
        request(stream, proxy, url, path).await.map_err(|_| Unreachable("the proxy did not pass a request on".into()))
    };
    let [first, second] = pair;
    let both = timeout(PATIENCE, async { tokio::try_join!(request(first.path()), request(second.path())) }).await;
    both.unwrap_or_else(|_| Err(Unreachable("the proxy did not answer in time".into()))).map(drop)
}

#[derive(Debug)]
pub struct ProxyReader {
    hosts: ProxyHosts,
    /// [`ProxyHosts::judge`], except in tests, whose proxies are on loopback.
    judge: Judge,
    turns: Arc<Semaphore>,
}

type Judge = fn(ProxyHosts, &str) -> Result<String, &'static str>;

impl ProxyReader {
    #[must_use]
    pub fn new(hosts: ProxyHosts) -> Self {
        Self { hosts, judge: ProxyHosts::judge, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    pub(super) async fn ask(
        &self,
        proxy: &SetProxyArgs,
        url: &CallbackUrl,
        pair: &[Expected; 2],
    ) -> Result<(), Unreachable> {
        let asking = async {
            let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else { return Err("no turn") };
            let port = u16::try_from(proxy.port.get()).map_err(|_| "the port is none")?;
            let host = proxy.host.as_str().to_owned();
            // The look-up owns the turn, because the system's resolver may take longer than this
            // method.
            let look_up = spawn_blocking(move || ((host, port).to_socket_addrs(), turn));
            let Ok((Ok(found), _turn)) = look_up.await else { return Err("the host was not found") };
            let at = self.pick_address(found)?;
            let [first, second] = pair;
            let request = async |path| {
                let stream = TcpStream::connect(at).await?;
                stream.set_nodelay(true)?;
                request(stream, proxy, url, path).await
            };
            let both = tokio::try_join!(request(first.path()), request(second.path()));
            both.map(drop).map_err(|_| "the proxy did not pass a request on")
        };
        let asked = timeout(PATIENCE, asking).await.unwrap_or(Err("the proxy did not answer in time"));
        asked.map_err(|why| Unreachable(why.into()))
    }

    fn pick_address(&self, found: impl IntoIterator<Item = SocketAddr>) -> Result<SocketAddr, &'static str> {
        let mut one = None;
        for address in found {
            let judged = (self.judge)(self.hosts, &address.ip().to_string());
            judged.map_err(|_| "the host has an address that is refused")?;
            one.get_or_insert(address);
        }
        one.ok_or("the host has no address")
    }
}

/// Reads the answer, because the request may still be on its way.
async fn request(mut stream: impl Duplex, proxy: &SetProxyArgs, url: &CallbackUrl, path: &str) -> io::Result<()> {
    match proxy.scheme {
        ProxyScheme::Socks5 => socks5(&mut stream, proxy, url).await?,
        ProxyScheme::Http => connect(&mut stream, proxy, url).await?,
        ProxyScheme::Https => return Err(refusal()),
    }
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", url.authority());
    stream.write_all(head.as_bytes()).await?;
    stream.read(&mut [0; 512]).await.map(drop)
}

fn login(proxy: &SetProxyArgs) -> Option<(&str, &str)> {
    let name = proxy.username.as_ref().map(|name| name.as_str());
    let password = proxy.password.as_ref().map(|password| password.expose().as_str());
    (name.is_some() || password.is_some()).then(|| (name.unwrap_or_default(), password.unwrap_or_default()))
}

async fn socks5(stream: &mut impl Duplex, proxy: &SetProxyArgs, url: &CallbackUrl) -> io::Result<()> {
    const NO_LOGIN: u8 = 0;
    const PASSWORD: u8 = 2;
    let login = login(proxy);
    let methods: &[u8] = if login.is_some() { &[5, 2, NO_LOGIN, PASSWORD] } else { &[5, 1, NO_LOGIN] };
    stream.write_all(methods).await?;
    match (read::<2>(stream).await?, login) {
        ([5, NO_LOGIN], _) => {}
        ([5, PASSWORD], Some((name, password))) => {
            let mut bytes = Vec::with_capacity(3 + name.len() + password.len());
            bytes.push(1);
            put(&mut bytes, name)?;
            put(&mut bytes, password)?;
            stream.write_all(Secret::new(bytes).expose()).await?;
            let [1, 0] = read(stream).await? else { return Err(refusal()) };
        }
        _ => return Err(refusal()),
    }
    let mut wanted = vec![5, 1, 0];
    match url.host.parse() {
        Ok(IpAddr::V4(address)) => {
            wanted.push(1);
            wanted.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            wanted.push(4);
            wanted.extend(address.octets());
        }
        Err(_) => {
            wanted.push(3);
            put(&mut wanted, &url.host)?;
        }
    }
    wanted.extend(url.port.to_be_bytes());
    stream.write_all(&wanted).await?;
    let [5, 0, _, kind] = read(stream).await? else { return Err(refusal()) };
    let bound = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(read::<1>(stream).await?[0]),
        _ => return Err(refusal()),
    };
    stream.read_exact(&mut vec![0; bound + 2]).await.map(drop)
}

async fn connect(stream: &mut impl Duplex, proxy: &SetProxyArgs, url: &CallbackUrl) -> io::Result<()> {
    let to = if url.authority().ends_with(&format!(":{}", url.port)) {
        url.authority().to_owned()
    } else {
        format!("{}:{}", url.authority(), url.port)
    };
    let mut head = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
    if let Some((name, password)) = login(proxy) {
        let pair = Secret::new(format!("{name}:{password}"));
        // Growing would leave a copy behind.
        head.reserve(64 + 2 * pair.expose().len());
        head += "Proxy-Authorization: Basic ";
        STANDARD.encode_string(pair.expose(), &mut head);
        head += "\r\n";
    }
    head += "\r\n";
    stream.write_all(Secret::new(head).expose().as_bytes()).await?;
    let mut answer = Vec::new();
    // Byte by byte, because the bytes after the head do not belong to the proxy's answer.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == HEAD_BYTES {
            return Err(refusal());
        }
        answer.push(stream.read_u8().await?);
    }
    let accepted = [b"HTTP/1.0 2", b"HTTP/1.1 2"].iter().any(|start| answer.starts_with(*start));
    if accepted { Ok(()) } else { Err(refusal()) }
}

fn put(bytes: &mut Vec<u8>, text: &str) -> io::Result<()> {
    bytes.push(u8::try_from(text.len()).map_err(|_| refusal())?);
    bytes.extend_from_slice(text.as_bytes());
    Ok(())
}

async fn read<const N: usize>(stream: &mut impl Duplex) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn refusal() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

#[cfg(test)]
pub(super) mod tests;
