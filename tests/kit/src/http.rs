//! HTTP/1.1 with one connection per request, as far as tests and measurements need it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};

#[derive(Clone, Debug)]
pub struct HttpAnswer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl HttpAnswer {
    /// Expects `name` in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("status {}, no JSON: {}", self.status, self.body))
    }
}

/// Expects a request that asks the server to close the connection.
pub async fn exchange(address: impl ToSocketAddrs, request: &[u8]) -> Result<HttpAnswer> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("closed without an answer")?;
    // A body can be a picture.
    let [head, body] = [&bytes[..end], &bytes[end + 4..]].map(String::from_utf8_lossy);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a status")?;
    let answer = HttpAnswer { status, head: head.into_owned(), body: body.into_owned() };
    let is_whole = answer.header("content-length").unwrap_or("0").parse() == Ok(bytes.len() - end - 4);
    ensure!(is_whole || request.starts_with(b"HEAD"), "closed within the answer");
    Ok(answer)
}

pub async fn get(url: &str) -> Result<HttpAnswer> {
    send("GET", url, "").await
}

pub async fn send(method: &str, url: &str, body: &str) -> Result<HttpAnswer> {
    let rest = url.strip_prefix("http://").with_context(|| format!("{url} is no URL of plain HTTP"))?;
    let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}");
    exchange(address, format!("{head}\r\n\r\n{body}").as_bytes()).await
}
