//! The engine: accepts writes as tasks and drives each task until it ends.
//!
//! It owns the index of due times, the number of tasks in flight, and every future that advances a
//! task. It stores each step before it performs the step's effect. The pipeline calls [`Engine`];
//! [`Engine::run`] is the runner.

mod conceal;
mod drive;
mod due;
mod in_flight;
mod own;

pub use own::{OwnTasks, OwnWrite};

use super::executor::Executor;
use super::polls::Polls;
use super::task::{Task, TaskId};
use crate::command;
use crate::counts::EngineCounts;
use crate::store::{self, DeduplicationKey, Identity, OpenTask, Record, TaskFilter, TaskRows, TaskStore};
use due::{DueList, Progress, RETRY, Wake};
use in_flight::InFlightIndex;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::{Digest, KeyRing};
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_base::{BoxFuture, ignore_poison};
use toolwarrant_core::access::UsedNonce;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::lease::Lease;
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_core::tasks::{
    Poll, TASK_PAGE_MAX, TaskPage, TaskQuery, TaskReadError, TaskStatus, TaskView, Tasks, WriteAnswer, WriteRefusal,
    WriteRequest,
};

pub struct Parts {
    pub store: Arc<dyn TaskStore>,
    pub executor: Arc<dyn Executor>,
    /// `None`: nothing checks that stored commands can be read.
    pub catalogue: Option<&'static Catalogue>,
    pub keyring: KeyRing,
    pub clock: Clock,
    pub random: Random,
    pub max_in_flight: usize,
    /// `None` if no other process can take the place of this one.
    pub lease: Option<Lease>,
}

pub struct Engine {
    parts: Parts,
    due: Arc<DueList>,
    index: Arc<InFlightIndex>,
    /// Writes that are being accepted. They continue if their clients disconnect.
    accepting: Mutex<JoinSet<()>>,
    polls: Polls,
    counts: Arc<EngineCounts>,
    /// Tasks in flight, found at the start, whose command the contract cannot read.
    unreadable: Mutex<BTreeSet<TaskId>>,
    /// Set once the log says that the store does not answer, until it does.
    is_cut_off: AtomicBool,
    turned: Notify,
}

const NAMED_MAX: usize = 10;

/// Most tasks end long before their deadline.
const BUSY_RETRY_SECONDS: u64 = 15;

/// Longest time after the start until the engine looks at each task in flight. Without this limit,
/// tasks would wait too long after the clock was set back. An early look does no harm.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// Bounds a page, so that a filter that admits few tasks does not make one call read all of them.
const EXAMINED_MAX: u32 = 1_000;

const PAGE: u32 = 10_000;

