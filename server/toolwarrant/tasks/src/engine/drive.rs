//! The runner: takes a due task, steps it, stores the step, performs its effect and passes the
//! result to the next step. Start at [`Engine::run`].

use super::conceal::conceal;
use super::due::{Progress, RETRY, Wake};
use super::{Engine, Parts};
use crate::command::{self, UNREADABLE};
use crate::executor::{Parsed, Write};
use crate::leave::Leave;
use crate::machine::{
    Effect, Event, Facts, Provability, READ_PATIENCE, RecordedEvent, Resend, SEND_PATIENCE, Sent, Step, TimelineEntry,
    step,
};
use crate::store::{Advance, Advanced, Identity, Record, TaskFilter};
use crate::task::{Phase, Reading, Task, TaskId, TaskStatus, Verdict};
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use toolwarrant_base::text::Secret;
use toolwarrant_base::{ignore_poison, survive};
use toolwarrant_core::access::NONCE_KEPT;
use toolwarrant_core::store::StoreError;
use toolwarrant_core::tasks::KEPT;

/// The others wait; their deadlines do not move.
const DRIVEN_MAX: usize = 4_096;

const REPEATED_WITHIN: Duration = Duration::from_hours(24);

const PURGE_EVERY: Duration = Duration::from_mins(1);
const PURGE_MAX: u32 = 500;

