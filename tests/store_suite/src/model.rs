//! The same operations on a store and on the store in memory. Every answer of both is compared.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use toolwarrant_memory::Memory;
use toolwarrant_tasks::store::LedgerRow;

/// Numbers select among a few names, so that operations meet. `Reopen` ends the process, in order
/// or with `kill -9`, and opens the files that it left.
#[derive(Clone, Debug)]
enum Operation {
    Accept { application: u8, key: Option<u8>, target: u8, resource: u8, fingerprint: u8, marks: Vec<u8> },
    Mark { keys: Vec<u8>, until: u64 },
    PurgeMarks { limit: u32 },
    Advance { task: u8, stale: bool, step: usize },
    Purge { age: u64, limit: u32 },
    Repeat { application: u8, key: Option<u8>, target: u8, fingerprint: u8 },
    Task(u8),
    Tasks { whose: Option<u8>, target: Option<u8>, before: Option<u8>, limit: u32 },
    ListOpen { limit: u32 },
    Ledger { after: u64, limit: u32 },
    Directory,
    PutApplication { id: u8, name: u8, grants: Option<Vec<(bool, Option<u8>)>> },
    PutKey { id: u8, application: u8, secrets: Vec<u8> },
    Reopen { killed: bool },
}

/// Returns also the milliseconds by which the clock moves before it. The clock may go back.
fn operation() -> impl Strategy<Value = (i64, Operation)> {
    use Operation::{Accept, Advance, Directory, Ledger, ListOpen, Purge, PutApplication, PutKey, Reopen, Repeat};
    use proptest::option::of;
    let marks = |most| proptest::collection::vec(0..9_u8, 0..most);
    let accept = (0..2_u8, of(0..3_u8), 0..3_u8, 0..2_u8, 0..2_u8, marks(2));
    let grants = of(proptest::collection::vec((any::<bool>(), of(0..4_u8)), 0..4));
    let clock = prop_oneof![9 => 0..9_000_i64, 1 => -90_000..90_000_i64];
    let operation = prop_oneof![
        6 => accept.prop_map(|(application, key, target, resource, fingerprint, marks)| {
            Accept { application, key, target, resource, fingerprint, marks }
        }),
        1 => (marks(4), 0..60_000_u64).prop_map(|(keys, until)| Operation::Mark { keys, until }),
        1 => (0..4_u32).prop_map(|limit| Operation::PurgeMarks { limit }),
        9 => (0..8_u8, proptest::bool::weighted(0.1), 0..STEPS.len())
            .prop_map(|(task, stale, step)| Advance { task, stale, step }),
        1 => (0..60_000_u64, 0..4_u32).prop_map(|(age, limit)| Purge { age, limit }),
        1 => (0..3_u8, 0..3_u8, grants).prop_map(|(id, name, grants)| PutApplication { id, name, grants }),
        1 => (0..3_u8, 0..3_u8, proptest::collection::vec(0..4_u8, 0..4))
            .prop_map(|(id, application, secrets)| PutKey { id, application, secrets }),
        1 => (0..2_u8, of(0..3_u8), 0..3_u8, 0..2_u8)
            .prop_map(|(application, key, target, fingerprint)| Repeat { application, key, target, fingerprint }),
        1 => (0..8_u8).prop_map(Operation::Task),
        1 => (of(0..2_u8), of(0..3_u8), of(0..24_u8), 0..9_u32)
            .prop_map(|(whose, target, before, limit)| Operation::Tasks { whose, target, before, limit }),
        1 => (0..9_u32).prop_map(|limit| ListOpen { limit }),
        1 => (0..9_u64, 0..9_u32).prop_map(|(after, limit)| Ledger { after, limit }),
        1 => Just(Directory),
        1 => any::<bool>().prop_map(|killed| Reopen { killed }),
    ];
    (clock, operation)
}

