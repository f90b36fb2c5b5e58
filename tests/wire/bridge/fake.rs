//! A server that gives the answers that a test chooses, one request per connection.

use axum::serve::Listener;
use serde_json::Value;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(crate) struct Fake {
    pub(crate) url: String,
    requests: mpsc::UnboundedReceiver<FakeRequest>,
    _serving: JoinSet<()>,
}

/// A drop closes the connection without an answer.
pub(crate) struct FakeRequest {
    pub(crate) head: String,
    pub(crate) octets: Vec<u8>,
    pub(super) body: Value,
    stream: Box<dyn Stream>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Fake {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        Self::over(url, listener)
    }

    /// Takes the place of a server of `stdio`.
    pub(super) fn listen_at(socket: &Path) -> Self {
        let _ = std::fs::remove_file(socket);
        Self::over(String::new(), UnixListener::bind(socket).expect("a socket"))
    }

    fn over(url: String, mut listener: impl Listener) -> Self {
        let (seen, requests) = mpsc::unbounded_channel();
        let mut serving: JoinSet<()> = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let stream = Box::new(listener.accept().await.0);
                let seen = seen.clone();
                connections.spawn(async move {
                    if let Some(request) = FakeRequest::read(stream).await {
                        let _ = seen.send(request);
                    }
                });
            }
        });
        Self { url, requests, _serving: serving }
    }

    pub(crate) async fn next(&mut self) -> FakeRequest {
        let next = tokio::time::timeout(std::time::Duration::from_secs(60), self.requests.recv());
        next.await.expect("a request").expect("it listens")
    }

    pub(super) fn waiting_count(&self) -> usize {
        self.requests.len()
    }
}

impl FakeRequest {
    async fn read(mut stream: Box<dyn Stream>) -> Option<Self> {
        let mut bytes = Vec::new();
        loop {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let (head, octets) = (String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[end + 4..]);
            let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if octets.len() >= length {
                let body = serde_json::from_slice(octets).unwrap_or_default();
                return Some(Self { head, octets: octets.to_vec(), body, stream });
            }
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(super) async fn answer_raw(mut self, bytes: &[u8]) {
        // The client may have closed the connection.
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.shutdown().await;
    }

    pub(crate) async fn answer(self, status: u16, body: Value) {
        self.answer_raw(http(status, body).as_bytes()).await;
    }

    pub(super) async fn wait_for_close(mut self) {
        let mut rest = [0; 16];
        let read = tokio::time::timeout(std::time::Duration::from_secs(60), self.stream.read(&mut rest));
        assert!(matches!(read.await.expect("an end"), Ok(0) | Err(_)), "it went on sending");
    }
}

pub(super) fn http(status: u16, body: Value) -> String {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    format!("{head}\r\nconnection: close\r\n\r\n{body}")
}

pub(super) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
