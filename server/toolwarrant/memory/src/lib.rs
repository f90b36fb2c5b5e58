//! A store in memory for tests and the simulation, where it plays a disk that survives the process.
//! Start at [`Memory`].

mod directory;
mod files;
mod rules;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};
use toolwarrant_audit::Anchor;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::act::{Act, ActFilter, StoredAct};
use toolwarrant_core::store::{
    ApplicationRow, AuditStore, DirectoryStore, KeyRow, RequestCount, SecretUse, StoreError, Stored,
};
use toolwarrant_store::{CoolDown, Recovery};
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, Identity, LedgerRow, OpenTask, Record, RefundFilter, StatusCounts,
    TaskFilter, TaskRows, TaskStore, TimelineEvent, WriteAnswer, answer_repeat,
};
use toolwarrant_tasks::task::{Phase, Task, TaskId, TaskStatus};

#[derive(Debug, Default)]
pub struct Memory {
    tables: Arc<Mutex<Tables>>,
    /// The process that uses it; 0 if no other takes its place.
    epoch: u64,
}

#[derive(Clone, Debug, Default)]
struct Tables {
    tasks: BTreeMap<TaskId, Row>,
    /// By application and idempotency key.
    keys_in_flight: HashMap<(String, String), TaskId>,
    /// By resource and target.
    locks: HashMap<(String, String), TaskId>,
    cool_downs: HashMap<(String, String), CoolDown>,
    ledger: Vec<LedgerRow>,
    entered: HashSet<(TaskId, &'static str)>,
    applications: Vec<ApplicationRow>,
    keys: BTreeMap<String, KeyRow>,
    seen: Option<Timestamp>,
    /// Until when each must exist, by name space and key.
    marks: BTreeMap<(&'static str, Box<[u8]>), Timestamp>,
    anchor: Option<Anchor>,
    uses: BTreeMap<(String, Digest), SecretUse>,
    acts: Vec<Act>,
    epoch: u64,
    requests: BTreeMap<(u64, String), u32>,
    files: HashMap<String, Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Row {
    record: Record,
    timeline: Vec<TimelineEvent>,
}

impl Memory {
    /// Opens the store for a process on another machine. The former one writes no more.
    #[must_use]
    pub fn lead(&self) -> Self {
        let mut tables = self.lock();
        tables.epoch += 1;
        Self { tables: Arc::clone(&self.tables), epoch: tables.epoch }
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.lock().epoch != self.epoch
    }

    fn write<T>(&self, work: impl FnOnce(&mut Tables) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut tables = self.lock();
        if tables.epoch != self.epoch {
            return Err(StoreError::Unavailable("another process leads".to_owned()));
        }
        work(&mut tables)
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        ignore_poison(self.tables.lock())
    }
}

fn ready<'a, T: Send + 'a>(answer: Result<T, StoreError>) -> Stored<'a, T> {
    Box::pin(std::future::ready(answer))
}

fn now<'a, T: Send + 'a>(answer: T) -> Stored<'a, T> {
    ready(Ok(answer))
}

impl TaskStore for Memory {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<WriteAnswer>> {
        now(self.lock().find_duplicate(&identity))
    }

    fn accept(&self, new: Record, marks: Vec<DeduplicationKey>) -> Stored<'_, Acceptance> {
        ready(self.write(|tables| tables.accept(new, marks)))
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        ready(self.write(|tables| tables.advance(advance)))
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        now(self.lock().open_tasks(after, limit))
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        now(self.lock().tasks.get(&id).map(|row| row.record.clone()))
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows> {
        let tables = self.lock();
        let (first, end) = filter.ids();
        let bounds = (first.map_or(Bound::Unbounded, Bound::Included), end.map_or(Bound::Unbounded, Bound::Excluded));
        let mut found = TaskRows::default();
        if first.is_some_and(|first| end.is_some_and(|end| first >= end)) {
            return now(found);
        }
        let is_ours = |record: &&Record| {
            filter.application.as_ref().is_none_or(|application| record.identity.application == *application)
                && (!filter.is_in_flight() || record.task.status().is_none())
        };
        let mut last = None;
        for record in tables.tasks.range(bounds).rev().map(|(_, row)| &row.record).filter(is_ours) {
            if found.records.len() == filter.limit as usize || found.examined == filter.examine {
                found.next = last;
                break;
            }
            found.examined += 1;
            last = Some(record.id);
            let Record { tool, identity: Identity { resource, target, .. }, task, .. } = record;
            if filter.admits(tool, resource, target, task.outward_status()) {
                found.records.push(record.clone());
            }
        }
        now(found)
    }

