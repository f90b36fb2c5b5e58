//! Where bytes enter: connections with their deadlines, sizes and numbers ([`serve`]), bodies ([`read_body`]), and which
//! browsers and host names are let in ([`HostOriginPolicy`]).
//!
//! What a request means is not known here.

mod body;
mod policy;
mod throttle;
mod write_timeout;

pub use body::{BodyError, read_body};
pub use policy::{Admitted, HostOriginPolicy, Refused, cors, preflight};
pub use throttle::AuthThrottle;

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

/// What a client may take: time, space and connections. `Limits::default()` is what the service runs with.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the whole head of a request, counted from the end of the one before: 10 s. So it also ends idle connections.
    pub head: Duration,
    /// Between two pieces of a body: 10 s.
    pub body_gap: Duration,
    /// For a whole body: 15 s.
    pub body: Duration,
    /// For a peer to take any of an answer: 15 s.
    pub answer: Duration,
    /// For requests in flight once the server stops: 10 s.
    pub grace: Duration,
    /// Header lines of a request: 64.
    pub headers: usize,
    /// Bytes of a head, and of what a connection buffers: 64 KiB. At least 8 KiB.
    pub head_bytes: usize,
    /// Bytes of a body: 1 MiB.
    pub body_bytes: usize,
    /// Connections in all: 10,000.
    pub connections: usize,
    /// Connections of one IPv4 address, or of one IPv6 network of 64 bits, which a single host commonly has: 256.
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

/// Who is at the other end: an extension of every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// How long accepting rests after it failed, as it does while the process has no file descriptor left.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Serves `router` on `listener` to `limiter` until `stop`. Then it accepts nothing more, lets requests in flight finish for as long as
/// the grace lasts, and drops the rest; when it returns, no task of it is left.
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
                // Beyond the caps it is closed unanswered: an answer would cost what the cap is there to save.
                if let Some(place) = limiter.enter(peer.ip()) {
                    connections.spawn(server.clone().converse(stream, peer.ip(), place));
                }
            }
            Err(error) => rest_after(&error).await,
        }
    }
    drop((running, listener));
    let drained = timeout(limiter.limits.grace, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(connections = connections.len(), "stopped with requests in flight");
    }
    connections.shutdown().await;
}

/// A connection that was given up before it was taken says nothing about the next one; anything else, such as a process
/// without a file descriptor left, would fail again at once.
async fn rest_after(error: &io::Error) {
    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept connections; trying on");
    sleep(ACCEPT_REST).await;
}

/// What each connection is given.
#[derive(Clone)]
struct Server {
    http: http1::Builder,
    router: Router,
    /// [`Limits::answer`].
    patience: Duration,
    /// Changes, by losing its sender, when the server stops.
    stopping: watch::Receiver<()>,
}

impl Server {
    fn new(router: Router, limits: Limits, stopping: watch::Receiver<()>) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            // A client may end its side after the request and still read the answer.
            .half_close(true)
            .max_headers(limits.headers)
            .max_buf_size(limits.head_bytes);
        // Gives the routes their state here, and not again in each request.
        Self { http, router: router.with_state(()), patience: limits.answer, stopping }
    }

    /// Drives one connection to its end; once the server stops, to the end of the request in flight.
    async fn converse(mut self, stream: TcpStream, peer: IpAddr, _place: ConnectionPermit) {
        // Answers are written whole, so that waiting for more gains nothing. A failure costs latency alone.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            self.router.clone().call(request)
        });
        let mut connection =
            pin!(self.http.serve_connection(TokioIo::new(WriteTimeout::new(stream, self.patience)), service));
        let ended = tokio::select! {
            // The stop first: an answer that is ready as well then says that the connection ends.
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

/// Everyone who is connected, by address, and what each may take.
pub struct ConnectionLimiter {
    limits: Limits,
    inside: Mutex<Inside>,
    /// Connections that were closed unanswered, because there were too many.
    pub refused: Count,
}

#[derive(Default)]
struct Inside {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place in the limiter, held for as long as the connection lasts, however it ends.
struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    address: IpAddr,
}

impl ConnectionLimiter {
    /// Nobody so far.
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, inside: Mutex::default(), refused: Count::default() })
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.inside().all
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let address = neighbourhood(address);
        let mut inside = self.inside();
        let Inside { all, by_address } = &mut *inside;
        let per_address = self.limits.connections_per_address;
        if *all >= self.limits.connections || by_address.get(&address).is_some_and(|count| *count >= per_address) {
            self.refused.add(1);
            return None;
        }
        *all += 1;
        *by_address.entry(address).or_default() += 1;
        Some(ConnectionPermit { limiter: Arc::clone(self), address })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a cap counts as one: an IPv4 address, or the first half of an IPv6 one. A listener for both families shows IPv4 peers
/// as IPv6 ones.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut inside = self.limiter.inside();
        inside.all -= 1;
        if let Entry::Occupied(mut count) = inside.by_address.entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
