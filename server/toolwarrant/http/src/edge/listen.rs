//! Listeners of connections, and the key for requests over a socket that only this user can open.

use super::{Peer, Responder};
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use std::borrow::Cow;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use toolwarrant_base::BoxFuture;
use toolwarrant_core::registry::{NewKey, RegistryError};

pub trait Listen: Send {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Returns a connection, and the address of its client.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, IpAddr)>> + Send;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, IpAddr)> {
        let (stream, peer) = self.accept().await?;
        // Answers are written whole, so delaying small writes gains nothing.
        let _ = stream.set_nodelay(true);
        Ok((stream, peer.ip()))
    }
}

/// Adds the key to requests that name an application in its place.
pub struct Keyed {
    pub responder: Arc<dyn Responder>,
    pub keys: Arc<dyn ApplicationKeys>,
}

pub trait ApplicationKeys: Send + Sync + 'static {
    /// Returns `None` for an application whose keys were revoked.
    fn key<'a>(&'a self, application: &'a str) -> BoxFuture<'a, Result<Option<Arc<NewKey>>, RegistryError>>;
}

impl Responder for Keyed {
    fn respond<'a>(&'a self, mut request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let named = request.headers().get("x-api-key").and_then(|name| name.to_str().ok()).unwrap_or_default();
            match self.keys.key(named).await {
                Ok(None) => {}
                Ok(Some(key)) => {
                    let NewKey { key_id, secret, act_id: _ } = &*key;
                    for (header, text) in [("x-api-key", key_id.as_str()), ("x-api-secret", secret.expose())] {
                        if let Ok(mut value) = HeaderValue::from_str(text) {
                            value.set_sensitive(true);
                            request.headers_mut().insert(header, value);
                        }
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the key of a local application cannot be made");
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    return response;
                }
            }
            self.responder.respond(request, peer).await
        })
    }
}