impl Engine {
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let clock = self.parts.clock.clone();
        let mut stop = pin!(stop);
        let mut driven = JoinSet::new();
        let begun = clock.now();
        let mut purge_at = begun;
        loop {
            self.turned.notify_waiters();
            let now = clock.now();
            while driven.try_join_next().is_some() {}
            while driven.len() < DRIVEN_MAX
                && let Some((id, wake)) = self.due.take(now)
            {
                driven.spawn(Arc::clone(&self).drive(id, wake));
            }
            if now >= purge_at {
                driven.spawn(Arc::clone(&self).purge(now.since(begun)));
                purge_at = now.plus(PURGE_EVERY);
            }
            let due = self.due.next().filter(|_| driven.len() < DRIVEN_MAX);
            let next = purge_at.min(due.unwrap_or(purge_at));
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = driven.join_next(), if driven.len() >= DRIVEN_MAX => {}
                () = self.due.earlier() => {}
                () = clock.sleep_until(next) => {}
            }
        }
        let mut accepting = take(&mut *ignore_poison(self.accepting.lock()));
        let drained = async {
            while accepting.join_next().await.is_some() {}
            while driven.join_next().await.is_some() {}
        };
        if clock.before(clock.now().plus(SEND_PATIENCE), drained).await.is_none() {
            tracing::warn!("stopped with tasks in progress; the next start resumes them");
        }
    }

    async fn drive(self: Arc<Self>, id: TaskId, wake: Wake) {
        let ended = survive(self.carry_on(id, wake)).await;
        let is_cut_off =
            matches!(ended, Some(Err(Halt::Store(StoreError::Unavailable(_) | StoreError::Unanswered(_)))));
        let is_known = self.is_cut_off.swap(is_cut_off, Ordering::Relaxed);
        let why = match ended {
            Some(Ok(())) => return,
            Some(Err(_)) if is_cut_off && is_known => None,
            Some(Err(halt)) => Some(halt.to_string()),
            None => Some("panicked".to_owned()),
        };
        if let Some(why) = why {
            tracing::error!(task = %id, why, "task could not be advanced; retrying");
        }
        let now = self.parts.clock.now();
        self.due.add(id, now.plus(RETRY), Wake { state: wake.state.after_failure(now), ..wake });
    }

    async fn carry_on(&self, id: TaskId, wake: Wake) -> Result<(), Halt> {
        let Parts { store, clock, .. } = &self.parts;
        let Some(mut record) = store.task(id).await? else {
            self.index.release(wake.hash);
            return Ok(());
        };
        let mut event = match wake.state {
            Progress::Found => Event::Found,
            Progress::TakenOver(_) => Event::TakenOver,
            Progress::Left(version) if version == record.version => Event::Due,
            Progress::Left(_) => return Err(Halt::Fenced),
        };
        // A send of another process had left when this one began, however late the task is due.
        let mut taken_over_at = match wake.state {
            Progress::TakenOver(moment) if record.task.phase == Phase::Sending => Some(moment),
            _ => None,
        };
        let mut opened = None;
        loop {
            let now = taken_over_at.take().unwrap_or_else(|| clock.now());
            let (write, unreadable) = opened.take().unwrap_or_else(|| self.unseal(&record));
            let facts = || self.facts(&write, unreadable.is_none());
            let Step { task, mut entries, effect } = step(record.task.clone(), event.clone(), now, &facts);
            if store.outlives_machine() {
                entries.iter_mut().for_each(|entry| *entry = entry.for_other_clocks(now));
            }
            let resend = Resend::of(&record.task, effect);
            // This wipes the arguments before the step is stored if no effect follows.
            let effect = effect.map(|effect| {
                let (baseline, operation, sent_by) =
                    (task.baseline.clone(), task.operation.clone(), task.send_not_after);
                (effect, Write { baseline, operation, sent_by, ..write })
            });
            if !entries.is_empty() || differs(&task, &record.task) {
                let (version, task) = (record.version, task.clone());
                let obstacle = task.obstacle.clone();
                let what =
                    TimelineEntry::Event(RecordedEvent { event, obstacle, unreadable: unreadable.clone(), resend });
                let advance = Advance { id, version, task, entries, what, at: now };
                self.write_down(&advance).await?;
                self.counts.count_step(&advance);
                record.version += 1;
            }
            record.task = task;
            match (effect, record.task.wake_at) {
                (Some((Effect::Send(_), _)), _) if unreadable.is_some() => {
                    event = Event::Sent(Sent::NotSent(UNREADABLE.into()));
                }
                (Some((effect, write)), _) => {
                    event = self.perform(effect, &write).await;
                    opened = Some((write, unreadable));
                }
                (None, Some(at)) => {
                    self.due.add(id, at, Wake { state: Progress::Left(record.version), ..wake });
                    return Ok(());
                }
                (None, None) => {
                    report(&record);
                    ignore_poison(self.unreadable.lock()).remove(&id);
                    self.index.release(wake.hash);
                    self.polls.release(id);
                    if record.task.status() == Some(TaskStatus::FailedSilent) {
                        self.report_repeated_refund(&record).await;
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Retries as long as the store fails, because the upstream's answer must not be lost. A step
    /// that was stored although the store reported a failure looks like a step of another process.
    /// The engine then drives the task again from there.
    async fn write_down(&self, advance: &Advance) -> Result<(), Halt> {
        let Parts { store, clock, .. } = &self.parts;
        loop {
            match store.advance(advance.clone()).await {
                Ok(Advanced::Written) => {
                    self.is_cut_off.store(false, Ordering::Relaxed);
                    return Ok(());
                }
                Ok(Advanced::Fenced) => return Err(Halt::Fenced),
                Err(why) => {
                    if !self.is_cut_off.swap(true, Ordering::Relaxed) {
                        tracing::error!(task = %advance.id, %why, "a step could not be stored; retrying until it is");
                    }
                    clock.sleep_until(clock.now().plus(RETRY)).await;
                }
            }
        }
    }

    async fn perform(&self, effect: Effect, write: &Write) -> Event {
        let Parts { executor, clock, catalogue, .. } = &self.parts;
        let conceal = |sent| conceal(*catalogue, write, sent);
        let begun = clock.now();
        let late = begun.plus(READ_PATIENCE);
        match effect {
            Effect::Baseline => {
                Event::Baseline(clock.before(late, executor.baseline(write)).await.and_then(Result::ok))
            }
            Effect::Send(not_after) => {
                let leave = Leave::for_task(not_after, clock, self.parts.lease.clone());
                let sent = clock.before(not_after.plus(SEND_PATIENCE), executor.send(write, leave.clone())).await;
                let sent = sent.unwrap_or_else(|| Sent::NoAnswer("no answer in time".into()));
                if !leave.is_asked() && !matches!(sent, Sent::NotSent(_)) {
                    let (task, tool) = (write.id, &write.tool);
                    tracing::error!(%task, tool, "sent without `Leave::confirm`, which may carry it out twice");
                }
                self.counts.count_send(&sent);
                Event::Sent(conceal(sent))
            }
            Effect::LookUp => {
                let found = clock.before(late, executor.look_up(write)).await.and_then(Result::ok);
                Event::LookedUp(found.map(|sent| sent.map(conceal)))
            }
            Effect::Probe => {
                let reading = clock.before(late, executor.probe(write)).await;
                Event::Probed(reading.unwrap_or_else(|| unreadable("it took too long")), begun)
            }
        }
    }

    fn facts(&self, write: &Write, readable: bool) -> Facts {
        let executor = &self.parts.executor;
        match executor.facts(write) {
            facts if readable => facts,
            facts if executor.verifies_without_arguments(write) => Facts { gone: Some(UNREADABLE), ..facts },
            facts => Facts { gone: Some(UNREADABLE), provability: Provability::Nothing(UNREADABLE), ..facts },
        }
    }

    /// Clients can make a target look as if a write had no effect, so an operator should look at
    /// it.
    async fn report_repeated_refund(&self, record: &Record) {
        let Record { id, identity: Identity { application, resource, target, .. }, .. } = record;
        let of_target = TaskFilter {
            resource: Some(resource.clone()),
            target: Some(target.clone()),
            statuses: vec![TaskStatus::FailedSilent],
            since: Some(self.parts.clock.now().minus(REPEATED_WITHIN)),
            limit: 2,
            examine: 1_000,
            ..TaskFilter::default()
        };
        if self.parts.store.tasks(of_target).await.is_ok_and(|found| found.records.len() > 1) {
            self.counts.repeated_refunds.add(1);
            tracing::warn!(
                task = %id, application, target,
                "a target was refunded again within a day; see whether its readings can be trusted"
            );
        }
    }

    fn unseal(&self, record: &Record) -> (Write, Option<String>) {
        let Record { id, identity: Identity { target, .. }, tool, task, sealed, .. } = record;
        let Parts { catalogue, keyring, .. } = &self.parts;
        let opened = command::open(*catalogue, keyring, (*id, tool), sealed.as_deref());
        let (arguments, unreadable) = match opened {
            Ok(arguments) => (arguments, None),
            Err(why) => (Secret::new(String::new()), Some(why)),
        };
        let write = Write {
            id: *id,
            tool: tool.clone(),
            target: target.clone(),
            arguments,
            probe: task.policy.probe.as_ref().map(|probe| probe.name.clone()),
            baseline: task.baseline.clone(),
            operation: task.operation.clone(),
            sent_by: task.send_not_after,
            parsed: Parsed::default(),
        };
        (write, unreadable)
    }

    /// Keeps deduplication keys until this process has run for as long as the signatures of an
    /// earlier one can be valid, because the clock at a start may be ahead.
    async fn purge(self: Arc<Self>, uptime: Duration) {
        let (store, now) = (&self.parts.store, self.parts.clock.earliest());
        let purged = async {
            while store.purge(now.minus(KEPT), PURGE_MAX).await? == PURGE_MAX {}
            while uptime >= NONCE_KEPT && store.purge_marks(now, PURGE_MAX).await? == PURGE_MAX {}
            Ok::<_, StoreError>(())
        };
        if let Err(error) = purged.await {
            tracing::error!(%error, "old tasks and deduplication keys could not be purged; retrying later");
        }
    }
}

fn report(record: &Record) {
    let Record { id, identity: Identity { application, target, .. }, tool, task, .. } = record;
    let status = task.status().map(TaskStatus::as_str);
    match task.status() {
        Some(TaskStatus::FailedSilent) => {
            tracing::warn!(task = %id, application, tool, target, status, "task failed silently; refunded");
        }
        Some(TaskStatus::Timeout) => {
            tracing::info!(task = %id, application, tool, target, status, "task timed out; outcome unknown");
        }
        _ => tracing::debug!(task = %id, application, tool, target, status, "task ended"),
    }
}

#[derive(Debug, thiserror::Error)]
enum Halt {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("another process drives this task")]
    Fenced,
}

/// Returns true unless a crash may lose the step: the next due time, or a reading that decides
/// nothing.
fn differs(new: &Task, old: &Task) -> bool {
    let forgettable = |task: &Task| Task { wake_at: None, reading: None, obstacle: None, ..task.clone() };
    forgettable(new) != forgettable(old)
}

fn unreadable(why: &str) -> Reading {
    Reading { verdict: Verdict::Unreadable, expected: "a reading".into(), observed: why.into() }
}
