//! A signal that a client has closed its side of the connection, for code that holds an answer
//! back.
//!
//! Such a client may still read, or may be gone. In both cases it is best to answer at once. The
//! transport reports what it sees, and checks only while a task waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub struct Hangup {
    happened: AtomicBool,
    waiting: AtomicUsize,
    notify: Notify,
}

impl Hangup {
    pub async fn wait(&self) {
        let _waiting = Waiting::new(&self.waiting);
        let told = self.notify.notified();
        if !self.happened.load(SeqCst) {
            told.await;
        }
    }

    /// Returns true if a task waits, so that the transport has to check.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(SeqCst) > 0 && !self.happened.load(SeqCst)
    }

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
