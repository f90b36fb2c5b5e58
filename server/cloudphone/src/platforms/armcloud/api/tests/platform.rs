//! A platform on this machine that answers each request with an act.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use toolwarrant::base::ignore_poison;
use url::Url;

#[derive(Clone, Debug)]
pub(in crate::platforms::armcloud) enum PlatformAct {
    Answer(u16, String, String),
    /// Writes this and resets the connection.
    Cut(String),
    Hold,
}

impl PlatformAct {
    pub(in crate::platforms::armcloud) fn json(status: u16, body: Value) -> Self {
        Self::Answer(status, "Content-Type: application/json\r\n".to_owned(), body.to_string())
    }

    pub(in crate::platforms::armcloud) fn html(status: u16) -> Self {
        Self::Answer(status, "Content-Type: text/html\r\nLocation: /else\r\n".to_owned(), "<html>".to_owned())
    }
}

type Respond = dyn Fn(usize, &str) -> PlatformAct + Send + Sync;

pub(in crate::platforms::armcloud) struct Platform {
    pub(in crate::platforms::armcloud) url: Url,
    requests: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
}

impl Platform {
    /// Repeats the last act.
    pub(super) async fn start(acts: Vec<PlatformAct>) -> Self {
        Self::respond(move |number, _| acts[number.min(acts.len() - 1)].clone()).await
    }

    /// Passes the number of a request, from 0, with the request.
    pub(in crate::platforms::armcloud) async fn respond(
        act: impl Fn(usize, &str) -> PlatformAct + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
        let (requests, act) = (Arc::new(Mutex::new(Vec::new())), Arc::new(act));
        let (mut tasks, seen) = (JoinSet::new(), requests.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, act.clone(), seen.clone()));
            }
        });
        Self { url, requests, tasks }
    }

    pub(in crate::platforms::armcloud) fn requests(&self) -> Vec<String> {
        ignore_poison(self.requests.lock()).clone()
    }

    pub(super) async fn close(mut self) -> Self {
        self.tasks.shutdown().await;
        self
    }
}

async fn serve(mut stream: TcpStream, act: Arc<Respond>, seen: Arc<Mutex<Vec<String>>>) {
    while let Some(request) = read(&mut stream).await {
        let act = {
            let mut seen = ignore_poison(seen.lock());
            seen.push(request.clone());
            act(seen.len() - 1, &request)
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
