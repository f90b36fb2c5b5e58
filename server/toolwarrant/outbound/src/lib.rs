//! HTTP over TCP, TLS and a proxy's tunnel: one request, one answer of bounded size, within a deadline.
//!
//! TLS is rustls with ring, which builds with a C compiler alone. Whom to trust, the system says: a company adds its own authority there, and
//! a desktop keeps its list up to date. Redirects are answers like others and never followed. No header and no body is logged, and no
//! failure quotes one.
//!
//! Two ways lead to a server. [`HttpClient::exchange`] keeps connections. Where a kept one ends before any byte of a request was written to
//! it, and only there, hyper takes the request back and it goes out on another one; a failure otherwise does not say how far it got.
//! [`HttpClient::exchange_once`] is for what must not be repeated: it makes a connection of its own with a [gate](gate) in it, and the gate
//! knows whether a first byte has left. Nothing here is sent a second time.

mod failure;
mod gate;
#[cfg(test)]
mod tests;

pub use failure::HttpFailure;

use bytes::Bytes;
use failure::{CONNECT, innermost};
use gate::{Gate, Gated, Verdict};
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// A client of one server.
pub struct HttpClient {
    way: Way,
}

/// What one exchange may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Time for all of it: the connection, the request, and the last byte of the answer.
    pub deadline: Duration,
    /// Largest body of an answer, in bytes.
    pub largest_answer: usize,
}

/// Why a client cannot be set up: what is wrong with the URL, with the proxy that the environment names, or with TLS.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HttpSetupError(String);

/// How the server is reached.
enum Way {
    Direct(Road<HttpsConnector<HttpConnector>>),
    ByProxy(Box<Road<HttpsConnector<Tunnel<HttpConnector>>>>),
}

/// Connections that are kept, and what makes them.
struct Road<C> {
    kept: Client<C, Full<Bytes>>,
    connector: C,
}

/// Time for which an idle connection is kept. Servers close theirs after 5 seconds and more; a shorter time avoids the race.
const IDLE: Duration = Duration::from_secs(4);

const NAME: HeaderValue = HeaderValue::from_static(concat!("toolwarrant-client/", env!("CARGO_PKG_VERSION")));

