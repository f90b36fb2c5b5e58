//! HTTP over TCP, TLS and a proxy's tunnel: one request, one answer of bounded size, within a
//! deadline. Start at [`HttpClient`].
//!
//! TLS is rustls with ring, which needs only a C compiler to build. The system's certificate store
//! decides whom to trust: a company adds its own authority there. Redirects are returned like any
//! answer and are never followed. Headers and bodies are not logged, and failures do not quote
//! them.
//!
//! If a kept connection ends before any byte of a request was written to it, and only then, hyper
//! sends the request on another one. After any other failure the caller cannot know how far the
//! request got. [`HttpClient::exchange_once`] is for requests that must not be repeated: its own
//! connection has a [gate](mod@gate), which knows if a first byte has left. This crate itself never
//! sends a request twice.

mod failure;
mod gate;
#[cfg(unix)]
mod socket;
#[cfg(test)]
mod tests;

pub use failure::HttpFailure;

use bytes::Bytes;
use failure::{CONNECT, innermost};
use gate::{Gate, Gated, Verdict};
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
#[cfg(unix)]
use socket::SocketConnector;
use std::fmt;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// A client of one server.
pub struct HttpClient {
    way: Way,
}

/// The limits of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Time for the whole exchange: the connection, the request, and the last byte of the answer.
    pub deadline: Duration,
    /// Largest body of an answer, in bytes.
    pub largest_answer: usize,
}

/// A fault of the URL, of the proxy that the environment names, or of TLS.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HttpSetupError(String);

enum Way {
    Direct(Road<HttpsConnector<HttpConnector>>),
    ByProxy(Box<Road<HttpsConnector<Tunnel<HttpConnector>>>>),
    #[cfg(unix)]
    BySocket(Road<SocketConnector>),
}

struct Road<C> {
    kept: Client<C, Full<Bytes>>,
    connector: C,
}

/// Servers close idle connections after 5 seconds or more; a shorter time avoids the race.
const IDLE: Duration = Duration::from_secs(4);

const PIECES: usize = 1_024;
const PIECE_MIN: usize = 64;

const NAME: HeaderValue = HeaderValue::from_static(concat!("toolwarrant-client/", env!("CARGO_PKG_VERSION")));

impl HttpClient {
    /// Sets up a client of the server that `url` names; path and query do not matter. Sends
    /// nothing.
    ///
    /// The client reaches an https server through the proxy of `HTTPS_PROXY` or `ALL_PROXY`, unless
    /// `NO_PROXY` exempts the host. Such a proxy sees the name of the server and no content. Plain
    /// http never goes through a proxy.
    ///
    /// # Errors
    /// The URL is neither https nor http to this machine, the system has no certificate
    /// authorities, or the proxy's URL is wrong.
    pub fn to(url: &Url) -> Result<Self, HttpSetupError> {
        if url.scheme() == "http" && !is_loopback(url) {
            return Err(HttpSetupError("`http://` is not supported for other machines; expected https".to_owned()));
        }
        Self::to_configured(url)
    }

