//! A small world for the engine: a store that outlives it, a target that follows a script, and time
//! in steps.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_core::tasks::{AcceptedTask, Repeat, Tasks, WriteRefusal, WriteRequest};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::{Facts, Sent};
use toolwarrant_tasks::store::{
    self, Advance, Advanced, DeduplicationKey, DuplicateOf, Identity, LedgerRow, NewTask, OpenTask, Record,
    RefundFilter, TaskFilter, TaskRows, TaskStore, TimelineEvent,
};
use toolwarrant_tasks::task::Verdict::Unreadable as Unread;
use toolwarrant_tasks::task::{Reading, Status, TaskId, Verdict};

pub(crate) const START: Timestamp = Timestamp(1_800_000_000_000);

/// Makes a policy with a settle time of 10 s and a deadline of 60 s.
const fn policy(probe: Option<&'static str>, baseline: bool, idempotent: bool) -> PolicyDef {
    PolicyDef { probe, baseline, idempotent, settle_seconds: 10, deadline_seconds: 60 }
}
pub(crate) static SIGHTED: PolicyDef = policy(Some("counter"), false, true);
pub(crate) static ONCE: PolicyDef = policy(Some("counter"), true, false);
pub(crate) static BLIND: PolicyDef = policy(None, false, true);

/// A target that follows its script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) clock: Clock,
    pub(crate) facts: Facts,
    /// The outcomes of the sends, in order; the last one repeats.
    pub(crate) sends: Vec<Sent>,
    /// The verdicts of readings, each with the second from which it holds, in order.
    pub(crate) reads: Vec<(u64, Verdict)>,
    /// True if the baseline, the reading before the send, can be taken.
    pub(crate) baseline: bool,
    /// The ids and times of all requests that left.
    pub(crate) sent: Mutex<Vec<(TaskId, Timestamp)>>,
}

impl Script {
    pub(crate) fn new(clock: &Clock, sends: &[Sent], reads: &[(u64, Verdict)]) -> Self {
        let (sends, reads, sent) = (sends.to_vec(), reads.to_vec(), Mutex::default());
        Self { clock: clock.clone(), facts: Facts::default(), sends, reads, baseline: true, sent }
    }
}

impl Executor for Script {
    fn facts(&self, _: &Write) -> Facts {
        self.facts
    }

    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { if self.baseline { Ok("7".to_owned()) } else { Err(Unreadable("dark".into())) } })
    }

    fn send<'a>(&'a self, write: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        let mut sent = self.sent.lock().expect("no panic");
        sent.push((write.id, self.clock.now()));
        let outcome = self.sends[(sent.len() - 1).min(self.sends.len() - 1)].clone();
        Box::pin(async move {
            match &outcome {
                Sent::NoAnswer(how) if how.as_str() == "hangs" => std::future::pending().await,
                Sent::NoAnswer(how) if how.as_str() == "panics" => panic!("as the script says"),
                _ => outcome,
            }
        })
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        let known = write.operation.is_some() || self.facts.looks_up;
        Box::pin(async move { if known { Ok(Some(Sent::Ok)) } else { Err(Unreadable("cannot".into())) } })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        let second = self.clock.now().since(START).as_secs();
        let verdict = self.reads.iter().rev().find(|(from, _)| *from <= second).map_or(Unread, |(_, verdict)| *verdict);
        Box::pin(async move { Reading { verdict, expected: "8".into(), observed: "7 -> ?".into() } })
    }
}

/// A memory store whose n-th step fails, as on a disk that is full for a moment, or on a database
/// that an operator's tool locks.
#[derive(Debug)]
pub(crate) struct Flaky {
    pub(crate) memory: Memory,
    pub(crate) fails: u32,
    pub(crate) steps: AtomicU32,
    /// True if the failing step is stored all the same, as by a store that dies before it answers.
    pub(crate) lies: bool,
}

impl TaskStore for Flaky {
    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        if self.steps.fetch_add(1, Relaxed) + 1 == self.fails {
            let written = self.lies.then(|| self.memory.advance(advance));
            return Box::pin(async move {
                if let Some(written) = written {
                    written.await?;
                }
                Err(StoreError::Unavailable("database or disk is full".to_owned()))
            });
        }
        self.memory.advance(advance)
    }

    fn repeat(&self, identity: Identity) -> Stored<'_, Option<DuplicateOf>> {
        self.memory.repeat(identity)
    }

    fn accept(&self, new: NewTask) -> Stored<'_, store::Acceptance> {
        self.memory.accept(new)
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        self.memory.in_flight(after, limit)
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        self.memory.task(id)
    }

    fn refunds(&self, which: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        self.memory.refunds(which)
    }

    fn tasks(&self, which: TaskFilter) -> Stored<'_, TaskRows> {
        self.memory.tasks(which)
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        self.memory.timeline(id)
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        self.memory.ledger(after, limit)
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.memory.purge(before, limit)
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        self.memory.mark(marks)
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        self.memory.marks(space, after, limit)
    }

    fn purge_marks(&self, until: Timestamp, limit: u32) -> Stored<'_, u32> {
        self.memory.purge_marks(until, limit)
    }
}

