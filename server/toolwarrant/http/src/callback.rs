//! The callback listener: reports the address from which this server received a request to a
//! one-time path.
//!
//! A machine can lie about its own address, but not about the address that a request comes from. It
//! is the connection's own address: the listener does not read the headers of proxies. The listener
//! is open to everybody, so it sends no byte in answer to a request for any other path and does not
//! log it. Start at [`CallbackListener::bind`].

use crate::edge::{self, ConnectionLimiter, ConnectionPermit, Limits};
use std::collections::HashMap;
use std::io::{self, Error};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_base::random::Random;
use toolwarrant_base::{hex, ignore_poison};

/// At the limit, the listener closes a connection that has not sent its request in favour of a new
/// one. All fit into the file descriptors that the edge leaves free.
const CONNECTIONS: usize = 128;
const CONNECTIONS_PER_ADDRESS: usize = 64;

/// Time for the head of a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);

const HEAD_BYTES: usize = 2 * 1024;

/// Some clients accept only status 200 as success.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n";

/// The address from which a one-time path was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackSource {
    /// There was no request so far.
    Nobody,
    /// All requests came from this address. IPv4 in the form of IPv6 is returned as IPv4.
    One(IpAddr),
    /// Requests came from different addresses, so a third party repeats the request.
    Several,
}

/// Draws one-time paths. Clones share them.
#[derive(Clone, Debug)]
pub struct CallbackPaths {
    random: Random,
    paths: Arc<Paths>,
}

/// A one-time path. Requests to it are recorded until this is dropped.
#[derive(Debug)]
pub struct Expected {
    path: String,
    paths: Arc<Paths>,
    seen: watch::Receiver<CallbackSource>,
}

/// Listens for requests to one-time paths only.
pub struct CallbackListener {
    listener: TcpListener,
    limiter: Arc<ConnectionLimiter>,
    paths: Arc<Paths>,
}

#[derive(Debug, Default)]
struct Paths(Mutex<HashMap<String, watch::Sender<CallbackSource>>>);

impl CallbackListener {
    /// Listens on `address`. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system cannot listen on the address.
    pub fn bind(address: SocketAddr, random: Random) -> io::Result<(Self, CallbackPaths)> {
        let limits = Limits {
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            head: PATIENCE,
            ..Limits::default()
        };
        Self::within(limits, address, random)
    }

    fn within(limits: Limits, address: SocketAddr, random: Random) -> io::Result<(Self, CallbackPaths)> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let paths = Arc::<Paths>::default();
        let echo = CallbackPaths { random, paths: Arc::clone(&paths) };
        Ok((Self { listener: TcpListener::from_std(listener)?, limiter: ConnectionLimiter::new(limits), paths }, echo))
    }

    /// Returns the address that it listens on.
    ///
    /// # Errors
    /// The system does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stop`, or until the future is dropped. All of its tasks end with it.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, limiter, paths } = self;
        let (mut connections, patience) = (JoinSet::new(), limiter.limits.head);
        let drive = |stream, peer, permit| drive(stream, peer, permit, Arc::clone(&paths), patience);
        edge::accept(&listener, &limiter, &mut connections, drive, stop).await;
        connections.shutdown().await;
    }
}

impl CallbackPaths {
    /// Draws a path of 128 bits that nobody can guess. Requests to it are recorded from here on.
    ///
    /// # Errors
    /// The system cannot provide randomness.
    pub fn expect(&self) -> io::Result<Expected> {
        let bytes: [u8; 16] = self.random.bytes().map_err(|_| Error::other("the system has no randomness"))?;
        let (path, paths) = (format!("/{}", hex::encode(&bytes)), Arc::clone(&self.paths));
        let (sender, seen) = watch::channel(CallbackSource::Nobody);
        paths.open().insert(path.clone(), sender);
        Ok(Expected { path, paths, seen })
    }
}

impl Expected {
    /// Returns the URL of the path. `base` is the URL of the listener, such as
    /// `http://203.0.113.7:8081`.
    #[must_use]
    pub fn url(&self, base: &str) -> String {
        format!("{}{}", base.trim_end_matches('/'), self.path)
    }

    /// Returns the path, with its slash.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the address of the requests so far. Waits up to `patience` for the first one.
    pub async fn observe(&self, patience: Duration) -> CallbackSource {
        let mut seen = self.seen.clone();
        let _ = timeout(patience, seen.wait_for(|seen| *seen != CallbackSource::Nobody)).await;
        *seen.borrow()
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.paths.open().remove(&self.path);
    }
}

impl Paths {
    fn note(&self, path: &str, address: IpAddr) -> Option<()> {
        let asked = CallbackSource::One(address.to_canonical());
        self.open().get(path)?.send_modify(|seen| {
            *seen = if [CallbackSource::Nobody, asked].contains(seen) { asked } else { CallbackSource::Several };
        });
        Some(())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<CallbackSource>>> {
        ignore_poison(self.0.lock())
    }
}

async fn drive(mut stream: TcpStream, from: IpAddr, permit: ConnectionPermit, paths: Arc<Paths>, patience: Duration) {
    let answered = timeout(patience, async {
        let mut buffer = [0; HEAD_BYTES];
        let head = read_head(&mut stream, &mut buffer).await?;
        paths.note(path_of(head)?, from)?;
        permit.connection.mark_received().ok()?;
        stream.write_all(ANSWER).await.ok()?;
        stream.shutdown().await.ok()
    });
    tokio::select! {
        _ = answered => {}
        () = permit.connection.wait_until_closed() => {}
    }
}

async fn read_head<'a>(stream: &mut TcpStream, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut length = 0;
    loop {
        match stream.read(buffer.get_mut(length..)?).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => length += read,
        }
        if let Some(end) = buffer[..length].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            return Some(&buffer[..end]);
        }
    }
}

fn path_of(head: &[u8]) -> Option<&str> {
    let line = head.split(|byte| *byte == b'\r').next().and_then(|line| str::from_utf8(line).ok())?;
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["GET" | "HEAD", target, "HTTP/1.0" | "HTTP/1.1"] => Some(target),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
