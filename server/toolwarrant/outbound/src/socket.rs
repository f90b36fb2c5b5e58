//! Connects to a Unix socket.

use http::Uri;
use hyper_util::rt::TokioIo;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::UnixStream;
use tower_service::Service;

#[derive(Clone)]
pub(super) struct SocketConnector(pub(super) Arc<Path>);

impl Service<Uri> for SocketConnector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let file = Arc::clone(&self.0);
        Box::pin(async move { UnixStream::connect(file).await.map(TokioIo::new) })
    }
}
