//! A platform on this machine that performs one given act per request.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use toolwarrant::base::ignore_poison;
use url::Url;

#[derive(Clone, Debug)]
pub(super) enum PlatformAct {
    Answer(u16, String, String),
    /// Writes this and resets the connection.
    Cut(String),
    Hold,
}

impl PlatformAct {
    pub(super) fn json(status: u16, body: Value) -> Self {
        Self::Answer(status, "Content-Type: application/json\r\n".to_owned(), body.to_string())
    }

    pub(super) fn html(status: u16) -> Self {
        Self::Answer(status, "Content-Type: text/html\r\nLocation: /else\r\n".to_owned(), "<html>".to_owned())
    }
}

/// The last act is repeated.
pub(super) struct Platform {
    pub(super) url: Url,
    pub(super) acts: Vec<PlatformAct>,
    requests: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
}

impl Platform {
    pub(super) async fn start(acts: Vec<PlatformAct>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let (seen, own) = (requests.clone(), acts.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, own.clone(), seen.clone()));
            }
        });
        Self { url, acts, requests, tasks }
    }

    pub(super) fn requests(&self) -> Vec<String> {
        ignore_poison(self.requests.lock()).clone()
    }

    pub(super) async fn close(mut self) -> Self {
        self.tasks.shutdown().await;
        self
    }
}

async fn serve(mut stream: TcpStream, acts: Vec<PlatformAct>, seen: Arc<Mutex<Vec<String>>>) {
    while let Some(request) = read(&mut stream).await {
        let act = {
            let mut seen = ignore_poison(seen.lock());
            seen.push(request);
            acts[(seen.len() - 1).min(acts.len() - 1)].clone()
        };
        match act {
            PlatformAct::Answer(status, headers, body) => {
                let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
                // The client may have gone.
                let _ = stream.write_all((head + &body).as_bytes()).await;
            }
            PlatformAct::Cut(text) => {
                stream.write_all(text.as_bytes()).await.expect("written");
                stream.set_zero_linger().expect("a socket");
                return;
            }
            PlatformAct::Hold => {}
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        if body.len() >= length.parse().expect("a length") {
            return Some(text.into_owned());
        }
    }
}
