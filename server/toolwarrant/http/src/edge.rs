//! The edge of the server: connections and their limits, TLS, request bodies, the address of a
//! request's client, and the policy for host names and browser origins. It limits the resources
//! that a client can take. It does not know the meaning of a request. Start at [`serve`].

mod body;
mod connection;
mod limiter;
mod limits;
mod listen;
mod policy;
mod proxies;
mod quota;
mod responder;
mod stream;
mod throttle;
mod tls;
mod turns;

pub use body::{BodyError, BodyRoom, read_body};
pub(crate) use body::{count_answer, skip_rest};
pub use connection::Peer;
pub(crate) use connection::{patience, slow_down};
pub use limiter::ConnectionLimiter;
pub(crate) use limiter::ConnectionPermit;
pub use limits::Limits;
pub use listen::{ApplicationKeys, Keyed, Listen};
pub use policy::{
    ALLOW_HOST, ALLOW_ORIGIN, AllowedOrigin, HostOriginError, HostOriginPolicy, PUBLIC_URL, PolicyConfigError,
    public_host,
};
pub(crate) use policy::{allow_origin, answer_preflight};
pub use proxies::{TRUST_PROXY, TrustedProxies};
pub use responder::Responder;
pub(crate) use throttle::AuthThrottle;
pub use tls::{TLS_CERT, TLS_KEY, Tls, TlsError};

use axum::http::Request;
use axum::http::header::{CONNECTION, HeaderValue};
use connection::GivenUp;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use quota::Share;
use std::borrow::Cow;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;
use stream::ClientStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use turns::{HeadTimer, Wakers};

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections on `listener` until `stop`. With `tls`, only TLS is accepted.
///
/// After `stop` it gives requests in flight [`Limits::grace`] to finish, and drops those that
/// remain. It returns once all of its tasks have ended.
pub async fn serve(
    listener: impl Listen,
    responder: impl Responder,
    limiter: Arc<ConnectionLimiter>,
    tls: Option<Arc<Tls>>,
    stop: impl Future<Output = ()>,
) {
    let (running, stopping) = watch::channel(());
    let server = Server::new(Arc::new(responder), Arc::clone(&limiter), stopping);
    let mut connections = JoinSet::new();
    if let Some(tls) = tls.clone() {
        let mut stopping = server.stopping.clone();
        connections.spawn(async move {
            tokio::select! {
                _ = stopping.changed() => {}
                () = tls.watch() => {}
            }
        });
    }
    let drive = |stream, peer, permit| {
        let tls = tls.as_ref().map(|tls| tls.acceptor());
        server.clone().drive(stream, tls, peer, permit)
    };
    accept(&listener, &limiter, &mut connections, drive, stop).await;
    drop((running, listener));
    let drained = timeout(limiter.limits.grace, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(connections = connections.len(), "the grace period is over; dropped requests in flight");
    }
    connections.shutdown().await;
}

/// Drives each connection that the limiter admits, until `stop`.
pub(crate) async fn accept<L: Listen, D: Future<Output = ()> + Send + 'static>(
    listener: &L,
    limiter: &Arc<ConnectionLimiter>,
    connections: &mut JoinSet<()>,
    mut drive: impl FnMut(L::Stream, IpAddr, ConnectionPermit) -> D,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => return,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // An answer would cost what the limit saves.
                if let Some(permit) = limiter.admit(peer).await {
                    connections.spawn(drive(stream, peer, permit));
                }
            }
            Err(error) => pause_after(&error).await,
        }
    }
}

/// Pauses after a failure that would repeat at once, such as a process without a free file
/// descriptor.
async fn pause_after(error: &io::Error) {
    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "cannot accept a connection; trying again");
    sleep(ACCEPT_PAUSE).await;
}

#[derive(Clone)]
struct Server {
    http: http1::Builder,
    responder: Arc<dyn Responder>,
    limiter: Arc<ConnectionLimiter>,
    /// Its sender is dropped when the server stops.
    stopping: watch::Receiver<()>,
}

impl Server {
    fn new(responder: Arc<dyn Responder>, limiter: Arc<ConnectionLimiter>, stopping: watch::Receiver<()>) -> Self {
        let limits = &limiter.limits;
        let mut http = http1::Builder::new();
        // A client may close its sending side after the request and still read the answer.
        http.half_close(true).max_headers(limits.headers).max_buf_size(limits.head_bytes);
        Self { http, responder, limiter, stopping }
    }

    /// Ends the connection after the answer to its request in flight once the server stops.
    async fn drive<S>(mut self, stream: S, tls: Option<TlsAcceptor>, peer: IpAddr, permit: ConnectionPermit)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connection = &permit.connection;
        let stream = ClientStream::new(stream, Arc::clone(connection), &self.limiter.limits);
        let own = Peer { address: peer, crowded: false, connection: Arc::clone(connection) };
        let Some(tls) = tls else { return self.serve(stream, &own, permit.by_proxy).await };
        let handshake = timeout(self.limiter.limits.handshake, tls.accept(stream));
        let accepted = tokio::select! {
            _ = self.stopping.changed() => return,
            () = connection.wait_until_closed() => return,
            accepted = handshake => accepted,
        };
        match accepted.map_err(io::Error::from).flatten() {
            Ok(stream) => Box::pin(self.serve(stream, &own, permit.by_proxy)).await,
            Err(error) => tracing::debug!(%error, "a handshake failed"),
        }
    }

    async fn serve<S>(&self, stream: S, own: &Peer, by_proxy: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connection = &*own.connection;
        let service = service_fn(|request: Request<Incoming>| {
            let received = connection.mark_head_received();
            let (peer, share) = if by_proxy { self.behind_proxy(own, &request) } else { (Cow::Borrowed(own), None) };
            let answering = received.map(|()| self.responder.respond(request, peer));
            async move {
                let mut response = answering?.await;
                drop(share);
                if connection.answered() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, GivenUp>(response)
            }
        });
        let mut served = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let mut stopping = self.stopping.clone();
        let mut stop = pin!(async { stopping.changed().await });
        let mut given_up = pin!(connection.wait_until_closed());
        let mut head = HeadTimer::new(&self.limiter.limits);
        let (mut wakers, mut stops) = (None::<Wakers>, false);
        poll_fn(|context| {
            let kept = wakers.take().filter(|wakers| wakers.are_of(context.waker()));
            let wakers = wakers.insert(kept.unwrap_or_else(|| Wakers::of(context.waker())));
            if let Some(mut rung) = wakers.rung() {
                // First, so that an answer that is ready at the same moment says `connection:
                // close`.
                if !stops && stop.as_mut().poll(&mut rung).is_ready() {
                    stops = true;
                    served.as_mut().graceful_shutdown();
                }
                if given_up.as_mut().poll(&mut rung).is_ready() {
                    tracing::debug!("a connection was given up to make room");
                    return Poll::Ready(());
                }
            }
            if let Poll::Ready(ended) = served.as_mut().poll(&mut wakers.quiet_context()) {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return Poll::Ready(());
            }
            ready!(head.poll(context, connection));
            tracing::debug!("a connection ended: its next request did not come in time");
            Poll::Ready(())
        })
        .await;
    }

    fn behind_proxy(&self, proxy: &Peer, request: &Request<Incoming>) -> (Cow<'static, Peer>, Option<Share>) {
        let address = self.limiter.proxies.client(proxy.address, request.headers());
        let share = proxy.connection.quotas.proxied.take(address, 1);
        (Cow::Owned(Peer { address, crowded: share.is_none(), connection: Arc::clone(&proxy.connection) }), share)
    }
}

#[cfg(test)]
mod tests;
