//! Ids of requests: a client and an operator use them to refer to the same request.

use crate::head::RequestHead;
use axum::http::header::{HeaderName, HeaderValue};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An id is the one that the client sent, if it is harmless, or one of this process.
#[derive(Debug)]
pub(crate) struct RequestIds {
    process: String,
    last: AtomicU64,
}

impl RequestIds {
    pub(crate) fn of_process(process: u32) -> Self {
        Self { process: format!("{process:08x}-"), last: AtomicU64::default() }
    }

    pub(crate) fn of<'a>(&self, head: impl Into<RequestHead<'a>>) -> HeaderValue {
        let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        match head.into().request_id.first() {
            Some(given) if (1..=64).contains(&given.len()) && given.as_bytes().iter().all(harmless) => given.clone(),
            _ => self.own(),
        }
    }

    fn own(&self) -> HeaderValue {
        // The largest number has twenty digits.
        let (mut digits, mut unused, mut rest) = ([0; 20], 20, self.next());
        while rest > 0 {
            unused -= 1;
            digits[unused] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let id = [self.process.as_bytes(), &digits[unused..]].concat();
        HeaderValue::from_maybe_shared(Bytes::from(id)).unwrap_or(HeaderValue::from_static("unknown"))
    }

    fn next(&self) -> u64 {
        self.last.fetch_add(1, Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread;

    #[test]
    fn request_ids_are_unique_across_threads() {
        let ids = RequestIds::of_process(7);
        let some = || (0..3_000).map(|_| ids.next()).collect::<Vec<_>>();
        let all = thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(some));
            threads.map(|thread| thread.join().expect("no panic")).concat()
        });
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(ids.own().to_str().expect("text").starts_with("00000007-"));
    }

    #[test]
    fn ids_count_from_one() {
        let ids = RequestIds::of_process(0xab);
        let first = [(); 3].map(|()| ids.own());
        assert_eq!(first.each_ref().map(HeaderValue::as_bytes), [b"000000ab-1", b"000000ab-2", b"000000ab-3"]);
    }
}
