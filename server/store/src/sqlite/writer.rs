//! The one thread that writes. Requests that arrive while a commit is under way share the next one.
//!
//! Nobody is told before the commit has reached the disk. A request that fails takes its transaction with it, and the others
//! are done anew without it: it is rare, and a savepoint for each would cost more than most requests. Of a commit that fails,
//! each request is tried once more by itself: one that only asks needs no room on the disk. If the thread panics, the transaction is
//! rolled back, and whoever waits or asks later is answered [`Fault`].

use super::Fault;
use super::WriteCounts;
use super::queue::{Queue, Reply};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::io;
use std::iter;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant_core::store::Stored;

/// Requests that share a commit at most.
const TOGETHER: usize = 512;

/// How long a transaction takes further requests in, as long as there are any, or there were more in the one before: whoever
/// was answered then is likely to come again, and shares this one if it is waited for.
const WINDOW: Duration = Duration::from_millis(2);

/// Writes, one request after the other.
pub(super) struct Writer {
    queue: Queue<Box<dyn Request>>,
    pub(super) counts: Arc<WriteCounts>,
}

/// Something to be written, and who is to be told.
pub(super) trait Request: Send {
    /// Writes, and says whether the transaction may be committed; if not, it may be asked again in another one.
    fn write(&mut self, transaction: &Transaction<'_>) -> bool;

    /// Tells whoever asked, given how the commit went.
    fn answer(self: Box<Self>, committed: Result<(), Fault>);
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(mut connection: Connection) -> io::Result<Self> {
        let (mut queue, mut requests) = Queue::<Box<dyn Request>>::new();
        let counts = Arc::new(WriteCounts::default());
        let counted = Arc::clone(&counts);
        queue.spawn("store-writer", move || {
            // A burst of failures is logged once.
            let (mut failing, mut before) = (false, 1);
            while let Some(first) = requests.blocking_recv() {
                let (start, changes, mut taken) = (Instant::now(), connection.total_changes(), 1);
                let more = iter::from_fn(|| {
                    while start.elapsed() < WINDOW {
                        if let Ok(request) = requests.try_recv() {
                            taken += 1;
                            return Some(request);
                        }
                        if taken >= before {
                            break;
                        }
                        thread::yield_now();
                    }
                    None
                });
                match commit(&mut connection, iter::once(first).chain(more).take(TOGETHER), &counted) {
                    Err(why) if !failing => {
                        failing = true;
                        tracing::error!(%why, "the store cannot write, and refuses what is asked of it until it can");
                    }
                    // What has changed nothing needed no room.
                    Ok(()) if failing && connection.total_changes() > changes => {
                        failing = false;
                        tracing::info!("the store can write again");
                    }
                    _ => {}
                }
                before = taken;
            }
        })?;
        Ok(Self { queue, counts })
    }

    /// How many requests wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// What `work` writes, once it is on the disk. If it answers with an error, nothing of it is.
    pub(super) fn write<'a, T, F>(&'a self, work: F) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        Box::pin(self.queue.ask(move |reply| -> Box<dyn Request> { Box::new(Write::new(work, reply)) }))
    }
}

/// Writes all of `requests` in one transaction, or else each in its own, and answers them.
pub(super) fn commit(
    connection: &mut Connection,
    mut requests: impl Iterator<Item = Box<dyn Request>>,
    counts: &WriteCounts,
) -> Result<(), Fault> {
    // Before anything can fail, so that it is answered.
    let mut taken = Vec::from_iter(requests.next());
    let committed = loop {
        match write(connection, &mut requests, &mut taken) {
            Ok(None) => break Ok(()),
            Ok(Some(failed)) => taken.remove(failed).answer(Ok(())),
            Err(why) => break Err(Fault::from(why)),
        }
    };
    if committed.is_err() && taken.len() > 1 {
        let mut all = Ok(());
        for request in taken {
            all = all.and(commit(connection, iter::once(request), counts));
        }
        return all;
    }
    let requests = taken.len();
    for request in taken {
        request.answer(committed.clone());
    }
    if committed.is_ok() {
        counts.commits.add(1);
        counts.requests.add(requests as u64);
    } else {
        counts.failures.add(1);
    }
    committed
}

/// Writes what was taken and all that follows, or nothing of it if one fails: which one.
fn write(
    connection: &mut Connection,
    requests: &mut impl Iterator<Item = Box<dyn Request>>,
    taken: &mut Vec<Box<dyn Request>>,
) -> rusqlite::Result<Option<usize>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for next in 0.. {
        if next == taken.len() {
            let Some(request) = requests.next() else { break };
            taken.push(request);
        }
        if taken.get_mut(next).is_some_and(|request| !request.write(&transaction)) {
            return Ok(Some(next));
        }
    }
    transaction.commit()?;
    Ok(None)
}

/// The one kind of request: a function, and the place for its answer.
pub(super) struct Write<T, F> {
    work: F,
    done: Result<T, Fault>,
    reply: Reply<T>,
}

impl<T, F> Write<T, F> {
    /// Not yet written.
    pub(super) fn new(work: F, reply: Reply<T>) -> Self {
        Self { work, done: Err(Fault::unavailable("not tried".to_owned())), reply }
    }
}

impl<T, F> Request for Write<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, Fault> + Send,
{
    fn write(&mut self, transaction: &Transaction<'_>) -> bool {
        self.done = (self.work)(transaction);
        // A full disk and the like make SQLite roll everything back at once.
        if transaction.is_autocommit() && self.done.is_ok() {
            self.done = Err(Fault::unavailable("the transaction was lost".to_owned()));
        }
        self.done.is_ok()
    }

    fn answer(self: Box<Self>, committed: Result<(), Fault>) {
        let Self { work: _, done, reply } = *self;
        let _ = reply.send(committed.and(done));
    }
}
