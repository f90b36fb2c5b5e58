//! A bounded queue of jobs, and the threads that run them. It connects async callers with SQLite,
//! which blocks.

use super::fault::Fault;
use std::io;
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};
use toolwarrant_core::store::StoreError;

/// Further callers wait for a place.
const PLACES: usize = 1024;

/// Dropping it finishes the waiting jobs and ends the threads.
pub(super) struct Queue<J> {
    jobs: Option<mpsc::Sender<J>>,
    threads: Vec<JoinHandle<()>>,
}

/// The caller may have gone.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Fault>>;

impl<J: Send + 'static> Queue<J> {
    pub(super) fn new() -> (Self, mpsc::Receiver<J>) {
        let (sender, receiver) = mpsc::channel(PLACES);
        (Self { jobs: Some(sender), threads: Vec::new() }, receiver)
    }

    /// Adds a thread, which must end when the queue is closed.
    pub(super) fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name.to_owned()).spawn(body)?);
        Ok(())
    }

    pub(super) fn queue_length(&self) -> usize {
        self.jobs.as_ref().map_or(0, |jobs| jobs.max_capacity() - jobs.capacity())
    }

    /// Queues nothing if the future is dropped before there is a place. Afterwards, only the answer
    /// is lost.
    pub(super) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> J) -> Result<T, StoreError> {
        let gone = || Fault::unavailable("a thread of the store has ended; the log says why".to_owned());
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        let place = jobs.reserve().await.map_err(|_| gone())?;
        let (reply, mut answer) = oneshot::channel();
        place.send(job(reply));
        tokio::select! {
            biased;
            answer = &mut answer => Ok(answer.map_err(|_| gone())??),
            // A job that is sent while the last thread ends is neither run nor dropped.
            () = jobs.closed() => Ok(answer.try_recv().map_err(|_| gone())??),
        }
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