    fn count_tasks(&self, filter: TaskFilter) -> Stored<'_, StatusCounts> {
        let (first, end) = filter.ids();
        let is_in_time =
            |record: &Record| first.is_none_or(|first| record.id >= first) && end.is_none_or(|end| record.id < end);
        let is_one = |record: &Record| {
            filter.application.as_ref().is_none_or(|application| record.identity.application == *application)
                && filter.tool.as_ref().is_none_or(|tool| record.tool == *tool)
                && filter.prefix.as_ref().is_none_or(|prefix| record.identity.target.starts_with(prefix))
        };
        let (tables, examine) = (self.lock(), filter.examine as usize);
        let mut counts = StatusCounts::default();
        for (count, status) in counts.iter_mut().zip(TaskStatus::ALL) {
            let of_status = tables.tasks.values().rev().map(|row| &row.record);
            let of_status = of_status.filter(|record| is_in_time(record) && record.task.outward_status() == *status);
            let examined: Vec<_> = of_status.take(examine).collect();
            count.count = examined.iter().filter(|record| is_one(record)).count() as u64;
            count.is_cut = examined.len() == examine;
        }
        now(counts)
    }

    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        let RefundFilter { application, since, until, before, limit } = filter;
        let tables = self.lock();
        let selected = tables.ledger.iter().rev().filter(|row| {
            row.kind == "refund"
                && application.as_ref().is_none_or(|application| row.application == *application)
                && since.is_none_or(|since| row.at >= since)
                && until.is_none_or(|until| row.at < until)
                && before.is_none_or(|before| row.number < before)
        });
        now(selected.take(limit as usize).cloned().collect())
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        now(self.lock().tasks.get(&id).map(|row| row.timeline.clone()).unwrap_or_default())
    }

    fn entries(&self, id: TaskId) -> Stored<'_, Vec<LedgerRow>> {
        now(self.lock().ledger.iter().filter(|row| row.id == id).cloned().collect())
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        let tables = self.lock();
        let rows = tables.ledger.iter().filter(|row| row.number > after).take(limit as usize);
        now(rows.cloned().collect())
    }

    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        let mut tables = self.lock();
        let ended = tables.tasks.values().filter(|row| row.record.task.status().is_some());
        let ended = ended.filter_map(|row| Some((row.record.task.finished_at?, row.record.id)));
        let mut old: Vec<(Timestamp, TaskId)> = ended.filter(|(at, _)| *at < before).collect();
        old.sort_unstable();
        old.truncate(limit as usize);
        for (_, id) in &old {
            tables.tasks.remove(id);
        }
        let over = tables.cool_downs.iter().filter(|(_, cool_down)| cool_down.until < before);
        let mut over: Vec<_> = over.map(|((resource, target), _)| (target.clone(), resource.clone())).collect();
        over.sort_unstable();
        for (target, resource) in over.into_iter().take(limit as usize) {
            tables.cool_downs.remove(&(resource, target));
        }
        now(u32::try_from(old.len()).unwrap_or(u32::MAX))
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        ready(self.write(|tables| tables.check_keys_free(&marks).map(|()| tables.mark(marks))))
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        let tables = self.lock();
        let above = tables
            .marks
            .keys()
            .filter(|(known, key)| *known == space && after.as_ref().is_none_or(|after| key > after));
        now(above.map(|(_, key)| key.clone()).take(limit as usize).collect())
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        let mut tables = self.lock();
        let over = tables.marks.iter().filter(|(_, until)| **until < now);
        let mut over: Vec<_> = over.map(|(mark, until)| (*until, mark.clone())).collect();
        over.sort_unstable();
        over.truncate(limit as usize);
        for (_, mark) in &over {
            tables.marks.remove(mark);
        }
        self::now(u32::try_from(over.len()).unwrap_or(u32::MAX))
    }

    fn outlives_machine(&self) -> bool {
        self.epoch > 0
    }
}

impl AuditStore for Memory {
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>> {
        now(self.lock().anchor)
    }

    fn put_audit_anchor(&self, anchor: Anchor) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            tables.anchor = Some(anchor);
            Ok(())
        }))
    }
}

