//! Threads that take jobs from one bounded queue: what connects callers, who must not block, with SQLite, which does.

use super::Fault;
use std::io;
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};
use toolwarrant_core::store::StoreError;

/// Jobs that may wait; a caller beyond them waits for a place.
const PLACES: usize = 1024;

/// A queue with the threads that empty it. When it is dropped, what is waiting is done, and the threads end.
pub(super) struct Queue<J> {
    jobs: Option<mpsc::Sender<J>>,
    threads: Vec<JoinHandle<()>>,
}

/// Takes the answer of a job. Whoever asked may have gone; that is no matter.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Fault>>;

impl<J: Send + 'static> Queue<J> {
    /// A queue without threads, and the end from which they take.
    pub(super) fn new() -> (Self, mpsc::Receiver<J>) {
        let (sender, receiver) = mpsc::channel(PLACES);
        (Self { jobs: Some(sender), threads: Vec::new() }, receiver)
    }

    /// Adds a thread. It must end when it can take no more.
    pub(super) fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name.to_owned()).spawn(body)?);
        Ok(())
    }

    /// How many jobs wait.
    pub(super) fn waiting(&self) -> usize {
        self.jobs.as_ref().map_or(0, |jobs| jobs.max_capacity() - jobs.capacity())
    }

    /// Puts the job that `job` makes into the queue, and waits for its answer. Dropped before there was a place, nothing is
    /// done; dropped later, only the answer is lost.
    pub(super) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> J) -> Result<T, StoreError> {
        let gone = || Fault::unavailable("a thread of the store has ended; the log says why".to_owned());
        let place = self.jobs.as_ref().ok_or_else(gone)?.reserve().await.map_err(|_| gone())?;
        let (reply, answer) = oneshot::channel();
        place.send(job(reply));
        Ok(answer.await.map_err(|_| gone())??)
    }
}

impl<J> Drop for Queue<J> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                tracing::error!(name, "a thread of the store has panicked");
            }
        }
    }
}