/// Phases that a step can lead to, with the entries of that step. An end includes a release.
const STEPS: [(Phase, &[Entry]); 8] = [
    (Phase::Baseline, &[]),
    (Phase::Sending, &[Entry::Charge]),
    (Phase::Verifying, &[]),
    (Phase::Ready, &[Entry::Charge, Entry::Charge]),
    (Phase::Done(TaskStatus::Success), &[]),
    (Phase::Done(TaskStatus::Failed), &[Entry::ReverseCharge]),
    (Phase::Done(TaskStatus::FailedSilent), &[Entry::Refund]),
    (Phase::Done(TaskStatus::Timeout), &[Entry::Charge]),
];

pub trait Reopened: Sized {
    /// The store deletes old tasks one by one.
    const DELETES_ROWS: bool;

    /// The store has a clock of its own, which limits no wait when that of the caller goes back.
    const HAS_CLOCK: bool;

    fn open() -> impl Future<Output = Self>;

    fn store(&self) -> &dyn Store;

    /// Ends the process, in order or killed, and opens the store for the next one.
    fn reopen(self, killed: bool) -> impl Future<Output = Self>;
}

pub fn compare<R: Reopened>(cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let operations = proptest::collection::vec(operation(), 1..40);
    let outcome = runner.run(&operations, |operations| {
        runtime.block_on(async {
            let (mut opened, memory, mut at) = (R::open().await, Memory::default(), AT);
            for (n, (moves, operation)) in (0..).zip(operations) {
                at = Timestamp(at.0.saturating_add_signed(if R::HAS_CLOCK { moves.max(0) } else { moves }));
                match operation {
                    Operation::Purge { .. } if !R::DELETES_ROWS => continue,
                    Operation::Reopen { killed } => opened = opened.reopen(killed).await,
                    _ => {}
                }
                let stored = perform(opened.store(), n, at, &operation).await;
                prop_assert_eq!(stored, perform(&memory, n, at, &operation).await);
            }
            prop_assert_eq!(everything(opened.store()).await, everything(&memory).await);
            Ok(())
        })
    });
    outcome.unwrap();
}

fn identity(application: u8, key: Option<u8>, resource: u8, target: u8, fingerprint: u8) -> Identity {
    Identity {
        application: format!("a{application}"),
        key: key.map(|key| format!("k{key}")),
        fingerprint: [fingerprint; 32],
        resource: format!("r{resource}"),
        target: format!("t{target}"),
    }
}

fn mark(key: u8, until: Timestamp) -> DeduplicationKey {
    DeduplicationKey { space: "nonce", key: [key].into(), until }
}

/// Grants everything, or all or some targets of two resources.
fn grants_of(grants: Option<Vec<(bool, Option<u8>)>>) -> Grants {
    let Some(grants) = grants else { return Grants::everything() };
    grants.into_iter().fold(Grants::nothing(), |grants, (resource, target)| {
        let (resource, target) = (format!("r{}", u8::from(resource)), target.map(|target| format!("t{target}")));
        let mut granted = grants.of(&resource).cloned().unwrap_or_default();
        match target {
            // The same letter also makes a prefix and, once that is there, an exception.
            Some(target) if granted.covers(&target) => granted.remove(&target),
            Some(target) if target.ends_with('1') => granted.add_prefix(&target),
            Some(target) => granted.add(&target),
            None => granted = Granted::all(),
        }
        grants.with(&resource, granted)
    })
}

