//! The requirements on every store, as cases that [`store_suite`] turns into
//! tests. [`model`] compares a store with the store in memory, operation by operation.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod acts;
mod deduplication_keys;
mod directory;
mod files;
mod lists;
pub mod model;
mod races;
mod rules;

pub use acts::*;
pub use deduplication_keys::*;
pub use directory::*;
pub use files::*;
pub use lists::*;
pub use races::*;
pub use rules::*;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::store::{ApplicationRow, KeyRow, Labels, RequestCount, SecretRow, SecretUse, StoreError};
use toolwarrant_store::Store;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, CallFacts, DeduplicationKey, Identity, OpenTask, Record, RefundFilter, TaskFilter,
    TaskRows, WriteAnswer, answer_repeat,
};
use toolwarrant_tasks::task::{Phase, Readings, Task, TaskId, TaskPolicy, TaskStatus, UpstreamAnswer};

/// Makes a test of each case. `open` is the path of an async function that returns the store, and a
/// value that keeps it open; or `None` if the machine lacks what the store needs.
#[macro_export]
macro_rules! store_suite {
    ($open:path) => {
        $crate::store_cases! { $open:
            a_repeated_call_finds_the_task_in_flight_and_its_fingerprint
            a_call_without_a_key_is_identified_by_its_fingerprint
            a_key_is_free_again_after_the_end
            the_same_key_of_another_application_is_a_different_key
            a_busy_target_names_its_task_and_the_deadline
            the_same_id_of_another_resource_is_a_different_target
            a_task_starts_when_the_target_has_cooled_down
            a_release_in_the_past_does_not_delay_the_next_task
            after_a_clock_was_set_back_a_target_cools_down_at_most_a_minute_longer
            a_task_with_a_used_id_is_refused_without_a_change
            a_step_from_another_version_or_of_an_unknown_task_is_fenced
            no_end_is_ever_written_over
            a_task_is_kept_as_it_was_written
            a_refund_the_end_the_release_and_the_wiping_are_one_step
            a_duplicate_ledger_entry_stops_the_whole_step
            a_timeline_has_every_phase_in_order
            the_ledger_is_read_in_pages
            tasks_are_found_by_each_property_and_say_how_many_were_examined
            refunds_are_listed_newest_first_by_application_and_time
            tasks_in_flight_are_read_in_pages_in_the_order_of_their_ids
            only_cool_downs_that_are_long_over_are_purged
            stored_data_is_counted_with_its_age
            the_recorded_anchor_of_the_audit_is_read_unchanged
            files_are_read_back_and_replaced
            marks_are_written_with_their_task_or_nothing_is
            marks_of_a_call_that_is_answered_without_a_task_are_written_too
            a_mark_is_made_once_and_again_after_it_was_purged
            an_application_is_read_unchanged
            a_name_belongs_to_one_application
            a_key_is_rotated_and_revoked_in_place
            a_key_without_an_application_or_with_too_many_secrets_is_refused
            an_application_has_labels_and_is_suspended_and_deleted
            the_last_use_of_a_secret_is_the_latest_one
            the_requests_of_a_second_are_replaced_and_old_seconds_are_forgotten
            an_act_is_stored_with_its_change_or_not_at_all
            acts_are_found_newest_first_by_each_filter_and_in_pages
            acts_after_a_number_are_read_oldest_first
            what_goes_its_way_breaks_no_rule
            each_broken_rule_names_its_task
            of_many_simultaneous_equal_calls_one_is_accepted_and_all_get_its_task
            of_many_simultaneous_writes_on_one_target_one_is_accepted_and_the_others_name_it
            a_thousand_writes_on_different_targets_are_all_accepted_and_can_be_read_once_answered
            of_many_steps_from_one_version_one_is_written
            of_many_calls_while_a_task_ends_at_most_one_gets_its_key_or_target
            of_many_simultaneous_applications_with_one_name_one_is_created
            of_many_writes_with_one_mark_at_once_one_is_taken_on
        }
    };
}