impl HttpClient {
    /// Sets up a client of the server that `url` names; path and query do not matter. Nothing is sent.
    ///
    /// An https server is reached through the proxy of `HTTPS_PROXY` or `ALL_PROXY`, if one is set and `NO_PROXY` does not exempt the host:
    /// such a proxy sees the name of the server and no content. Plain http goes to this machine alone, and past any proxy.
    ///
    /// # Errors
    /// The URL is neither https nor http to this machine, the system has no certificate authorities, or the proxy's URL is wrong.
    pub fn to(url: &Url) -> Result<Self, HttpSetupError> {
        let encrypted = url.scheme() == "https";
        let is_near = url.scheme() == "http" && is_loopback(url);
        if !encrypted && !is_near {
            let message = format!("`{}://` is not spoken to other machines; expected https", url.scheme());
            return Err(HttpSetupError(message));
        }
        let tls = tls(encrypted)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let uri: Uri =
            url.as_str().parse().map_err(|error: http::uri::InvalidUri| HttpSetupError(error.to_string()))?;
        // Plain http goes to this machine, whatever the environment says, so that no key reaches a proxy.
        let Some(proxy) = Some(Matcher::from_env()).filter(|_| encrypted).and_then(|proxies| proxies.intercept(&uri))
        else {
            return Ok(Self { way: Way::Direct(Road::of(tcp, tls, encrypted)) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let expected = "expected a URL like http://proxy.example:3128";
            return Err(HttpSetupError(format!(
                "HTTPS_PROXY or ALL_PROXY names no proxy that is used here; {expected}"
            )));
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        let tunnel = match proxy.basic_auth() {
            Some(pass) => tunnel.with_auth(pass.clone()),
            None => tunnel,
        };
        Ok(Self { way: Way::ByProxy(Box::new(Road::of(tunnel, tls, encrypted))) })
    }

    /// Returns the answer to a request, with its whole body. Uses a connection that was kept, where there is one.
    ///
    /// # Errors
    /// There is no answer. [`HttpFailure::nothing_left`] is true where no connection could be made.
    pub async fn exchange(
        &self,
        request: Request<impl Into<Bytes>>,
        limits: HttpLimits,
    ) -> Result<Response<Bytes>, HttpFailure> {
        let request = prepared(request);
        match &self.way {
            Way::Direct(road) => exchange(&road.kept, request, limits).await,
            Way::ByProxy(road) => exchange(&road.kept, request, limits).await,
        }
    }

    /// Returns the answer to a request that must not be repeated, sent over a connection of its own. `may_leave` is asked once the
    /// connection stands, right before the first byte goes out; nothing leaves if it says no.
    ///
    /// # Errors
    /// There is no answer. [`HttpFailure::nothing_left`] is true exactly if no byte of the request was handed to the connection, and none
    /// can be any more.
    pub async fn exchange_once(
        &self,
        request: Request<impl Into<Bytes>>,
        limits: HttpLimits,
        may_leave: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Response<Bytes>, HttpFailure> {
        let (request, gate) = (prepared(request), Arc::new(Gate::new(may_leave)));
        let done = match &self.way {
            Way::Direct(road) => exchange(&road.single(&gate), request, limits).await,
            Way::ByProxy(road) => exchange(&road.single(&gate), request, limits).await,
        };
        done.map_err(|failure| match gate.shut() {
            Verdict::Left => failure,
            Verdict::Refused => HttpFailure::TooLate,
            Verdict::Shut => failure.while_nothing_left(),
        })
    }
}

/// Shows nothing of the way: a tunnel holds the proxy's password.
impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl<T> Road<HttpsConnector<T>>
where
    T: Clone,
    HttpsConnector<T>: Connect + Clone,
{
    fn of(transport: T, tls: ClientConfig, encrypted: bool) -> Self {
        let mut connector = HttpsConnector::from((transport, tls));
        if encrypted {
            connector.enforce_https();
        }
        let mut builder = builder();
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        Self { kept: builder.build(connector.clone()), connector }
    }
}

impl<C: Clone> Road<C> {
    /// A client for one request: a client without a pool makes a connection for each, and then repeats nothing.
    fn single(&self, gate: &Arc<Gate>) -> Client<Gated<C>, Full<Bytes>>
    where
        Gated<C>: Connect + Clone,
    {
        let mut builder = builder();
        builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
        builder.build(Gated { connector: self.connector.clone(), gate: gate.clone() })
    }
}

fn builder() -> Builder {
    Client::builder(TokioExecutor::new())
}

fn prepared(request: Request<impl Into<Bytes>>) -> Request<Full<Bytes>> {
    let mut request = request.map(|body| Full::new(body.into()));
    request.headers_mut().entry(USER_AGENT).or_insert(NAME);
    request
}

async fn exchange<C>(
    client: &Client<C, Full<Bytes>>,
    request: Request<Full<Bytes>>,
    limits: HttpLimits,
) -> Result<Response<Bytes>, HttpFailure>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let HttpLimits { deadline, largest_answer } = limits;
    let exchange = async {
        let response = client.request(request).await;
        let (head, body) = response.map_err(|error| HttpFailure::of(&error))?.into_parts();
        let body = Limited::new(body, largest_answer).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                HttpFailure::TooLarge(largest_answer)
            } else {
                HttpFailure::Lost(innermost(&*error))
            }
        })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    timeout(deadline, exchange).await.unwrap_or(Err(HttpFailure::Late(deadline)))
}

fn tls(encrypted: bool) -> Result<ClientConfig, HttpSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let remedy = "the system's certificate authorities are needed (package ca-certificates, or SSL_CERT_FILE)";
    let failed = |error: rustls::Error| HttpSetupError(format!("cannot set up TLS: {error}; {remedy}"));
    let config = versions.map_err(failed)?;
    // Where nothing is encrypted, the system need not have any authority.
    let config = if encrypted {
        config.with_platform_verifier().map_err(failed)?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// Returns true if a URL names this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}