impl Engine {
    /// Creates an engine that knows every task in flight. [`Self::run`] resumes their work.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, StoreError> {
        let polls = Polls::new(parts.clock.clone());
        let (due, index, accepting, counts, unreadable, is_cut_off, turned) = Default::default();
        let engine = Self { due, index, accepting, polls, counts, unreadable, is_cut_off, turned, parts };
        let mut last = None;
        let begun = engine.parts.clock.now();
        let found = if engine.parts.store.outlives_machine() { Progress::TakenOver(begun) } else { Progress::Found };
        loop {
            let page = engine.parts.store.in_flight(last, PAGE).await?;
            let now = engine.parts.clock.now();
            for OpenTask { id, identity, tool, sealed, wake_at } in &page {
                let hash = engine.index.of(identity);
                engine.index.add(hash);
                let Parts { catalogue, keyring, .. } = &engine.parts;
                if command::open(*catalogue, keyring, (*id, tool), sealed.as_deref()).is_err() {
                    ignore_poison(engine.unreadable.lock()).insert(*id);
                }
                let wake_at = wake_at.unwrap_or(now).clamp(now, now.plus(FOUND_WITHIN));
                engine.due.add(*id, wake_at, Wake { hash, state: found });
            }
            last = page.last().map(|task| task.id);
            if last.is_none() {
                return Ok(Arc::new(engine));
            }
        }
    }

    /// Returns the first of the stored nonces of reads.
    pub async fn first_read(&self) -> Result<Option<Box<[u8]>>, StoreError> {
        Ok(self.parts.store.marks(READS, None, 1).await?.pop())
    }

    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.index.tasks()
    }

    #[must_use]
    pub fn describe_unreadable(&self) -> Option<String> {
        let tasks = ignore_poison(self.unreadable.lock());
        describe_tasks("tasks in flight whose command this contract cannot read", &tasks)
    }

    #[must_use]
    pub fn counts(&self) -> &EngineCounts {
        &self.counts
    }

    #[must_use]
    pub fn lag(&self) -> Duration {
        self.due.next().map_or(Duration::ZERO, |due| self.parts.clock.now().since(due))
    }

    /// Returns true if each task in flight waits for a later time, so that only the clock can
    /// continue one.
    #[must_use]
    pub fn rests(&self) -> bool {
        self.due.count_after(self.parts.clock.now()) == self.index.tasks()
    }

    /// Returns once the loop of [`Self::run`] has turned.
    pub async fn turn(&self) {
        let turned = self.turned.notified();
        self.due.wake();
        turned.await;
    }

    #[must_use]
    pub fn poll_count(&self) -> usize {
        self.polls.count()
    }

    pub fn close(&self) {
        self.polls.close();
    }

    async fn find(&self, identity: &Identity) -> Result<Option<WriteAnswer>, WriteRefusal> {
        if self.index.is_free(self.index.of(identity)) {
            return Ok(None);
        }
        self.parts.store.repeat(identity.clone()).await.map_err(not_stored)
    }

    async fn take_on(
        &self,
        WriteRequest { identity, tool, policy, call, nonce, now: at }: WriteRequest<'_>,
        command: &Secret<String>,
    ) -> Result<WriteAnswer, WriteRefusal> {
        let Parts { store, keyring, random, max_in_flight, .. } = &self.parts;
        let (hash, target) = (self.index.of(&identity), identity.target.clone());
        let Some(reservation) = self.index.reserve(hash, *max_in_flight) else { return Err(WriteRefusal::Full) };
        let id = TaskId::new(at, random.bytes().map_err(internal_refusal)?);
        let sealed = keyring.seal(&id.to_string(), command.expose()).map_err(internal_refusal)?;
        let new = Record::new(id, (tool, identity), Task::new((&policy).into(), at), sealed, call);
        let marks = nonce.map(mark).into_iter().collect();
        let (store, due) = (Arc::clone(store), Arc::clone(&self.due));
        let (counts, clock) = (Arc::clone(&self.counts), self.parts.clock.clone());
        let accepting = async move {
            let accepted = store.accept(new, marks).await;
            match accepted {
                Ok(store::Acceptance::Fresh { wake_at }) => {
                    reservation.keep();
                    counts.accepted.add(1);
                    due.add(id, wake_at, Wake { hash, state: Progress::Left(0) });
                    accepted
                }
                // The task may have been stored although the store reported a failure.
                Err(error) => {
                    reservation.keep();
                    due.add(id, at.plus(RETRY), Wake { hash, state: Progress::Found });
                    let is_stored = is_stored(&*store, &clock, id, &error).await;
                    if is_stored { Ok(store::Acceptance::Fresh { wake_at: at }) } else { Err(error) }
                }
                accepted => accepted,
            }
        };
        let not_accepted = |error| match error {
            StoreError::Conflict(_) if nonce.is_some() => WriteRefusal::UsedNonce,
            error => not_stored(error),
        };
        match self.begin(accepting).await.map_err(internal_refusal)?.map_err(not_accepted)? {
            store::Acceptance::Fresh { .. } => {
                let (task_id, tool, accepted_at) = (id.to_string(), tool.to_owned(), id.accepted_at());
                Ok(WriteAnswer { task_id, tool, target, accepted_at, hit: false, matches: true })
            }
            store::Acceptance::Hit(answer) => Ok(answer),
            store::Acceptance::Busy { id, application: _, deadline_at } => {
                let retry_after_seconds = deadline_at.seconds_from(at).clamp(1, BUSY_RETRY_SECONDS);
                Err(WriteRefusal::Busy { task_id: id.to_string(), retry_after_seconds })
            }
        }
    }

    /// Starts `work`, which continues even if its caller no longer waits for it.
    fn begin<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> oneshot::Receiver<T> {
        let (tell, told) = oneshot::channel();
        let mut accepting = ignore_poison(self.accepting.lock());
        while accepting.try_join_next().is_some() {}
        accepting.spawn(async move { drop(tell.send(work.await)) });
        told
    }

    async fn answer_poll(&self, poll: Poll<'_>) -> Result<TaskView, TaskReadError> {
        let id = TaskId::parse(poll.id).ok_or(TaskReadError::NotFound)?;
        let mut record = self.visible(id, poll).await?;
        if record.task.status().is_none()
            && let Some(held) = self.polls.hold(&poll, id)
        {
            record = self.visible(id, poll).await?;
            // The task may have ended before the poll was held.
            if record.task.status().is_none() {
                held.wait().await;
                record = self.visible(id, poll).await?;
            }
        }
        let in_flight = record.task.status().is_none();
        let after = in_flight.then(|| self.polls.record_answer(&poll.caller.key_id, id, poll.interval));
        Ok(tell(record, after))
    }

    async fn select(&self, owner: &str, query: TaskQuery<'_>) -> Result<TaskPage, TaskReadError> {
        let TaskQuery { status, resource, target, before, limit } = query;
        let before = match before {
            Some(id) => Some(TaskId::parse(id).ok_or(TaskReadError::NotFound)?),
            None => None,
        };
        let limit = limit.clamp(1, TASK_PAGE_MAX);
        let filter = TaskFilter {
            application: Some(owner.to_owned()),
            statuses: status.into_iter().collect(),
            resource: resource.map(str::to_owned),
            target: target.map(str::to_owned),
            before,
            limit: limit.into(),
            examine: EXAMINED_MAX,
            ..TaskFilter::default()
        };
        let TaskRows { records, examined: _, next } = self.parts.store.tasks(filter).await.map_err(unreadable)?;
        let tasks = records.into_iter().map(|record| tell(record, None)).collect();
        Ok(TaskPage { tasks, next: next.map(|id| id.to_string()) })
    }

    async fn visible(&self, id: TaskId, poll: Poll<'_>) -> Result<Record, TaskReadError> {
        let record = self.parts.store.task(id).await.map_err(unreadable)?;
        let application = &poll.caller.application;
        let visible = |Record { identity: Identity { application: owner, resource, target, .. }, .. }: &Record| {
            *owner == *application.id || application.grants.covers(resource, target)
        };
        record.filter(visible).ok_or(TaskReadError::NotFound)
    }
}