/// For a store that deletes old tasks one by one.
#[macro_export]
macro_rules! store_row_suite {
    ($open:path) => {
        $crate::store_cases! { $open:
            only_old_ended_tasks_are_purged_earliest_first_and_the_ledger_never
            a_target_continues_to_cool_down_when_its_task_is_purged
            what_is_left_of_purged_tasks_breaks_no_rule
            a_clock_that_goes_back_between_writes_does_not_change_the_order
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! store_cases {
    ($open:path: $($case:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let Some((_open, store)) = Option::from($open().await) else { return };
            $crate::$case(store).await;
        })*
    };
}

pub async fn a_repeated_call_finds_the_task_in_flight_and_its_fingerprint(store: Arc<dyn Store>) {
    assert_eq!(repeat(&store, "app", "k").await, None);
    let task = alike(new(1, "k", "t"), |task| task.fingerprint = [7; 32]);
    assert_eq!(store.accept(task, vec![]).await.unwrap(), Acceptance::Fresh { wake_at: AT });
    let found = answer_repeat(id(1), "print".to_owned(), "t".to_owned(), false);
    assert_eq!(repeat(&store, "app", "k").await, Some(found.clone()));
    assert_eq!(repeat(&store, "app", "K").await, None);
    // Another target is free; the attempt leaves nothing behind.
    for target in ["t", "u"] {
        assert_eq!(store.accept(new(2, "k", target), vec![]).await.unwrap(), Acceptance::Hit(found.clone()));
    }
    assert_eq!(store.task(id(2)).await.unwrap(), None);
    assert_eq!(store.accept(new(3, "other", "u"), vec![]).await.unwrap(), Acceptance::Fresh { wake_at: AT });
}

pub async fn a_call_without_a_key_is_identified_by_its_fingerprint(store: Arc<dyn Store>) {
    let call = |number, fingerprint, application: &str| {
        let of =
            |call: &mut Identity| (call.fingerprint, call.application) = ([fingerprint; 32], application.to_owned());
        alike(without_key(number, "t"), of)
    };
    for round in 0..2 {
        assert_eq!(store.repeat(call(1, 7, "app").identity).await.unwrap(), None);
        let first = Record { id: id(1 + round), ..call(0, 7, "app") };
        accept(&store, first.clone()).await;
        let hit = answer_repeat(first.id, "print".to_owned(), "t".to_owned(), true);
        assert_eq!(store.repeat(first.identity.clone()).await.unwrap(), Some(hit.clone()));
        assert_eq!(store.accept(Record { id: id(9), ..first.clone() }, vec![]).await.unwrap(), Acceptance::Hit(hit));
        // These are not duplicates: another request, the call of another application, and the same
        // call with a key.
        let with_key = alike(first, |call| call.key = Some("k".to_owned()));
        for other in [call(9, 8, "app"), call(9, 7, "other"), Record { id: id(9), ..with_key }] {
            assert_eq!(store.repeat(other.identity.clone()).await.unwrap(), None);
            let answer = store.accept(other, vec![]).await.unwrap();
            assert!(matches!(answer, Acceptance::Busy { .. }), "{answer:?}");
        }
        end(&store, 1 + round, TaskStatus::Success, AT).await;
    }
    // A call without a key does not find a task with a key.
    accept(&store, alike(call(3, 7, "app"), |call| call.key = Some("k".to_owned()))).await;
    assert_eq!(store.repeat(call(9, 7, "app").identity).await.unwrap(), None);
    assert!(matches!(store.accept(call(9, 7, "app"), vec![]).await.unwrap(), Acceptance::Busy { .. }));
}

pub async fn a_key_is_free_again_after_the_end(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    end(&store, 1, TaskStatus::Success, AT).await;
    assert_eq!(repeat(&store, "app", "k").await, None);
    accept(&store, new(2, "k", "t")).await;
    assert_eq!(repeat(&store, "app", "k").await.unwrap().task_id, id(2).to_string());
    assert_eq!(store.task(id(1)).await.unwrap().unwrap().task.status(), Some(TaskStatus::Success));
}

pub async fn the_same_key_of_another_application_is_a_different_key(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    accept(&store, alike(new(2, "k", "u"), |task| task.application = "other".to_owned())).await;
    assert_eq!(repeat(&store, "app", "k").await.unwrap().task_id, id(1).to_string());
    assert_eq!(repeat(&store, "other", "k").await.unwrap().task_id, id(2).to_string());
}

pub async fn a_busy_target_names_its_task_and_the_deadline(store: Arc<dyn Store>) {
    accept(&store, alike(new(1, "k", "t"), |task| task.application = "owner".to_owned())).await;
    let (application, deadline_at) = ("owner".to_owned(), AT.plus(Duration::from_secs(60)));
    let busy = Acceptance::Busy { id: id(1), application, deadline_at };
    assert_eq!(store.accept(new(2, "k", "t"), vec![]).await.unwrap(), busy);
    assert_eq!(store.task(id(2)).await.unwrap(), None);
    assert_eq!(repeat(&store, "app", "k").await, None, "a refused call holds no key");
}

pub async fn the_same_id_of_another_resource_is_a_different_target(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    accept(&store, alike(new(2, "l", "t"), |task| task.resource = "tray".to_owned())).await;
}

pub async fn a_task_starts_when_the_target_has_cooled_down(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let settled = AT.plus(Duration::from_secs(30));
    end(&store, 1, TaskStatus::Timeout, settled).await;
    assert_eq!(store.accept(new(2, "k", "t"), vec![]).await.unwrap(), Acceptance::Fresh { wake_at: settled });
    let Record { created_at, task, .. } = store.task(id(2)).await.unwrap().unwrap();
    assert_eq!((created_at, task.not_before, task.wake_at), (AT, settled, Some(settled)));
    assert_eq!((task.start_delay_ms, task.deadline_at), (30_000, settled.plus(Duration::from_secs(60))));
}

pub async fn a_release_in_the_past_does_not_delay_the_next_task(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    end(&store, 1, TaskStatus::Success, AT.minus(Duration::from_secs(1))).await;
    assert_eq!(store.accept(new(2, "k", "t"), vec![]).await.unwrap(), Acceptance::Fresh { wake_at: AT });
}

pub async fn after_a_clock_was_set_back_a_target_cools_down_at_most_a_minute_longer(store: Arc<dyn Store>) {
    // Some stores have a clock of their own, which is behind that.
    let at = Timestamp(4_102_444_800_000);
    let new = |number| at_time(new(number, "k", "t"), at);
    accept(&store, new(1)).await;
    let (tomorrow, settle) = (at.plus(Duration::from_hours(24)), Duration::from_secs(9));
    end_at(&store, 1, TaskStatus::Success, tomorrow.plus(settle), tomorrow).await;
    let wake_at = at.plus(settle).plus(Duration::from_mins(1));
    assert_eq!(store.accept(new(2), vec![]).await.unwrap(), Acceptance::Fresh { wake_at });
    // The next release corrects it.
    end(&store, 2, TaskStatus::Success, at).await;
    assert_eq!(store.accept(new(3), vec![]).await.unwrap(), Acceptance::Fresh { wake_at: at });
}

pub async fn a_task_with_a_used_id_is_refused_without_a_change(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let before = store.task(id(1)).await.unwrap();
    store.accept(new(1, "l", "u"), vec![]).await.unwrap_err();
    assert_eq!(store.task(id(1)).await.unwrap(), before);
    assert_eq!(repeat(&store, "app", "l").await, None);
    accept(&store, new(2, "l", "u")).await;
}

pub async fn a_step_from_another_version_or_of_an_unknown_task_is_fenced(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let step = |version| {
        let mut task = Task::new(policy(), AT);
        task.phase = Phase::Sending;
        Advance { id: id(1), version, task, entries: vec![Entry::Charge], what: "sending".to_owned().into(), at: AT }
    };
    assert_eq!(store.advance(step(1)).await.unwrap(), Advanced::Fenced);
    assert_eq!(store.advance(Advance { id: id(2), ..step(0) }).await.unwrap(), Advanced::Fenced);
    assert_eq!(store.ledger(0, 10).await.unwrap(), []);
    assert_eq!(store.advance(step(0)).await.unwrap(), Advanced::Written);
    let before = (store.task(id(1)).await.unwrap(), store.timeline(id(1)).await.unwrap());
    for version in [0, 2, u32::MAX] {
        assert_eq!(store.advance(step(version)).await.unwrap(), Advanced::Fenced);
    }
    assert_eq!((store.task(id(1)).await.unwrap(), store.timeline(id(1)).await.unwrap()), before);
}

pub async fn no_end_is_ever_written_over(store: Arc<dyn Store>) {
    for (number, status) in (1..).zip(TaskStatus::ENDS.iter().copied()) {
        let target = format!("t{number}");
        accept(&store, new(number, &target, &target)).await;
        end(&store, number, status, AT).await;
        let before = store.task(id(number)).await.unwrap().unwrap();
        let again =
            TaskStatus::ENDS.iter().copied().map(Phase::Done).chain([Phase::Ready, Phase::Sending, Phase::Verifying]);
        for (phase, version) in again.flat_map(|phase| [0, 1, 2].map(|version| (phase, version))) {
            let (task, entries, what) =
                (Task { phase, ..before.task.clone() }, vec![Entry::Refund], "again".to_owned());
            let step = Advance { id: id(number), version, task, entries, what: what.into(), at: AT };
            assert_eq!(store.advance(step).await.unwrap(), Advanced::Fenced);
        }
        assert_eq!(store.task(id(number)).await.unwrap(), Some(before));
    }
    assert_eq!(store.ledger(0, 9).await.unwrap(), []);
}

pub async fn a_task_is_kept_as_it_was_written(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let mut record = new(1, "k", "t");
    assert_eq!(store.task(id(1)).await.unwrap().as_ref(), Some(&record));
    record.task = Task {
        phase: Phase::Polling,
        wake_at: None,
        attempts: 2,
        baseline: Some("\"\u{0}ü\n".to_owned()),
        operation: Some(String::new()),
        outcome: Some((UpstreamAnswer::None, Timestamp(AT.0 + 1))),
        settled: Readings { absent: 1, unreadable: 2, not_absent: 3 },
        obstacle: Some("nothing can be checked: it has no \"eyes\"".to_owned()),
        ..record.task
    };
    let (what, task) = ("polling".to_owned(), record.task.clone());
    let step = Advance { id: id(1), version: 0, task, entries: vec![], what: what.into(), at: AT };
    assert_eq!(store.advance(step).await.unwrap(), Advanced::Written);
    record.version = 1;
    assert_eq!(store.task(id(1)).await.unwrap().as_ref(), Some(&record));
    let left: Vec<_> = store.in_flight(None, 9).await.unwrap().iter().map(|task| (task.id, task.wake_at)).collect();
    assert_eq!(left, [(id(1), None)]);
}

pub async fn a_clock_that_goes_back_between_writes_does_not_change_the_order(store: Arc<dyn Store>) {
    let ago = |minutes| AT.minus(Duration::from_mins(minutes));
    accept(&store, new(1, "k", "t")).await;
    for (phase, minutes) in [(Phase::Baseline, 2), (Phase::Sending, 9), (Phase::Verifying, 5)] {
        change(&store, id(1), ago(minutes), vec![], |task| Task { phase, ..task }).await.unwrap();
    }
    end_at(&store, 1, TaskStatus::Success, ago(30), ago(40)).await;
    let told: Vec<_> = store.timeline(id(1)).await.unwrap().into_iter().map(|event| event.phase).collect();
    assert_eq!(told, ["ready", "baseline", "sending", "verifying", "success"]);
    // The target is free again after the recorded time by the same clock, or after the length of
    // the cool-down.
    for (number, minutes, waits) in [(2, 50, 11), (3, 0, 0)] {
        let wake_at = ago(minutes).plus(Duration::from_mins(waits));
        let accepted = store.accept(at_time(new(number, "k", "t"), ago(minutes)), vec![]).await.unwrap();
        assert_eq!(accepted, Acceptance::Fresh { wake_at });
        end_at(&store, number, TaskStatus::Success, ago(minutes), ago(minutes)).await;
    }
    assert_eq!(store.purge(ago(39), 9).await.unwrap(), 2);
    assert_eq!(store.task(id(3)).await.unwrap().unwrap().created_at, AT);
}

pub async fn a_refund_the_end_the_release_and_the_wiping_are_one_step(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    advance(&store, 1, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    let (ended, settled) = (AT.plus(Duration::from_secs(9)), AT.plus(Duration::from_secs(30)));
    let task = store.task(id(1)).await.unwrap().unwrap().task;
    let task = finish(TaskStatus::FailedSilent, ended, task);
    let entries = vec![Entry::Refund, Entry::Release(settled)];
    change(&store, id(1), ended, entries, |_| task.clone()).await.unwrap();

    let record = store.task(id(1)).await.unwrap().unwrap();
    assert_eq!((record.task, record.version), (task, 2));
    assert_eq!((record.sealed, record.refunded_at), (None, Some(ended)));
    let rows = ledger(&store, 2).await;
    let rows: Vec<_> = rows.into_iter().map(|row| (row.id, row.kind, row.at)).collect();
    assert_eq!(rows, [(id(1), "charge", AT), (id(1), "refund", ended)]);
    assert_eq!(store.accept(new(2, "k", "t"), vec![]).await.unwrap(), Acceptance::Fresh { wake_at: settled });
}

pub async fn a_duplicate_ledger_entry_stops_the_whole_step(store: Arc<dyn Store>) {
    let release = Entry::Release(AT);
    for (n, kind) in (1_u8..).zip([Entry::Charge, Entry::ReverseCharge, Entry::Refund]) {
        let (n, rows) = (u128::from(n), usize::from(n));
        let target = format!("t{n}");
        accept(&store, new(n, &target, &target)).await;
        advance(&store, n, Phase::Ready, vec![kind]).await.unwrap();
        let before = (store.task(id(n)).await.unwrap(), store.timeline(id(n)).await.unwrap());
        let entered = ledger(&store, rows).await;
        for entries in [vec![release, kind], vec![kind, release]] {
            advance(&store, n, Phase::Done(TaskStatus::Failed), entries).await.unwrap_err();
        }
        assert_eq!((store.task(id(n)).await.unwrap(), store.timeline(id(n)).await.unwrap()), before);
        assert_eq!(store.ledger(0, 99).await.unwrap(), entered);
        let busy = store.accept(new(9, "other", &target), vec![]).await.unwrap();
        assert!(matches!(busy, Acceptance::Busy { .. }), "{busy:?}");
        assert_eq!(repeat(&store, "app", &target).await.unwrap().task_id, id(n).to_string());
    }
    // The same entry twice in one step is refused too.
    accept(&store, new(4, "k4", "t4")).await;
    advance(&store, 4, Phase::Ready, vec![Entry::Refund, Entry::Refund]).await.unwrap_err();
    let last = ledger(&store, 3).await[2].number;
    assert_eq!(store.ledger(last, 99).await.unwrap(), []);
    advance(&store, 4, Phase::Ready, vec![Entry::Refund]).await.unwrap();
    assert_eq!(ledger(&store, 4).await[3].id, id(4));
}

/// 2026-07-28T12:00:00.123Z.
pub const AT: Timestamp = Timestamp(1_785_240_000_123);

pub fn id(number: u128) -> TaskId {
    TaskId::from_bytes(number.to_be_bytes())
}

pub fn policy() -> TaskPolicy {
    TaskPolicy { probe: None, idempotent: true, settle_seconds: 10, deadline_seconds: 60 }
}

pub fn new(number: u128, key: &str, target: &str) -> Record {
    let identity = Identity {
        application: "app".to_owned(),
        key: Some(key.to_owned()),
        fingerprint: [1; 32],
        resource: "printer".to_owned(),
        target: target.to_owned(),
    };
    let [request_id, key_id] = ["req", "key"].map(str::to_owned);
    let call = CallFacts { request_id, key_id, arguments: Some("{\"n\":1}".to_owned()) };
    let sealed = format!("sealed {number}").into_bytes();
    Record::new(id(number), ("print", identity), Task::new(policy(), AT), sealed, call)
}

/// Returns a call with a key and a target of its own.
pub fn nth(number: u128) -> Record {
    new(number, &format!("k{number}"), &format!("t{number}"))
}

/// Returns a call that its fingerprint identifies.
fn without_key(number: u128, target: &str) -> Record {
    alike(new(number, "", target), |call| call.key = None)
}

pub fn at_time(new: Record, at: Timestamp) -> Record {
    Record { created_at: at, task: Task::new(new.task.policy, at), ..new }
}

pub fn alike(mut new: Record, change: impl FnOnce(&mut Identity)) -> Record {
    change(&mut new.identity);
    new
}

pub async fn repeat(store: &Arc<dyn Store>, application: &str, key: &str) -> Option<WriteAnswer> {
    let call = alike(new(0, key, "elsewhere"), |call| call.application = application.to_owned());
    store.repeat(call.identity).await.unwrap()
}

pub fn application(id: &str, name: &str) -> ApplicationRow {
    ApplicationRow {
        id: id.to_owned(),
        name: name.to_owned(),
        permissions: vec!["print".to_owned(), "copy".to_owned()],
        requests_per_minute: 300,
        grants: Grants::everything(),
        created_at: AT,
        labels: Labels::new(),
        suspended_at: None,
        deleted_at: None,
    }
}

pub fn secret(n: u8) -> SecretRow {
    SecretRow { verifier: [n; 32], sealed: vec![n], created_at: None, ends_at: None }
}

/// Returns a key with the given secrets, the latest one first.
pub fn key(id: &str, application: &str, secrets: &[u8]) -> KeyRow {
    let (id, application, secrets) =
        (id.to_owned(), application.to_owned(), secrets.iter().map(|n| secret(*n)).collect());
    KeyRow { id, application, secrets, created_at: AT, expires_at: None, labels: Labels::new(), suspended_at: None }
}

#[track_caller]
pub fn assert_unavailable<T: Debug>(answer: &Result<T, StoreError>, part: &str) {
    assert!(matches!(answer, Err(StoreError::Unavailable(why)) if why.contains(part)), "{answer:?}");
}

pub async fn accept(store: &Arc<dyn Store>, new: Record) {
    let accepted = store.accept(new, vec![]).await.unwrap();
    assert!(matches!(accepted, Acceptance::Fresh { .. }), "{accepted:?}");
}

/// Writes a step from the stored version.
pub async fn change(
    store: &Arc<dyn Store>,
    id: TaskId,
    at: Timestamp,
    entries: Vec<Entry>,
    edit: impl FnOnce(Task) -> Task,
) -> Result<(), StoreError> {
    let Record { version, task, .. } = store.task(id).await?.unwrap();
    let step = Advance { id, version, task: edit(task), entries, what: "step".to_owned().into(), at };
    assert_eq!(store.advance(step).await?, Advanced::Written);
    Ok(())
}

pub async fn advance(
    store: &Arc<dyn Store>,
    number: u128,
    phase: Phase,
    entries: Vec<Entry>,
) -> Result<(), StoreError> {
    change(store, id(number), AT, entries, |task| Task { phase, ..task }).await
}

/// Frees the target from `free` on.
pub async fn end(store: &Arc<dyn Store>, number: u128, status: TaskStatus, free: Timestamp) {
    end_at(store, number, status, free, AT).await;
}

pub async fn end_at(store: &Arc<dyn Store>, number: u128, status: TaskStatus, free: Timestamp, at: Timestamp) {
    let entries = vec![Entry::Release(free)];
    change(store, id(number), at, entries, |task| finish(status, at, task)).await.unwrap();
}

fn finish(status: TaskStatus, at: Timestamp, task: Task) -> Task {
    Task { phase: Phase::Done(status), finished_at: Some(at), wake_at: None, ..task }
}

#[cfg(test)]
mod in_memory {
    use std::sync::Arc;
    use toolwarrant_memory::Memory;
    use toolwarrant_store::Store;

    async fn open() -> ((), Arc<dyn Store>) {
        ((), Arc::new(Memory::default()))
    }

    crate::store_suite!(open);
    crate::store_row_suite!(open);
}
