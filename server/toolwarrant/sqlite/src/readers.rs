//! The reading threads, each with one connection. They do not wait for the writer.

use super::fault::Fault;
use super::queue::Queue;
use rusqlite::Connection;
use std::io;
use std::sync::{Arc, Mutex};
use toolwarrant_base::ignore_poison;
use toolwarrant_core::store::Stored;

pub(super) struct Readers(Queue<Job>);

type Job = Box<dyn FnOnce(&Connection) + Send>;

impl Readers {
    pub(super) fn start(connections: Vec<Connection>) -> io::Result<Self> {
        let (mut queue, jobs) = Queue::<Job>::new();
        let jobs = Arc::new(Mutex::new(jobs));
        for connection in connections {
            let jobs = Arc::clone(&jobs);
            // The lock is held while a thread waits for a job, not while it works.
            let next = move || ignore_poison(jobs.lock()).blocking_recv();
            queue.spawn("store-reader", move || {
                while let Some(job) = next() {
                    job(&connection);
                }
            })?;
        }
        Ok(Self(queue))
    }

    /// Gives several statements the same state only inside a transaction.
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
