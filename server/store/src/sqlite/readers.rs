//! The threads that read, each with a connection of its own, while the writer writes.

use super::Fault;
use super::queue::Queue;
use rusqlite::Connection;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use toolwarrant_core::store::Stored;

/// Reads what has been committed.
pub(super) struct Readers(Queue<Job>);

type Job = Box<dyn FnOnce(&Connection) + Send>;

impl Readers {
    /// Starts a thread for each of the connections.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(connections: Vec<Connection>) -> io::Result<Self> {
        let (mut queue, jobs) = Queue::<Job>::new();
        let jobs = Arc::new(Mutex::new(jobs));
        for connection in connections {
            let jobs = Arc::clone(&jobs);
            // The lock is held while one waits for a job, not while it is done.
            let next = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            queue.spawn("store-reader", move || {
                while let Some(job) = next() {
                    job(&connection);
                }
            })?;
        }
        Ok(Self(queue))
    }

    /// What `work` reads. Several statements see the same state only inside a transaction.
    pub(super) fn read<'a, T, F>(&'a self, work: F) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        Box::pin(self.0.ask(move |reply| {
            Box::new(move |connection| {
                if !reply.is_closed() {
                    let _ = reply.send(work(connection));
                }
            })
        }))
    }
}
