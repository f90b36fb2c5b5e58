//! Answers read from an open connection.

use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// An answer then counts as missing; this is the only time limit.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

/// Returns the status 0 if the connection ends.
pub(crate) async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> (u16, Value) {
    let mut bytes = Vec::new();
    let whole = async {
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length = length.map_or(0, |length| length.parse().expect("a number"));
                if let Some(body) = body.get(..length) {
                    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
                    return (status, serde_json::from_str(body).expect("JSON"));
                }
            }
            if !stream.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
                return (0, Value::Null);
            }
        }
    };
    timeout(NEVER, whole).await.expect("an answer, or the end")
}
