//! HTTP over TCP, TLS, and a proxy's tunnel: one request, one answer of bounded size, within a deadline.
//!
//! TLS is rustls with ring, which builds with a C compiler alone. Whom to trust, the system says: a company adds its own authority there, and
//! a desktop keeps its list up to date.

use super::failed::{Failed, innermost};
use super::{CONNECT, EXCHANGE, LARGEST_ANSWER, SetupError};
use crate::server_url::ServerUrl;
use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A client of one server.
#[derive(Debug)]
pub(super) enum HttpClient {
    Direct(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
    ByProxy(Client<HttpsConnector<Tunnel<HttpConnector>>, Full<Bytes>>),
}

/// Time for which an idle connection is kept. Servers close theirs after 5 seconds and more; a shorter time avoids the race.
const IDLE: Duration = Duration::from_secs(4);

const NAME: HeaderValue = HeaderValue::from_static(concat!("toolwarrant-client/", env!("CARGO_PKG_VERSION")));

impl HttpClient {
    pub(super) fn to(url: &ServerUrl) -> Result<Self, SetupError> {
        let tls = tls(url)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        // Plain http goes to this machine, whatever the environment says, so that no key reaches a proxy.
        let uri: Uri =
            url.as_url().as_str().parse().map_err(|error: http::uri::InvalidUri| SetupError::Url(error.to_string()))?;
        let Some(proxy) =
            Some(Matcher::from_env()).filter(|_| url.is_encrypted()).and_then(|proxies| proxies.intercept(&uri))
        else {
            return Ok(Self::Direct(builder.build(HttpsConnector::from((tcp, tls)))));
        };
        if proxy.uri().scheme_str() != Some("http") {
            return Err(SetupError::Proxy);
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        let tunnel = match proxy.basic_auth() {
            Some(pass) => tunnel.with_auth(pass.clone()),
            None => tunnel,
        };
        Ok(Self::ByProxy(builder.build(HttpsConnector::from((tunnel, tls)))))
    }

    /// The answer to a request, with its whole body.
    pub(super) async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, Failed> {
        request.headers_mut().insert(USER_AGENT, NAME);
        let request = request.map(Full::new);
        let exchange = async {
            let response = match self {
                Self::Direct(client) => client.request(request).await,
                Self::ByProxy(client) => client.request(request).await,
            };
            let (head, body) = response.map_err(|error| Failed::of(&error))?.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() { Failed::TooLarge } else { Failed::Lost(innermost(&*error)) }
            })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        timeout(EXCHANGE, exchange).await.unwrap_or(Err(Failed::Late))
    }
}

fn tls(url: &ServerUrl) -> Result<ClientConfig, SetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let failed = |error: rustls::Error| SetupError::Tls(error.to_string());
    let config = versions.map_err(failed)?;
    // Where nothing is encrypted, the system need not have any authority.
    let config = if url.is_encrypted() {
        config.with_platform_verifier().map_err(failed)?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}