impl DirectoryStore for Memory {
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        let tables = self.lock();
        now((tables.applications.clone(), tables.keys.values().cloned().collect()))
    }

    fn put_application(&self, application: ApplicationRow, acts: Vec<Act>) -> Stored<'_, ()> {
        ready(self.write(|tables| tables.put_application(application, acts)))
    }

    fn latest_time(&self) -> Stored<'_, Option<Timestamp>> {
        now(self.lock().seen)
    }

    fn see(&self, now: Timestamp) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            tables.seen = Some(now);
            Ok(())
        }))
    }

    fn put_application_with_key(&self, application: ApplicationRow, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            tables.put_application(application, acts)?;
            tables.put_key(key, Vec::new())
        }))
    }

    fn put_key(&self, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()> {
        ready(self.write(|tables| tables.put_key(key, acts)))
    }

    fn put_requests(&self, requests: Vec<RequestCount>, since: u64) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            let rows = requests.into_iter().map(|count| ((count.second, count.application), count.requests));
            tables.requests.extend(rows);
            tables.requests.retain(|(second, _), _| *second >= since);
            Ok(())
        }))
    }

    fn requests(&self) -> Stored<'_, Vec<RequestCount>> {
        let count = |((second, application), requests): (&(u64, String), &u32)| RequestCount {
            application: application.clone(),
            second: *second,
            requests: *requests,
        };
        now(self.lock().requests.iter().map(count).collect())
    }

    fn put_uses(&self, uses: Vec<SecretUse>) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            for one in uses {
                let key = (one.key.clone(), one.verifier);
                if tables.uses.get(&key).is_none_or(|known| known.at < one.at) {
                    tables.uses.insert(key, one);
                }
            }
            Ok(())
        }))
    }

    fn uses(&self, keys: Option<Vec<String>>) -> Stored<'_, Vec<SecretUse>> {
        let is_of = |one: &&SecretUse| keys.as_ref().is_none_or(|keys| keys.contains(&one.key));
        now(self.lock().uses.values().filter(is_of).cloned().collect())
    }

    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            tables.put_acts(acts);
            Ok(())
        }))
    }

    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>> {
        let ActFilter { id, operator, object, command, since, until, before, limit } = filter;
        let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        let begins = |with: &str, found: &str| found == with || found.starts_with(&format!("{with} "));
        let selected = |stored: &StoredAct| {
            let StoredAct { number, act, .. } = stored;
            is(&id, Some(&act.id))
                && is(&operator, Some(&act.operator.name))
                && is(&object, act.object.as_deref())
                && command.as_ref().is_none_or(|command| begins(command, &act.command))
                && since.is_none_or(|since| act.at >= since)
                && until.is_none_or(|until| act.at < until)
                && before.is_none_or(|before| *number < before)
        };
        now(self.lock().number_acts().rev().filter(selected).take(limit as usize).collect())
    }

    fn acts_of_trail(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>> {
        now(self.lock().number_acts().filter(|stored| stored.number > after).take(limit as usize).collect())
    }
}

impl Recovery for Memory {}

fn key_in_flight(identity: &Identity) -> Option<(String, String)> {
    identity.key.clone().map(|key| (identity.application.clone(), key))
}

fn target_lock(identity: &Identity) -> (String, String) {
    (identity.resource.clone(), identity.target.clone())
}

impl Tables {
    fn put_acts(&mut self, acts: Vec<Act>) {
        for act in acts {
            if self.acts.iter().all(|known| known.id != act.id) {
                self.acts.push(act);
            }
        }
    }

    fn number_acts(&self) -> impl DoubleEndedIterator<Item = StoredAct> {
        let numbered = self.acts.iter().enumerate();
        numbered.map(|(n, act)| StoredAct { number: n as u64 + 1, act: act.clone() })
    }

    fn open_tasks(&self, after: Option<TaskId>, limit: u32) -> Vec<OpenTask> {
        let open = |row: &Row| {
            let Record { id, identity, tool, sealed, task, .. } = row.record.clone();
            OpenTask { id, identity, tool, sealed, wake_at: task.wake_at }
        };
        let above = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.tasks.range((above, Bound::Unbounded)).map(|(_, row)| row);
        rows.filter(|row| row.record.task.status().is_none()).take(limit as usize).map(open).collect()
    }

    fn find_duplicate(&self, asked: &Identity) -> Option<WriteAnswer> {
        let key = key_in_flight(asked);
        let id = *key.map_or_else(|| self.locks.get(&target_lock(asked)), |key| self.keys_in_flight.get(&key))?;
        let Record { identity, tool, .. } = &self.tasks.get(&id)?.record;
        let (made, matches) = (asked.key.is_some() || identity == asked, identity.fingerprint == asked.fingerprint);
        made.then(|| answer_repeat(id, tool.clone(), identity.target.clone(), matches))
    }

