//! The policy for monitoring: whether the program lives, whether it serves, and what it counts.
//!
//! It asks for no key and shows numbers only, so it listens where the operator says, and nowhere otherwise. It opens before
//! anything else and closes last, so that a start and a stop can be watched. Start at [`Monitor::listen`].

use crate::edge::{self, ConnectionLimiter, HostOriginPolicy, Limits, Refused};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, Response, StatusCode};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolwarrant_core::BoxFuture;

/// Connections at a time. Few programs watch; whoever takes all that one address may have locks out nobody elsewhere.
const CONNECTIONS: usize = 1_024;
const CONNECTIONS_PER_ADDRESS: usize = 32;

/// For the head of a request. Whoever watches asks every few seconds at most, and needs no connection in between.
const HEAD: Duration = Duration::from_secs(1);

/// The media type of metrics.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a program tells those who watch it.
pub trait Watched: Send + Sync + 'static {
    /// Why requests are better sent elsewhere at present; `None` if they are not.
    fn unready(&self) -> BoxFuture<'_, Option<String>>;

    /// All that is counted, as Prometheus reads it: text format 0.0.4.
    fn metrics(&self) -> BoxFuture<'_, String>;
}

/// A policy that is open. Dropped, it is closed at once.
pub struct Monitor {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// What each request is answered from.
struct Watch {
    policy: HostOriginPolicy,
    watched: Arc<dyn Watched>,
}

impl Monitor {
    /// Opens the policy to whom `policy` lets in.
    ///
    /// # Errors
    /// There is nothing to listen on.
    pub async fn listen(address: SocketAddr, policy: HostOriginPolicy, watched: Arc<dyn Watched>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(answer).with_state(Arc::new(Watch { policy, watched }));
        let limiter = ConnectionLimiter::new(Limits {
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            head: HEAD,
            grace: Duration::from_secs(1),
            ..Limits::default()
        });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(edge::serve(listener, router, limiter, async { drop(stopped.await) }));
        Ok(Self { address, stop: Some(stop), task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the policy, and answers nobody any more.
    pub async fn close(mut self) {
        drop(self.stop.take());
        let _ = (&mut self.task).await;
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(watch): State<Arc<Watch>>, request: Request) -> Response<Body> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    // A page in the operator's browser must not read this under a name of its own.
    match watch.policy.check(request.headers(), authority) {
        Ok(_) => {}
        Err(host @ Refused::Host(_)) => return respond(StatusCode::FORBIDDEN, format!("{host}\n")),
        Err(Refused::Origin(_)) => {
            return respond(StatusCode::FORBIDDEN, "no web page is answered here\n".to_owned());
        }
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return respond(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => respond(StatusCode::OK, "the program lives\n".to_owned()),
        "/readyz" => match watch.watched.unready().await {
            None => respond(StatusCode::OK, "the program serves\n".to_owned()),
            Some(why) => respond(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/metrics" => {
            let mut response = respond(StatusCode::OK, watch.watched.metrics().await);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
            response
        }
        _ => respond(StatusCode::NOT_FOUND, "here are /healthz, /readyz and /metrics\n".to_owned()),
    }
}

fn respond(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
