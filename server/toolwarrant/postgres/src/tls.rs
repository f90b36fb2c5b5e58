//! Encryption of connections over a network. The certificate of the server is always verified, by
//! the authorities that the system trusts.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;
use toolwarrant_base::BoxFuture;

/// Makes encrypted connections.
#[derive(Clone)]
pub(crate) struct Encryption(TlsConnector);

impl Encryption {
    /// Sets encryption up.
    ///
    /// # Errors
    /// The system has no certificate authorities.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_platform_verifier()?.with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Arc::new(config).into()))
    }
}

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = EncryptedStream;
    type TlsConnect = ToServer;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToServer, Self::Error> {
        Ok(ToServer(self.0.clone(), ServerName::try_from(host)?.to_owned()))
    }
}

/// An encrypted connection to be made to a server of this name.
pub(crate) struct ToServer(TlsConnector, ServerName<'static>);

impl TlsConnect<Socket> for ToServer {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<EncryptedStream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move { self.0.connect(self.1, stream).await.map(EncryptedStream) })
    }
}

/// An encrypted connection.
pub(crate) struct EncryptedStream(Encrypted<Socket>);

impl TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
