//! The one writing thread. Requests that arrive during a commit share the next one. A request is
//! answered after its commit has reached the disk.
//!
//! When a request fails, its transaction is rolled back and repeated without it: a savepoint for
//! each request would cost more. If a commit fails, each of its requests is retried alone, because
//! a request that only reads needs no room on the disk. If no transaction can begin, or its writes
//! would be lost, the writer refuses all waiting requests. If the thread panics, it answers them
//! with a [`Fault`]. Start at [`commit`].

use super::connection::BUSY;
use super::fault::Fault;
use super::ownership::Ownership;
use super::queue::{Queue, Reply};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::cell::RefCell;
use std::io;
use std::iter;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant_core::counts::Count;
use toolwarrant_core::store::Stored;

const TOGETHER: usize = 512;

/// Time that a transaction stays open if requests arrive or the previous one had more than one: a
/// client that was just answered is likely to come again.
const WINDOW: Duration = Duration::from_millis(2);

/// After another program's transaction has not ended within [`BUSY`].
const STILL_BUSY: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct WriteCounts {
    pub commits: Count,
    /// Requests in committed transactions.
    pub requests: Count,
    pub failures: Count,
}

pub(super) struct Writer {
    queue: Queue<Box<dyn WriteJob>>,
    pub(super) counts: Arc<WriteCounts>,
}

pub(super) trait WriteJob: Send {
    /// Returns true if the transaction may be committed. Otherwise it may be called again in
    /// another transaction.
    fn write(&mut self, transaction: &Transaction<'_>) -> bool;

    fn answer(self: Box<Self>, committed: Result<(), Fault>);
}

impl Writer {
    pub(super) fn start(mut connection: Connection, ownership: Ownership) -> io::Result<Self> {
        let (mut queue, requests) = Queue::<Box<dyn WriteJob>>::new();
        let requests = RefCell::new(requests);
        let counts = Arc::new(WriteCounts::default());
        let counted = Arc::clone(&counts);
        queue.spawn("store-writer", move || {
            // The log reports a burst of failures once.
            let (mut failing, mut before) = (false, 1);
            let mut refusing = false;
            let receive = || requests.borrow_mut().blocking_recv();
            let next = || requests.borrow_mut().try_recv().ok();
            while let Some(first) = receive() {
                let (start, changes, mut taken) = (Instant::now(), connection.total_changes(), 1);
                let more = iter::from_fn(|| {
                    while start.elapsed() < WINDOW {
                        if let Some(request) = next() {
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
                let together = iter::once(first).chain(more).take(TOGETHER);
                let committed = commit(&mut connection, &ownership, together, &mut iter::from_fn(next), &counted);
                let refuses = matches!(committed, Err(Failed::Everything(_)));
                if refuses != refusing {
                    refusing = refuses;
                    let _ = connection.busy_timeout(if refuses { STILL_BUSY } else { BUSY });
                }
                match committed {
                    Err(Failed::Everything(why) | Failed::Commit(why)) if !failing => {
                        failing = true;
                        tracing::error!(%why, "the store cannot write, and refuses requests until it can");
                    }
                    // A transaction without changes needs no room on the disk, so it proves
                    // nothing.
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

    pub(super) fn queue_length(&self) -> usize {
        self.queue.queue_length()
    }

    /// Answers once the transaction is on the disk. If `work` fails, none of its changes are
    /// written.
    pub(super) fn write<'a, T, F>(&'a self, work: F) -> Stored<'a, T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        Box::pin(self.queue.ask(move |reply| -> Box<dyn WriteJob> { Box::new(AnsweredWrite::new(work, reply)) }))
    }
}

#[derive(Debug)]
pub(super) enum Failed {
    /// No transaction can begin, or its writes would be lost. Every other request would fail too.
    Everything(Fault),
    Commit(Fault),
}

/// Runs all requests in one transaction or, if its commit fails, each in a separate one.
pub(super) fn commit(
    connection: &mut Connection,
    ownership: &Ownership,
    mut requests: impl Iterator<Item = Box<dyn WriteJob>>,
    waiting: &mut dyn Iterator<Item = Box<dyn WriteJob>>,
    counts: &WriteCounts,
) -> Result<(), Failed> {
    // Taken before anything can fail, so that the request is answered.
    let mut taken = Vec::from_iter(requests.next());
    let committed = loop {
        match write(connection, ownership, &mut requests, &mut taken) {
            Ok(None) => break Ok(()),
            Ok(Some(failed)) => taken.remove(failed).answer(Ok(())),
            Err(why) => break Err(why),
        }
    };
    if matches!(committed, Err(Failed::Commit(_))) && taken.len() > 1 {
        let mut all = Ok(());
        for request in taken {
            all = all.and(commit(connection, ownership, iter::once(request), waiting, counts));
        }
        return all;
    }
    // A caller that gets its answer may stop the store, which then raises the watermark above the
    // counted commits.
    if committed.is_ok() {
        counts.commits.add(1);
        counts.requests.add(taken.len() as u64);
    } else {
        counts.failures.add(1);
    }
    // All before the first answer: its caller may mend the cause and come again.
    if matches!(committed, Err(Failed::Everything(_))) {
        taken.extend(waiting);
    }
    for request in taken {
        request.answer(match &committed {
            Ok(()) => Ok(()),
            Err(Failed::Everything(why) | Failed::Commit(why)) => Err(why.clone()),
        });
    }
    committed
}

/// Returns the index of a request that failed; then nothing is written.
fn write(
    connection: &mut Connection,
    ownership: &Ownership,
    requests: &mut impl Iterator<Item = Box<dyn WriteJob>>,
    taken: &mut Vec<Box<dyn WriteJob>>,
) -> Result<Option<usize>, Failed> {
    let everything = |why: rusqlite::Error| Failed::Everything(why.into());
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(everything)?;
    for next in 0.. {
        if next == taken.len() {
            let Some(request) = requests.next() else { break };
            taken.push(request);
        }
        if taken.get_mut(next).is_some_and(|request| !request.write(&transaction)) {
            return Ok(Some(next));
        }
    }
    // As late as possible, because a committed transaction is acknowledged.
    ownership.check(&transaction).map_err(Failed::Everything)?;
    transaction.commit().map_err(|why| Failed::Commit(why.into()))?;
    Ok(None)
}

pub(super) struct AnsweredWrite<T, F> {
    work: F,
    done: Result<T, Fault>,
    reply: Reply<T>,
}

impl<T, F> AnsweredWrite<T, F> {
    pub(super) fn new(work: F, reply: Reply<T>) -> Self {
        Self { work, done: Err(Fault::unavailable("not tried".to_owned())), reply }
    }
}

impl<T, F> WriteJob for AnsweredWrite<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, Fault> + Send,
{
    fn write(&mut self, transaction: &Transaction<'_>) -> bool {
        self.done = (self.work)(transaction);
        // On some failures, such as a full disk, SQLite rolls the whole transaction back at once.
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