/// Returns text; for an error only the fact that it is one.
async fn perform(store: &dyn Store, n: u64, at: Timestamp, operation: &Operation) -> String {
    let number = |task: u8| id(task.into());
    match operation.clone() {
        Operation::Accept { application, key, target, resource, fingerprint, marks } => {
            let identity = identity(application, key, resource, target, fingerprint);
            let marks = marks.into_iter().map(|key| mark(key, at)).collect();
            let answer = store.accept(Record { identity, ..at_time(new(n.into(), "", ""), at) }, marks);
            format!("{:?}", answer.await.map_err(drop))
        }
        Operation::Mark { keys, until } => {
            let until = at.plus(Duration::from_millis(until));
            let marks = keys.into_iter().map(|key| mark(key, until)).collect();
            format!("{:?}", store.mark(marks).await.map_err(drop))
        }
        Operation::PurgeMarks { limit } => format!("{:?}", store.purge_marks(at, limit).await),
        Operation::Advance { task, stale, step } => {
            let record = store.task(number(task)).await.unwrap();
            let (version, task_then) =
                record.map_or((0, Task::new(policy(), at)), |record| (record.version, record.task));
            let (phase, entries) = STEPS[step];
            let (mut entries, done) = (entries.to_vec(), matches!(phase, Phase::Done(_)));
            entries.extend(done.then(|| Entry::Release(at.plus(Duration::from_secs(10)))));
            let next = Task { phase, finished_at: done.then_some(at), wake_at: (!done).then_some(at), ..task_then };
            let version = if stale { version.wrapping_sub(1) } else { version };
            let advance = Advance { id: number(task), version, task: next, entries, what: format!("{n}").into(), at };
            format!("{:?}", store.advance(advance).await.map_err(drop))
        }
        Operation::Purge { age, limit } => {
            format!("{:?}", store.purge(at.minus(Duration::from_millis(age)), limit).await.map_err(drop))
        }
        Operation::Repeat { application, key, target, fingerprint } => {
            let identity = identity(application, key, 0, target, fingerprint);
            format!("{:?}", store.repeat(identity).await.map_err(drop))
        }
        Operation::Task(task) => {
            let (task, timeline) = (store.task(number(task)).await, store.timeline(number(task)).await);
            format!("{:?}", (task.map_err(drop), timeline.map_err(drop)))
        }
        Operation::Tasks { whose, target, before, limit } => {
            let (application, target) = (whose.map(|n| format!("a{n}")), target.map(|n| format!("t{n}")));
            let (before, examine) = (before.map(number), 5);
            let filter = TaskFilter { application, target, before, limit, examine, ..TaskFilter::default() };
            format!("{:?}", store.tasks(filter).await.map_err(drop))
        }
        Operation::ListOpen { limit } => {
            let first = store.in_flight(None, limit).await.unwrap();
            let rest = store.in_flight(first.last().map(|task| task.id), 99).await.unwrap();
            format!("{first:?} {rest:?}")
        }
        Operation::Ledger { after, limit } => {
            // Numbers differ between stores, so the place of a row selects it.
            let all = store.ledger(0, 999).await.unwrap();
            let after = usize::try_from(after).ok().and_then(|after| all.get(after)).map_or(0, |row| row.number);
            format!("{:?}", store.ledger(after, limit).await.map(without_numbers).map_err(drop))
        }
        Operation::Directory => format!("{:?}", store.directory().await.map_err(drop)),
        Operation::Reopen { .. } => String::new(),
        Operation::PutApplication { id, name, grants } => {
            let row =
                ApplicationRow { grants: grants_of(grants), ..application(&format!("a{id}"), &format!("n{name}")) };
            format!("{:?}", store.put_application(row, vec![]).await.map(drop).map_err(drop))
        }
        Operation::PutKey { id, application, secrets } => {
            let key = key(&format!("k{id}"), &format!("a{application}"), &secrets);
            let row = KeyRow { created_at: at, expires_at: Some(at), ..key };
            format!("{:?}", store.put_key(row, vec![]).await.map(drop).map_err(drop))
        }
    }
}

fn without_numbers(rows: Vec<LedgerRow>) -> Vec<LedgerRow> {
    rows.into_iter().map(|row| LedgerRow { number: 0, ..row }).collect()
}

pub async fn everything(store: &dyn Store) -> String {
    let ledger = store.ledger(0, 999).await.map(without_numbers);
    let mut all = vec![format!("{:?}", (ledger, store.in_flight(None, 999).await))];
    all.push(format!("{:?}", store.directory().await));
    for n in 0..40 {
        all.push(format!("{:?}", (store.task(id(n)).await, store.timeline(id(n)).await)));
    }
    for (application, n) in (0..2).flat_map(|application| (0..3).map(move |n| (application, n))) {
        for (key, fingerprint) in [(Some(n), 0), (None, 0), (None, 1)] {
            all.push(format!("{:?}", store.repeat(identity(application, key, 0, n, fingerprint)).await));
        }
    }
    all.join("\n")
}
