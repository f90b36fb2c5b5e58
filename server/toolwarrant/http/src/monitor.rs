//! The monitoring server: `/healthz`, `/readyz` and `/metrics`.
//!
//! It needs no key and shows only numbers, so it runs only if the operator gives it an address. It
//! starts first and stops last, so that a start and a stop can be observed. Start at
//! [`Monitor::listen`].

use crate::context::make;
use crate::edge::{self, ConnectionLimiter, HostOriginError, HostOriginPolicy, Limits};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use toolwarrant_base::BoxFuture;

/// One address cannot take all connections. They fit into the file descriptors that the edge leaves
/// free.
const CONNECTIONS: usize = 64;
const CONNECTIONS_PER_ADDRESS: usize = 32;

/// For the head of a request, and until the next one. Monitoring systems need no open connection in
/// between.
const HEAD: Duration = Duration::from_secs(1);

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub trait MonitorSource: Send + Sync + 'static {
    /// Returns the reason why the program is not ready for requests.
    fn unready(&self) -> BoxFuture<'_, Option<String>>;

    /// Returns problems that exist although the program is ready, in lines for people.
    fn remark(&self) -> Option<String>;

    /// Returns metrics in the Prometheus text format, version 0.0.4.
    fn metrics(&self) -> BoxFuture<'_, String>;
}

/// Dropping it stops the server at once.
pub struct Monitor {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

struct MonitorState {
    policy: HostOriginPolicy,
    source: Arc<dyn MonitorSource>,
}

impl Monitor {
    pub async fn listen(
        address: SocketAddr,
        policy: HostOriginPolicy,
        source: Arc<dyn MonitorSource>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(answer).with_state(Arc::new(MonitorState { policy, source }));
        let limiter = ConnectionLimiter::new(Limits {
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            head: HEAD,
            idle: HEAD,
            grace: Duration::from_secs(1),
            ..Limits::default()
        });
        let (stop, stopped) = oneshot::channel();
        let serving = edge::serve(listener, router, limiter, None, async { drop(stopped.await) });
        Ok(Self { address, stop, task: [serving].into_iter().collect() })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn close(self) {
        let Self { address: _, stop, mut task } = self;
        drop(stop);
        let _ = task.join_next().await;
    }
}

async fn answer(State(monitor): State<Arc<MonitorState>>, request: Request) -> Response<Body> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    // DNS rebinding must not let a web page in the operator's browser read the answer.
    match monitor.policy.check(request.headers(), authority) {
        Ok(_) => {}
        Err(host @ HostOriginError::Host(_)) => return respond(StatusCode::FORBIDDEN, format!("{}\n", host.words())),
        Err(HostOriginError::Origin(_)) => {
            return respond(StatusCode::FORBIDDEN, "no web page is answered here\n".to_owned());
        }
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return respond(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => respond(StatusCode::OK, "the program lives\n".to_owned()),
        "/readyz" => match monitor.source.unready().await {
            None => {
                let remark = monitor.source.remark().map(|remark| remark + "\n").unwrap_or_default();
                respond(StatusCode::OK, format!("the program serves\n{remark}"))
            }
            Some(why) => respond(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/metrics" => make(StatusCode::OK, MEDIA_TYPE, monitor.source.metrics().await),
        _ => respond(StatusCode::NOT_FOUND, "here are /healthz, /readyz and /metrics\n".to_owned()),
    }
}

fn respond(status: StatusCode, text: String) -> Response<Body> {
    make(status, "text/plain; charset=utf-8", text)
}
