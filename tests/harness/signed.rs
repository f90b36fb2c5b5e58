//! A client of `/v1` that writes its requests octet by octet, so that a test controls both the
//! signed and the sent request.

use crate::harness::{Key, Server};
use anyhow::Result;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_signing as signing;
use toolwarrant_testing::START;

#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) key: Key,
    pub(crate) timestamp: String,
    pub(crate) nonce: String,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    /// The path and query to sign, if they differ from the target.
    pub(crate) signed_target: Option<String>,
    pub(crate) idempotency_key: String,
    pub(crate) body: String,
    /// Replaces a generated line of the same name.
    pub(crate) headers: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) struct SignedAnswer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    answer: kit::HttpAnswer,
}

impl SignedAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.answer.header(name)
    }
}

impl Signed {
    pub(crate) fn at(now: u64, key: &Key, method: &'static str, target: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            key: key.clone(),
            timestamp: now.to_string(),
            nonce: format!("nonce-{:012}", NEXT.fetch_add(1, Relaxed)),
            method,
            target: target.to_owned(),
            signed_target: None,
            idempotency_key: String::new(),
            body: String::new(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn body(self, body: Value) -> Self {
        Self { body: body.to_string(), ..self }
    }

    pub(crate) fn with_key(self, key: &str) -> Self {
        Self { idempotency_key: key.to_owned(), ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn octets(&self) -> Vec<u8> {
        let Self { key, timestamp, nonce, method, target, signed_target, idempotency_key, body, headers } = self;
        let signed = signed_target.as_ref().unwrap_or(target);
        let signed = match signed.strip_prefix("http://") {
            Some(rest) => &rest[rest.find('/').unwrap_or(rest.len())..],
            None => signed,
        };
        let (path, query) = signed.split_once('?').unwrap_or((signed, ""));
        let request = signing::Request {
            key_id: &key.id,
            timestamp,
            nonce,
            method,
            path,
            query,
            idempotency_key,
            body: body.as_bytes(),
        };
        let signature = signing::header(&signing::sign(&key.secret, &request.canonical()));
        let mut lines = vec![
            ("host", "127.0.0.1".to_owned()),
            ("connection", "close".to_owned()),
            ("x-api-key", key.id.clone()),
            ("x-timestamp", timestamp.clone()),
            ("x-nonce", nonce.clone()),
            ("x-signature", signature),
        ];
        if !idempotency_key.is_empty() {
            lines.push(("idempotency-key", idempotency_key.clone()));
        }
        if !body.is_empty() {
            lines.extend([("content-type", "application/json".to_owned()), ("content-length", body.len().to_string())]);
        }
        lines.retain(|(name, _)| headers.iter().all(|(other, _)| other != name));
        // A header with the value `-` is removed.
        lines.extend(headers.iter().filter(|(_, value)| value != "-").cloned());
        let lines: String = lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} {target} HTTP/1.1\r\n{lines}\r\n{body}").into_bytes()
    }

    pub(crate) async fn send(&self, address: SocketAddr) -> SignedAnswer {
        self.try_send(address).await.expect("an answer")
    }

    /// Fails if the connection ends before the answer is complete.
    pub(crate) async fn try_send(&self, address: SocketAddr) -> Result<SignedAnswer> {
        exchange(address, &self.octets()).await
    }
}

impl Server {
    /// Signs at least one second after the start.
    pub(crate) fn sign(&self, key: &Key, method: &'static str, target: &str) -> Signed {
        if self.clock.wall() == START {
            self.clock.advance(Duration::from_secs(1));
        }
        Signed::at(self.clock.wall().0 / 1000, key, method, target)
    }

    pub(crate) async fn v1(&self, request: &Signed) -> SignedAnswer {
        request.send(self.address).await
    }
}

pub(crate) async fn exchange(address: SocketAddr, octets: &[u8]) -> Result<SignedAnswer> {
    let answer = kit::exchange(address, octets).await?;
    let body = if answer.body.is_empty() { Value::Null } else { serde_json::from_str(&answer.body).expect("JSON") };
    Ok(SignedAnswer { status: answer.status, body, answer })
}