    /// Sets up a client as [`Self::to`] does, and of plain http to another machine as well. Use it
    /// only for an address that the operator configured: everyone on the way can read and change
    /// what is sent and answered, keys included.
    ///
    /// # Errors
    /// The URL is neither https nor http, the system has no certificate authorities, or the proxy's
    /// URL is wrong.
    pub fn to_configured(url: &Url) -> Result<Self, HttpSetupError> {
        let encrypted = url.scheme() == "https";
        if !encrypted && url.scheme() != "http" {
            return Err(HttpSetupError(format!("`{}://` is not supported; expected https", url.scheme())));
        }
        let tls = tls(encrypted)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let uri: Uri =
            url.as_str().parse().map_err(|error: http::uri::InvalidUri| HttpSetupError(error.to_string()))?;
        // Plain http takes no proxy, whatever the environment says, so that no key reaches one.
        let Some(proxy) = Some(Matcher::from_env()).filter(|_| encrypted).and_then(|proxies| proxies.intercept(&uri))
        else {
            return Ok(Self { way: Way::Direct(Road::of(tcp, tls, encrypted)) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let expected = "expected a URL like http://proxy.example:3128";
            return Err(HttpSetupError(format!("the proxy of HTTPS_PROXY or ALL_PROXY is not supported; {expected}")));
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        let tunnel = match proxy.basic_auth() {
            Some(pass) => tunnel.with_auth(pass.clone()),
            None => tunnel,
        };
        Ok(Self { way: Way::ByProxy(Box::new(Road::of(tunnel, tls, encrypted))) })
    }

    /// Sets up a client of the server that listens on a Unix socket, whatever host the URLs of
    /// requests name. Sends nothing.
    #[cfg(unix)]
    #[must_use]
    pub fn to_socket(file: &Path) -> Self {
        Self { way: Way::BySocket(Road::over(SocketConnector(file.into()))) }
    }

    /// Returns the answer to a request, with its whole body. Uses a kept connection if there is
    /// one.
    ///
    /// # Errors
    /// There is no answer. [`HttpFailure::nothing_left`] is true if no connection could be made.
    pub async fn exchange(
        &self,
        request: Request<impl Into<Bytes>>,
        limits: HttpLimits,
    ) -> Result<Response<Bytes>, HttpFailure> {
        let request = prepare(request);
        match &self.way {
            Way::Direct(road) => exchange(&road.kept, request, limits).await,
            Way::ByProxy(road) => exchange(&road.kept, request, limits).await,
            #[cfg(unix)]
            Way::BySocket(road) => exchange(&road.kept, request, limits).await,
        }
    }

    /// Returns the answer to a request that must not be repeated, sent over its own connection. The
    /// client awaits `may_leave` once the connection is ready, and sends the first byte right after
    /// that. It sends nothing if the answer is false, or late.
    ///
    /// # Errors
    /// There is no answer. [`HttpFailure::nothing_left`] is true exactly if no byte of the request
    /// was passed to the connection, and none can be passed later.
    pub async fn exchange_once(
        &self,
        request: Request<impl Into<Bytes>>,
        limits: HttpLimits,
        may_leave: impl Future<Output = bool> + Send + 'static,
    ) -> Result<Response<Bytes>, HttpFailure> {
        let (request, gate) = (prepare(request), Arc::new(Gate::new(may_leave)));
        let done = match &self.way {
            Way::Direct(road) => exchange(&road.single(&gate), request, limits).await,
            Way::ByProxy(road) => exchange(&road.single(&gate), request, limits).await,
            #[cfg(unix)]
            Way::BySocket(road) => exchange(&road.single(&gate), request, limits).await,
        };
        done.map_err(|failure| match gate.shut() {
            Verdict::Left => failure,
            Verdict::Refused => HttpFailure::TooLate,
            Verdict::Shut => failure.while_nothing_left(),
        })
    }
}

/// A tunnel holds the proxy's password.
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
        Self::over(connector)
    }
}

impl<C: Connect + Clone> Road<C> {
    fn over(connector: C) -> Self {
        let mut builder = builder();
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        Self { kept: builder.build(connector.clone()), connector }
    }

    /// Makes a client without a pool, which does not repeat the request.
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

fn prepare(request: Request<impl Into<Bytes>>) -> Request<Full<Bytes>> {
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
        let (head, mut body) = response.map_err(|error| HttpFailure::of(&error))?.into_parts();
        // Its memory is at most twice its length while it arrives, and its length afterwards.
        let (mut read, mut pieces) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let piece = frame.map_err(|error| HttpFailure::Lost(innermost(&error)))?.into_data().unwrap_or_default();
            if pieces >= PIECES && read.len() < pieces * PIECE_MIN {
                return Err(HttpFailure::Lost("its pieces are too small".to_owned()));
            }
            pieces += 1;
            if piece.len() > largest_answer - read.len() {
                return Err(HttpFailure::TooLarge(largest_answer));
            }
            read.extend_from_slice(&piece);
        }
        read.shrink_to_fit();
        Ok(Response::from_parts(head, read.into()))
    };
    timeout(deadline, exchange).await.unwrap_or(Err(HttpFailure::Late(deadline)))
}

fn tls(encrypted: bool) -> Result<ClientConfig, HttpSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let remedy = "the system's certificate authorities are needed (package ca-certificates, or SSL_CERT_FILE)";
    let failed = |error: rustls::Error| HttpSetupError(format!("cannot set up TLS: {error}; {remedy}"));
    let config = versions.map_err(failed)?;
    // Without encryption, the system need not have any certificate authority.
    let config = if encrypted {
        config.with_platform_verifier().map_err(failed)?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}
