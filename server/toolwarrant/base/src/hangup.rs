//! The end of a client's side of its connection, told to whoever holds an answer back.
//!
//! A client that has closed its sending side may still read, or may be gone: the two look the same. Either is served best by an answer
//! at once. Knows no connection: a transport says what it sees, and looks only while somebody waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use tokio::sync::Notify;

/// Whether a client has closed its side of a connection.
#[derive(Debug, Default)]
pub struct Hangup {
    happened: AtomicBool,
    /// Number of those who wait for it.
    waiting: AtomicUsize,
    notify: Notify,
}

impl Hangup {
    /// Waits until the client closes its side.
    pub async fn wait(&self) {
        let _waiting = Waiting::new(&self.waiting);
        let told = self.notify.notified();
        if !self.happened.load(SeqCst) {
            told.await;
        }
    }

    /// Whether somebody waits, so that the transport has to look.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(SeqCst) > 0 && !self.happened.load(SeqCst)
    }

    /// Says that the client has closed its side.
    pub fn set(&self) {
        self.happened.store(true, SeqCst);
        self.notify.notify_waiters();
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