/// An engine with a store that outlives it.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) script: Arc<Script>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) runner: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new(sends: &[Sent], reads: &[(u64, Verdict)]) -> Self {
        Self::with(Facts::default(), sends, reads, true).await
    }

    pub(crate) async fn with(facts: Facts, sends: &[Sent], reads: &[(u64, Verdict)], baseline: bool) -> Self {
        let clock = Clock::manual(START);
        let script = Arc::new(Script { facts, baseline, ..Script::new(&clock, sends, reads) });
        Self::on(Arc::<Memory>::default(), clock, script).await
    }

    pub(crate) async fn on(store: Arc<dyn TaskStore>, clock: Clock, script: Arc<Script>) -> Self {
        let (engine, runner) = start(&clock, &store, &script).await;
        Self { clock, store, script, engine, runner }
    }

    /// Crashes the process and starts another one on the same store.
    pub(crate) async fn crash(&mut self) {
        self.runner.abort();
        let _ = (&mut self.runner).await;
        (self.engine, self.runner) = start(&self.clock, &self.store, &self.script).await;
    }

    pub(crate) async fn ask(
        &self,
        policy: &'static PolicyDef,
        target: &str,
        key: Option<&str>,
    ) -> Result<AcceptedTask, WriteRefusal> {
        self.ask_as("one", policy, target, key, "{}").await
    }

    pub(crate) async fn ask_as(
        &self,
        application: &str,
        policy: &'static PolicyDef,
        target: &str,
        key: Option<&str>,
        arguments: &str,
    ) -> Result<AcceptedTask, WriteRefusal> {
        let arguments = Secret::new(format!("{target}{arguments}"));
        let (command, now) = (arguments.clone(), self.clock.now());
        let request = WriteRequest {
            application,
            tool: "turn",
            resource: "wheel",
            target: target.to_owned(),
            key: key.map(str::to_owned),
            policy: *policy,
            arguments,
            nonce: None,
            now,
        };
        match self.engine.repeat(request).await? {
            Repeat::Hit(task) => Ok(task),
            Repeat::Fresh(write) => self.engine.accept(write, command).await,
        }
    }

    pub(crate) async fn begin(&self, policy: &'static PolicyDef) -> TaskId {
        let accepted = self.ask(policy, "w-1", None).await.expect("a free target");
        TaskId::parse(&accepted.task_id).expect("an id")
    }

    pub(crate) async fn record(&self, id: TaskId) -> Record {
        self.store.task(id).await.expect("a store").expect("a task")
    }

    /// Lets time pass second by second, with everything that is due.
    pub(crate) async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            settle().await;
            self.clock.advance(Duration::from_secs(1));
        }
        settle().await;
    }

    /// Lets time pass until the task is in that phase.
    pub(crate) async fn until(&self, id: TaskId, phase: &str) {
        for _ in 0..200 {
            settle().await;
            if self.record(id).await.task.phase.as_str() == phase {
                return;
            }
            self.clock.advance(Duration::from_secs(1));
        }
        panic!("{id} never gets to {phase}: {:?}", self.record(id).await);
    }

    /// Lets time pass until the task ends. Returns its status, and the second of its end.
    pub(crate) async fn end(&self, id: TaskId) -> (Status, u64) {
        for _ in 0..200 {
            settle().await;
            let task = self.record(id).await.task;
            if let (Some(status), Some(at)) = (task.status(), task.finished_at) {
                return (status, at.since(START).as_secs());
            }
            self.clock.advance(Duration::from_secs(1));
        }
        panic!("{id} never ends: {:?}", self.record(id).await);
    }

    pub(crate) async fn ledger(&self) -> Vec<&'static str> {
        self.store.ledger(0, 100).await.expect("a store").iter().map(|row| row.kind).collect()
    }

    pub(crate) fn sends(&self) -> usize {
        self.script.sent.lock().expect("no panic").len()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runner.abort();
    }
}

pub(crate) async fn start(
    clock: &Clock,
    store: &Arc<dyn TaskStore>,
    script: &Arc<Script>,
) -> (Arc<Engine>, JoinHandle<()>) {
    let (store, executor, random) = (store.clone(), script.clone(), Random::System);
    let keyring = KeyRing::new("test", &[7; 32], random.clone());
    let (catalogue, clock) = (None, clock.clone());
    let engine = Engine::start(Parts { store, executor, catalogue, keyring, clock, random, max_in_flight: 3 });
    let engine = engine.await.expect("a store that can be read");
    let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
    (engine, runner)
}

/// Returns once everything waits: tokio's own clock is paused, and advances only when all tasks are
/// idle.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(crate) fn err() -> Sent {
    Sent::Err("jam".into())
}

pub(crate) fn none() -> Sent {
    Sent::NoAnswer("reset".into())
}

pub(crate) fn not_sent() -> Sent {
    Sent::NotSent("refused".into())
}
