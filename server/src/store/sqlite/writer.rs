//! The one thread that writes. Requests that arrive while a commit is under way share the next one.
//!
//! Nobody is told before the commit has reached the disk. A request that fails is rolled back by itself; a commit that fails,
//! or a transaction that SQLite has given up, fails for all that were in it. If the thread panics, the transaction is rolled
//! back, and whoever waits or asks later is answered [`Broken`].

use super::Broken;
use super::queue::{Queue, Reply};
use crate::store::Answer;
use crate::telemetry::Written;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::io;
use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Requests that share a commit at most.
const TOGETHER: usize = 512;

/// How long a transaction takes further requests in, as long as there are any.
const WINDOW: Duration = Duration::from_millis(2);

/// Writes, one request after the other.
pub(super) struct Writer {
    queue: Queue<Box<dyn Request>>,
    pub(super) counts: Arc<Written>,
}

/// Something to be written, and who is to be told.
pub(super) trait Request: Send {
    /// Writes, as a whole or not at all. An error means that the transaction must not be committed.
    fn write(&mut self, transaction: &Transaction<'_>) -> Result<(), Broken>;

    /// Tells whoever asked, given how the commit went.
    fn answer(self: Box<Self>, committed: Result<(), Broken>);
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(mut connection: Connection) -> io::Result<Self> {
        let (mut queue, mut requests) = Queue::<Box<dyn Request>>::new();
        let counts = Arc::new(Written::default());
        let counted = Arc::clone(&counts);
        queue.spawn("store-writer", move || {
            while let Some(first) = requests.blocking_recv() {
                let start = Instant::now();
                let more = iter::from_fn(|| if start.elapsed() < WINDOW { requests.try_recv().ok() } else { None });
                commit(&mut connection, iter::once(first).chain(more).take(TOGETHER), &counted);
            }
        })?;
        Ok(Self { queue, counts })
    }

    /// How many requests wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// What `work` writes, once it is on the disk. If it answers with an error, nothing of it is.
    pub(super) fn write<'a, T, F>(&'a self, work: F) -> Answer<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Broken> + Send + 'static,
    {
        Box::pin(self.queue.ask(move |reply| -> Box<dyn Request> { Box::new(Write::new(work, reply)) }))
    }
}

/// Writes all of `requests` in one transaction, then answers them.
pub(super) fn commit(connection: &mut Connection, requests: impl Iterator<Item = Box<dyn Request>>, counts: &Written) {
    let mut taken = Vec::new();
    let committed = write(connection, requests, &mut taken);
    let requests = taken.len();
    for request in taken {
        request.answer(committed.clone());
    }
    match committed {
        Ok(()) => {
            counts.commits.add(1);
            counts.requests.add(requests as u64);
        }
        Err(why) => {
            counts.failures.add(1);
            tracing::error!(%why, requests, "the store could not write");
        }
    }
}

fn write(
    connection: &mut Connection,
    mut requests: impl Iterator<Item = Box<dyn Request>>,
    taken: &mut Vec<Box<dyn Request>>,
) -> Result<(), Broken> {
    // Before anything can fail, so that it is answered.
    taken.extend(requests.next());
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    while let Some(request) = taken.last_mut() {
        request.write(&transaction)?;
        match requests.next() {
            Some(next) => taken.push(next),
            None => break,
        }
    }
    transaction.commit().map_err(Broken::from)
}

/// The one kind of request: a function, and the place for its answer.
pub(super) struct Write<T, F> {
    work: Option<F>,
    done: Result<T, Broken>,
    reply: Reply<T>,
}

impl<T, F> Write<T, F> {
    /// Not yet written.
    pub(super) fn new(work: F, reply: Reply<T>) -> Self {
        Self { work: Some(work), done: Err(Broken("not tried".to_owned())), reply }
    }
}

impl<T, F> Request for Write<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Broken> + Send,
{
    fn write(&mut self, transaction: &Transaction<'_>) -> Result<(), Broken> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let run = |sql| -> rusqlite::Result<_> { transaction.prepare_cached(sql)?.execute([]) };
        run("SAVEPOINT request")?;
        self.done = work(transaction);
        if let Err(why) = &self.done {
            // A full disk and the like make SQLite roll everything back at once, the savepoint included.
            run("ROLLBACK TO request").map_err(|_| why.clone())?;
        }
        run("RELEASE request")?;
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Broken>) {
        let Self { work: _, done, reply } = *self;
        let _ = reply.send(committed.and(done));
    }
}