    fn check_keys_free(&self, marks: &[DeduplicationKey]) -> Result<(), StoreError> {
        for (n, DeduplicationKey { space, key, until: _ }) in marks.iter().enumerate() {
            let twice = marks.iter().take(n).any(|other| (other.space, &other.key) == (*space, key));
            if twice || self.marks.contains_key(&(*space, key.clone())) {
                return Err(StoreError::Conflict(format!("a deduplication key of `{space}` exists already")));
            }
        }
        Ok(())
    }

    fn mark(&mut self, marks: Vec<DeduplicationKey>) {
        self.marks.extend(marks.into_iter().map(|DeduplicationKey { space, key, until }| ((space, key), until)));
    }

    fn accept(&mut self, new: Record, marks: Vec<DeduplicationKey>) -> Result<Acceptance, StoreError> {
        self.check_keys_free(&marks)?;
        let accepted = self.take_on(new)?;
        self.mark(marks);
        Ok(accepted)
    }

    fn take_on(&mut self, mut new: Record) -> Result<Acceptance, StoreError> {
        let (id, at) = (new.id, new.created_at);
        if let Some(hit) = self.find_duplicate(&new.identity) {
            return Ok(Acceptance::Hit(hit));
        }
        let held = target_lock(&new.identity);
        if let Some(id) = self.locks.get(&held) {
            let gone = || StoreError::Corrupt(format!("a target lock is held by {id}, which does not exist"));
            let Row { record, .. } = self.tasks.get(id).ok_or_else(gone)?;
            let (application, deadline_at) = (record.identity.application.clone(), record.task.deadline_at);
            return Ok(Acceptance::Busy { id: *id, application, deadline_at });
        }
        if self.tasks.contains_key(&id) {
            return Err(StoreError::Conflict(format!("there is a task {id} already")));
        }
        let start = self.cool_downs.get(&held).map_or(at, |cool_down| cool_down.start(at, at));
        new.task = Task::new_delayed(new.task.policy, at, start);
        self.locks.insert(held, id);
        self.keys_in_flight.extend(key_in_flight(&new.identity).map(|key| (key, id)));
        let timeline = vec![TimelineEvent { at, phase: new.task.phase.as_str(), what: "accepted".to_owned().into() }];
        self.tasks.insert(id, Row { record: new, timeline });
        Ok(Acceptance::Fresh { wake_at: start })
    }

    fn advance(&mut self, advance: Advance) -> Result<Advanced, StoreError> {
        let Advance { id, version, task, entries, what, at } = advance;
        let Some(row) = self.tasks.get_mut(&id) else { return Ok(Advanced::Fenced) };
        if row.record.version != version || row.record.task.status().is_some() {
            return Ok(Advanced::Fenced);
        }
        let mut kinds = HashSet::new();
        for kind in entries.iter().filter_map(|entry| entry.kind()) {
            if self.entered.contains(&(id, kind)) || !kinds.insert(kind) {
                return Err(StoreError::Conflict(format!("the ledger has a {kind} of {id} already")));
            }
        }
        row.timeline.push(TimelineEvent { at, phase: task.phase.as_str(), what });
        row.record.version += 1;
        row.record.task = task;
        if let Phase::Done(_) = row.record.task.phase {
            row.record.sealed = None;
            key_in_flight(&row.record.identity).and_then(|key| self.keys_in_flight.remove(&key));
            (row.record.identity.key, row.record.identity.fingerprint) = Default::default();
            self.locks.remove(&target_lock(&row.record.identity));
        }
        for entry in entries {
            if let Entry::Release(until) = entry {
                self.cool_downs.remove(&target_lock(&row.record.identity));
                self.cool_downs
                    .extend((until > at).then(|| (target_lock(&row.record.identity), CoolDown { since: at, until })));
            }
            if entry == Entry::Refund {
                row.record.refunded_at = Some(at);
            }
            if let Some(kind) = entry.kind() {
                let (number, application) = (self.ledger.len() as u64 + 1, row.record.identity.application.clone());
                self.entered.insert((id, kind));
                self.ledger.push(LedgerRow { number, id, application, kind, at });
            }
        }
        Ok(Advanced::Written)
    }
}