impl Tasks for Engine {
    fn fingerprint(&self, tool: &str, arguments: &Secret<String>) -> Digest {
        self.parts.keyring.mac(&["call", tool, arguments.expose()])
    }

    fn repeat<'a>(&'a self, write: &'a WriteRequest<'a>) -> BoxFuture<'a, Result<Option<WriteAnswer>, WriteRefusal>> {
        Box::pin(self.find(&write.identity))
    }

    fn accept<'a>(
        &'a self,
        write: WriteRequest<'a>,
        command: Secret<String>,
    ) -> BoxFuture<'a, Result<WriteAnswer, WriteRefusal>> {
        Box::pin(async move { self.take_on(write, &command).await })
    }

    fn poll<'a>(&'a self, poll: Poll<'a>) -> BoxFuture<'a, Result<TaskView, TaskReadError>> {
        Box::pin(self.answer_poll(poll))
    }

    fn list<'a>(&'a self, owner: &'a str, query: TaskQuery<'a>) -> BoxFuture<'a, Result<TaskPage, TaskReadError>> {
        Box::pin(self.select(owner, query))
    }

    fn find_write<'a>(
        &'a self,
        resource: &'a str,
        target: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, TaskReadError>> {
        Box::pin(async move {
            if self.in_flight() == 0 {
                return Ok(None);
            }
            let filter = TaskFilter {
                statuses: vec![TaskStatus::Dispatched],
                resource: Some(resource.to_owned()),
                target: Some(target.to_owned()),
                limit: 1,
                examine: u32::MAX,
                ..TaskFilter::default()
            };
            let found = self.parts.store.tasks(filter).await.map_err(unreadable)?;
            Ok(found.records.first().map(|record| record.id.to_string()))
        })
    }

    fn keep_nonce<'a>(&'a self, nonce: &'a UsedNonce) -> Stored<'a, ()> {
        self.parts.store.mark(vec![mark(nonce)])
    }
}

const NONCES: &str = "nonce";

const READS: &str = "reads";

fn describe_tasks(what: &str, tasks: &BTreeSet<TaskId>) -> Option<String> {
    let mut named: Vec<_> = tasks.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    if tasks.len() > named.len() {
        named.push(format!("and {} more", tasks.len() - named.len()));
    }
    (!tasks.is_empty()).then(|| format!("{what}: {} ({})", tasks.len(), named.join(", ")))
}

/// Returns true if a task is stored. Waits until its fate is known: a client must not read that
/// nothing was done.
async fn is_stored(store: &dyn TaskStore, clock: &Clock, id: TaskId, error: &StoreError) -> bool {
    loop {
        match store.task(id).await {
            Ok(found) => return found.is_some(),
            Err(_) if matches!(error, StoreError::Unanswered(_)) => clock.sleep_until(clock.now().plus(RETRY)).await,
            Err(_) => return false,
        }
    }
}

fn mark(nonce: &UsedNonce) -> DeduplicationKey {
    DeduplicationKey { space: if nonce.reads { READS } else { NONCES }, key: nonce.entry.clone(), until: nonce.until }
}

fn tell(record: Record, poll_after_seconds: Option<u64>) -> TaskView {
    let evidence = record.task.evidence();
    let Record { id, identity: Identity { resource, target, .. }, tool, created_at, task, refunded_at, .. } = record;
    let (status, deadline_at, finished_at) = (task.outward_status(), task.deadline_at, task.finished_at);
    let probe = task.policy.probe.map(|probe| probe.name);
    TaskView {
        id: id.to_string(),
        tool,
        probe,
        resource,
        target,
        status,
        created_at,
        deadline_at,
        finished_at,
        poll_after_seconds,
        evidence,
        refunded_at,
    }
}

fn unreadable(error: StoreError) -> TaskReadError {
    TaskReadError::Broken(error.to_string())
}

fn not_stored(error: StoreError) -> WriteRefusal {
    match error {
        StoreError::Unavailable(_) | StoreError::Unanswered(_) => WriteRefusal::Unavailable,
        StoreError::Conflict(_) | StoreError::Corrupt(_) => internal_refusal(error),
    }
}

fn internal_refusal(error: impl fmt::Display) -> WriteRefusal {
    WriteRefusal::Broken(error.to_string())
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}
