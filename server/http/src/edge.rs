//! The edge of the server: connections and their limits ([`serve`]), request bodies ([`read_body`]), and the policy for host
//! names and browser origins ([`HostOriginPolicy`]).
//!
//! The edge bounds what a client can take. It does not know what a request means.

mod body;
mod policy;
mod throttle;
mod write_timeout;

pub use body::{BodyError, read_body};
pub use policy::{
    ALLOW_HOST, ALLOW_ORIGIN, AllowedOrigin, HostOriginError, HostOriginPolicy, PUBLIC_URL, PolicyConfigError,
};
pub(crate) use policy::{allow_origin, answer_preflight};
pub(crate) use throttle::AuthThrottle;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarrant_core::counts::Count;
use tower_service::Service;
use write_timeout::WriteTimeout;

/// Limits on the time, memory and connections that clients can take. A service runs with `Limits::default()`.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for the whole head of a request, counted from the end of the previous request, so that it also closes idle
    /// connections: 10 s.
    pub head: Duration,
    /// Time between two pieces of a body: 10 s.
    pub body_gap: Duration,
    /// Time for a whole body: 15 s.
    pub body: Duration,
    /// Time in which a client must read some of its answer: 15 s.
    pub answer: Duration,
    /// Time for requests in flight to finish after the server is told to stop: 10 s.
    pub grace: Duration,
    /// Number of header lines in a request: 64.
    pub headers: usize,
    /// Bytes of a request head, and of a connection's buffer: 64 KiB. The minimum is 8 KiB.
    pub head_bytes: usize,
    /// Bytes of a request body: 1 MiB.
    pub body_bytes: usize,
    /// Number of open connections: 10,000.
    pub connections: usize,
    /// Number of open connections from one IPv4 address or one IPv6 network of 64 bits, which a single host commonly has: 256.
    pub connections_per_address: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body_gap: Duration::from_secs(10),
            body: Duration::from_secs(15),
            answer: Duration::from_secs(15),
            grace: Duration::from_secs(10),
            headers: 64,
            head_bytes: 64 * 1024,
            body_bytes: 1024 * 1024,
            connections: 10_000,
            connections_per_address: 256,
        }
    }
}

/// The address of the client. Every request carries it as an extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Pause after a failure to accept a connection, for example because the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `router` on `listener` until `stop`, within the limits of `limiter`.
///
/// After `stop` it accepts no connection, gives requests in flight [`Limits::grace`] to finish, and drops those that remain. It
/// returns once all of its tasks have ended.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limiter: Arc<ConnectionLimiter>,
    stop: impl Future<Output = ()>,
) {
    let (running, stopping) = watch::channel(());
    let server = Server::new(router, limiter.limits, stopping);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // A connection over the limit is closed without an answer, since an answer costs what the limit saves.
                if let Some(permit) = limiter.acquire(peer.ip()) {
                    connections.spawn(server.clone().drive(stream, peer.ip(), permit));
                }
            }
            Err(error) => pause_after(&error).await,
        }
    }
    drop((running, listener));
    let drained = timeout(limiter.limits.grace, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(connections = connections.len(), "the grace period is over; dropped requests in flight");
    }
    connections.shutdown().await;
}

/// Pauses after a failure that would repeat at once, such as a process without a free file descriptor. A connection that the
/// client gave up before it was accepted says nothing about the next one, so it causes no pause.
async fn pause_after(error: &io::Error) {
    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept a connection; trying again");
    sleep(ACCEPT_PAUSE).await;
}

/// What every connection is served with.
#[derive(Clone)]
struct Server {
    http: http1::Builder,
    router: Router,
    /// See [`Limits::answer`].
    write_timeout: Duration,
    /// Its sender is dropped when the server stops.
    stopping: watch::Receiver<()>,
}

impl Server {
    fn new(router: Router, limits: Limits, stopping: watch::Receiver<()>) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            // A client may close its sending side after the request and still read the answer.
            .half_close(true)
            .max_headers(limits.headers)
            .max_buf_size(limits.head_bytes);
        // Setting the state here saves each request from doing it.
        Self { http, router: router.with_state(()), write_timeout: limits.answer, stopping }
    }

    /// Drives one connection until it ends or, once the server stops, until its request in flight is answered.
    async fn drive(mut self, stream: TcpStream, peer: IpAddr, _permit: ConnectionPermit) {
        // Answers are written whole, so delaying small writes gains nothing. A failure only costs latency.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            self.router.clone().call(request)
        });
        let stream = TokioIo::new(WriteTimeout::new(stream, self.write_timeout));
        let mut connection = pin!(self.http.serve_connection(stream, service));
        let ended = tokio::select! {
            // The stop comes first, so that an answer that is ready at the same moment says `connection: close`.
            biased;
            _ = self.stopping.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            ended = &mut connection => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Caps the number of open connections, in all and by address.
pub struct ConnectionLimiter {
    limits: Limits,
    open: Mutex<OpenConnections>,
    /// Connections that were closed without an answer because a limit was reached.
    pub refused: Count,
}

#[derive(Default)]
struct OpenConnections {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The right to one open connection. Dropping it returns the right to the limiter.
struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    address: IpAddr,
}

impl ConnectionLimiter {
    /// A limiter without connections.
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default(), refused: Count::default() })
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.open().total
    }

    /// A permit for one connection from `address`, or `None` if a limit is reached.
    fn acquire(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let address = network_of(address);
        let mut open = self.open();
        let OpenConnections { total, by_address } = &mut *open;
        let per_address = self.limits.connections_per_address;
        if *total >= self.limits.connections || by_address.get(&address).is_some_and(|count| *count >= per_address) {
            self.refused.add(1);
            return None;
        }
        *total += 1;
        *by_address.entry(address).or_default() += 1;
        Some(ConnectionPermit { limiter: Arc::clone(self), address })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network that a limit counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address. An IPv4 address that
/// a dual-stack listener shows as an IPv6 address counts as IPv4.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.open();
        open.total -= 1;
        if let Entry::Occupied(mut count) = open.by_address.entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
