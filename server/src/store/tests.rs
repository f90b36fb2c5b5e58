//! What every store must do, tried on each of them.

use super::memory::Memory;
use super::rules::tests::{each_broken_rule_names_its_task, what_goes_its_way_breaks_no_rule};
use super::sqlite::Sqlite;
use super::*;
use crate::data::DataFolder;
use crate::tasks::task::{Phase, Status, Upstream};
use std::sync::Arc;
use std::time::Duration;

/// Each case once for each store.
macro_rules! every_store {
    ($($case:ident)*) => {
        mod in_memory {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(Arc::new(Memory::default())).await;
            })*
        }

        mod on_disk {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let folder = tempfile::tempdir().unwrap();
                super::$case(Arc::new(Sqlite::open(&DataFolder::open(folder.path()).unwrap()).unwrap())).await;
            })*
        }
    };
}

every_store! {
    a_repeated_call_finds_what_is_in_flight_and_with_what_it_was_asked
    of_many_calls_with_one_key_at_once_one_is_fresh_and_all_know_its_task
    a_key_is_free_again_after_the_end
    the_same_key_of_another_application_is_its_own
    a_busy_target_names_who_has_it_and_until_when
    a_target_of_another_kind_is_another_target
    of_two_writes_on_one_target_at_once_one_is_fresh_and_the_other_waits_for_it
    after_a_release_a_task_starts_when_the_target_has_settled
    a_release_in_the_past_holds_nobody_up
    a_release_beyond_the_time_of_a_whole_task_is_a_clocks_mistake
    an_id_that_is_taken_changes_nothing
    a_step_from_another_version_of_an_ended_or_of_an_unknown_task_is_fenced
    a_task_is_kept_as_it_was_written
    a_refund_the_end_the_release_and_the_wiping_are_one_step
    what_the_ledger_has_already_stops_the_whole_step
    a_timeline_tells_every_phase_in_order
    the_ledger_is_read_in_pages
    tasks_in_flight_are_read_in_pages_in_the_order_of_their_ids
    only_what_ended_before_is_purged_the_longest_ended_first_and_never_the_ledger
    an_application_comes_back_as_it_was_put
    a_name_belongs_to_one_application
    a_key_is_rotated_and_revoked_in_place
    a_key_of_no_application_or_with_too_many_secrets_is_refused
    what_goes_its_way_breaks_no_rule
    each_broken_rule_names_its_task
}

async fn a_repeated_call_finds_what_is_in_flight_and_with_what_it_was_asked(store: Arc<dyn Store>) {
    assert_eq!(store.repeat("app", "k").await.unwrap(), None);
    let task = NewTask { fingerprint: [7; 32], ..new(1, "k", "t") };
    assert_eq!(store.accept(task).await.unwrap(), Accepted::Fresh { wake_at: AT });
    let found = InFlight { id: id(1), tool: "print".to_owned(), target: "t".to_owned(), fingerprint: [7; 32] };
    assert_eq!(store.repeat("app", "k").await.unwrap(), Some(found.clone()));
    assert_eq!(store.repeat("app", "K").await.unwrap(), None);
    // Also for another target, which is free; and nothing is left behind of the attempt.
    for target in ["t", "u"] {
        assert_eq!(store.accept(new(2, "k", target)).await.unwrap(), Accepted::Hit(found.clone()));
    }
    assert_eq!(store.task(id(2)).await.unwrap(), None);
    assert_eq!(store.accept(new(3, "other", "u")).await.unwrap(), Accepted::Fresh { wake_at: AT });
}

async fn of_many_calls_with_one_key_at_once_one_is_fresh_and_all_know_its_task(store: Arc<dyn Store>) {
    let calls: Vec<_> = (1..=64)
        .map(|n| {
            let store = Arc::clone(&store);
            let target = format!("t{}", n % 2);
            (id(n), tokio::spawn(async move { store.accept(new(n, "k", &target)).await.unwrap() }))
        })
        .collect();
    let (mut fresh, mut hits) = (Vec::new(), Vec::new());
    for (id, call) in calls {
        match call.await.unwrap() {
            Accepted::Fresh { .. } => fresh.push(id),
            Accepted::Hit(InFlight { id, .. }) => hits.push(id),
            Accepted::Busy { .. } => panic!("a hit comes first"),
        }
    }
    assert_eq!((fresh.len(), hits.len()), (1, 63));
    assert!(hits.iter().all(|hit| *hit == fresh[0]), "{hits:?}");
}

async fn a_key_is_free_again_after_the_end(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    end(&store, 1, Status::Success, AT).await;
    assert_eq!(store.repeat("app", "k").await.unwrap(), None);
    accept(&store, new(2, "k", "t")).await;
    assert_eq!(store.repeat("app", "k").await.unwrap().unwrap().id, id(2));
    assert_eq!(store.task(id(1)).await.unwrap().unwrap().task.status(), Some(Status::Success));
}

async fn the_same_key_of_another_application_is_its_own(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    accept(&store, NewTask { application: "other".to_owned(), ..new(2, "k", "u") }).await;
    assert_eq!(store.repeat("app", "k").await.unwrap().unwrap().id, id(1));
    assert_eq!(store.repeat("other", "k").await.unwrap().unwrap().id, id(2));
}

async fn a_busy_target_names_who_has_it_and_until_when(store: Arc<dyn Store>) {
    accept(&store, NewTask { application: "owner".to_owned(), ..new(1, "k", "t") }).await;
    let (application, deadline_at) = ("owner".to_owned(), AT.plus(Duration::from_secs(60)));
    let busy = Accepted::Busy { id: id(1), application, deadline_at };
    assert_eq!(store.accept(new(2, "k", "t")).await.unwrap(), busy);
    assert_eq!(store.task(id(2)).await.unwrap(), None);
    assert_eq!(store.repeat("app", "k").await.unwrap(), None, "a refused call has no claim");
}

async fn a_target_of_another_kind_is_another_target(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    accept(&store, NewTask { resource: "tray".to_owned(), ..new(2, "l", "t") }).await;
}

async fn of_two_writes_on_one_target_at_once_one_is_fresh_and_the_other_waits_for_it(store: Arc<dyn Store>) {
    for round in 0..16_u128 {
        let target = format!("t{round}");
        let race = [1, 2].map(|n| {
            let (store, n, target) = (Arc::clone(&store), 2 * round + n, target.clone());
            tokio::spawn(async move { (id(n), store.accept(new(n, &format!("k{n}"), &target)).await.unwrap()) })
        });
        let [a, b] = race;
        match (a.await.unwrap(), b.await.unwrap()) {
            ((first, Accepted::Fresh { .. }), (_, Accepted::Busy { id, .. }))
            | ((_, Accepted::Busy { id, .. }), (first, Accepted::Fresh { .. })) => assert_eq!(id, first),
            other => panic!("{other:?}"),
        }
    }
}

async fn after_a_release_a_task_starts_when_the_target_has_settled(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let settled = AT.plus(Duration::from_secs(30));
    end(&store, 1, Status::Timeout, settled).await;
    assert_eq!(store.accept(new(2, "k", "t")).await.unwrap(), Accepted::Fresh { wake_at: settled });
    let Record { created_at, task, .. } = store.task(id(2)).await.unwrap().unwrap();
    assert_eq!((created_at, task.not_before, task.wake_at), (AT, settled, Some(settled)));
    assert_eq!(task.deadline_at, settled.plus(Duration::from_secs(60)));
}

async fn a_release_in_the_past_holds_nobody_up(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    end(&store, 1, Status::Success, AT.minus(Duration::from_secs(1))).await;
    assert_eq!(store.accept(new(2, "k", "t")).await.unwrap(), Accepted::Fresh { wake_at: AT });
}

async fn a_release_beyond_the_time_of_a_whole_task_is_a_clocks_mistake(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    end(&store, 1, Status::Success, AT.plus(Duration::from_hours(24))).await;
    let latest = AT.plus(Duration::from_secs(terms().deadline_seconds.into()));
    assert_eq!(store.accept(new(2, "k", "t")).await.unwrap(), Accepted::Fresh { wake_at: latest });
}

async fn an_id_that_is_taken_changes_nothing(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let before = store.task(id(1)).await.unwrap();
    store.accept(new(1, "l", "u")).await.unwrap_err();
    assert_eq!(store.task(id(1)).await.unwrap(), before);
    assert_eq!(store.repeat("app", "l").await.unwrap(), None);
    accept(&store, new(2, "l", "u")).await;
}

async fn a_step_from_another_version_of_an_ended_or_of_an_unknown_task_is_fenced(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let step = |version| {
        let mut task = Task::accepted(terms(), AT);
        task.phase = Phase::Sending;
        Advance { id: id(1), version, task, entries: vec![Entry::Charge], what: "sending".to_owned(), at: AT }
    };
    assert_eq!(store.advance(step(1)).await.unwrap(), Advanced::Fenced);
    assert_eq!(store.advance(Advance { id: id(2), ..step(0) }).await.unwrap(), Advanced::Fenced);
    assert_eq!(store.ledger(0, 10).await.unwrap(), []);
    assert_eq!(store.advance(step(0)).await.unwrap(), Advanced::Written);
    assert_eq!(store.advance(step(0)).await.unwrap(), Advanced::Fenced);
    end(&store, 1, Status::Failed, AT).await;
    let before = (store.task(id(1)).await.unwrap(), store.timeline(id(1)).await.unwrap());
    assert_eq!(store.advance(step(2)).await.unwrap(), Advanced::Fenced);
    assert_eq!((store.task(id(1)).await.unwrap(), store.timeline(id(1)).await.unwrap()), before);
}

async fn a_task_is_kept_as_it_was_written(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let mut record = Record {
        id: id(1),
        application: "app".to_owned(),
        tool: "print".to_owned(),
        resource: "printer".to_owned(),
        target: "t".to_owned(),
        created_at: AT,
        version: 0,
        task: Task::accepted(terms(), AT),
        sealed: Some(b"sealed 1".to_vec()),
        refunded_at: None,
    };
    assert_eq!(store.task(id(1)).await.unwrap().as_ref(), Some(&record));
    record.task = Task {
        phase: Phase::Polling,
        wake_at: None,
        attempts: 2,
        baseline: Some("\"\u{0}ü\n".to_owned()),
        operation: Some(String::new()),
        outcome: Some((Upstream::None, Timestamp(AT.0 + 1))),
        ..record.task
    };
    let (what, task) = ("polling".to_owned(), record.task.clone());
    let step = Advance { id: id(1), version: 0, task, entries: vec![], what, at: AT };
    assert_eq!(store.advance(step).await.unwrap(), Advanced::Written);
    record.version = 1;
    assert_eq!(store.task(id(1)).await.unwrap().as_ref(), Some(&record));
    let left: Vec<_> = store.in_flight(None, 9).await.unwrap().iter().map(|task| (task.id, task.wake_at)).collect();
    assert_eq!(left, [(id(1), None)]);
}

async fn a_refund_the_end_the_release_and_the_wiping_are_one_step(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    advance(&store, 1, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    let (ended, settled) = (AT.plus(Duration::from_secs(9)), AT.plus(Duration::from_secs(30)));
    let Record { version, task, .. } = store.task(id(1)).await.unwrap().unwrap();
    let task = Task { phase: Phase::Done(Status::FailedSilent), finished_at: Some(ended), wake_at: None, ..task };
    let (entries, what) = (vec![Entry::Refund, Entry::Release(settled)], "refunded".to_owned());
    let step = Advance { id: id(1), version, task: task.clone(), entries, what, at: ended };
    assert_eq!(store.advance(step).await.unwrap(), Advanced::Written);

    let record = store.task(id(1)).await.unwrap().unwrap();
    assert_eq!((record.task, record.version), (task, 2));
    assert_eq!((record.sealed, record.refunded_at), (None, Some(ended)));
    let row = |number, kind, at| LedgerRow { number, id: id(1), application: "app".to_owned(), kind, at };
    assert_eq!(store.ledger(0, 9).await.unwrap(), [row(1, "charge", AT), row(2, "refund", ended)]);
    assert_eq!(store.accept(new(2, "k", "t")).await.unwrap(), Accepted::Fresh { wake_at: settled });
}

async fn what_the_ledger_has_already_stops_the_whole_step(store: Arc<dyn Store>) {
    let release = Entry::Release(AT);
    for (n, kind) in [(1, Entry::Charge), (2, Entry::ReverseCharge), (3, Entry::Refund)] {
        let target = format!("t{n}");
        accept(&store, new(n, &target, &target)).await;
        advance(&store, n, Phase::Ready, vec![kind]).await.unwrap();
        let before = (store.task(id(n)).await.unwrap(), store.timeline(id(n)).await.unwrap());
        let ledger = store.ledger(0, 99).await.unwrap();
        for entries in [vec![release, kind], vec![kind, release]] {
            advance(&store, n, Phase::Done(Status::Failed), entries).await.unwrap_err();
        }
        assert_eq!((store.task(id(n)).await.unwrap(), store.timeline(id(n)).await.unwrap()), before);
        assert_eq!(store.ledger(0, 99).await.unwrap(), ledger);
        let busy = store.accept(new(9, "other", &target)).await.unwrap();
        assert!(matches!(busy, Accepted::Busy { .. }), "{busy:?}");
        assert_eq!(store.repeat("app", &target).await.unwrap().unwrap().id, id(n));
    }
    // Twice in one step is once too often, too.
    accept(&store, new(4, "k4", "t4")).await;
    advance(&store, 4, Phase::Ready, vec![Entry::Refund, Entry::Refund]).await.unwrap_err();
    assert_eq!(store.ledger(3, 99).await.unwrap(), []);
    // The numbers go on where they were.
    advance(&store, 4, Phase::Ready, vec![Entry::Refund]).await.unwrap();
    assert_eq!(store.ledger(3, 99).await.unwrap()[0].number, 4);
}

async fn a_timeline_tells_every_phase_in_order(store: Arc<dyn Store>) {
    let mut number = 0;
    for status in Status::ALL {
        number += 1;
        let target = format!("t{number}");
        accept(&store, new(number, &target, &target)).await;
        let mut phases = vec![Phase::Baseline, Phase::Sending, Phase::Polling, Phase::Verifying, Phase::Ready];
        phases.push(Phase::Done(status));
        for phase in &phases {
            advance(&store, number, *phase, vec![]).await.unwrap();
        }
        let timeline = store.timeline(id(number)).await.unwrap();
        let told: Vec<_> = timeline.iter().map(|happening| (happening.phase, happening.what.as_str())).collect();
        let mut expected = vec![("ready", "accepted")];
        expected.extend(phases.iter().map(|phase| (phase.as_str(), "step")));
        assert_eq!(told, expected);
        assert!(timeline.iter().all(|happening| happening.at == AT));
    }
    assert_eq!(store.timeline(id(99)).await.unwrap(), []);
}

async fn the_ledger_is_read_in_pages(store: Arc<dyn Store>) {
    for n in 1..=5 {
        accept(&store, new(n, &format!("k{n}"), &format!("t{n}"))).await;
        advance(&store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    }
    let numbers = async |after, limit| {
        let rows = store.ledger(after, limit).await.unwrap();
        rows.iter().map(|row| (row.number, row.id)).collect::<Vec<_>>()
    };
    assert_eq!(numbers(0, 2).await, [(1, id(1)), (2, id(2))]);
    assert_eq!(numbers(2, 9).await, [(3, id(3)), (4, id(4)), (5, id(5))]);
    assert_eq!(numbers(5, 9).await, []);
    assert_eq!(numbers(0, 0).await, []);
    assert_eq!(numbers(u64::MAX, u32::MAX).await, []);
}

async fn tasks_in_flight_are_read_in_pages_in_the_order_of_their_ids(store: Arc<dyn Store>) {
    for n in [4, 2, 5, 1, 3] {
        accept(&store, new(n, &format!("k{n}"), &format!("t{n}"))).await;
    }
    end(&store, 3, Status::Success, AT).await;
    let ids = async |after: Option<u128>, limit| {
        let page = store.in_flight(after.map(id), limit).await.unwrap();
        for Unfinished { id, application, key, wake_at } in &page {
            let claim = format!("k{}", u128::from_be_bytes(id.to_bytes()));
            assert_eq!((&**application, key, *wake_at), ("app", &claim, Some(AT)));
        }
        page.iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, 2).await, [id(1), id(2)]);
    assert_eq!(ids(Some(2), 9).await, [id(4), id(5)]);
    assert_eq!(ids(Some(5), 9).await, []);
    assert_eq!(ids(Some(u128::MAX), 9).await, []);
}

async fn only_what_ended_before_is_purged_the_longest_ended_first_and_never_the_ledger(store: Arc<dyn Store>) {
    for (n, ended) in [(1, Some(300)), (2, Some(100)), (3, Some(200)), (4, None), (5, Some(400))] {
        accept(&store, new(n, &format!("k{n}"), &format!("t{n}"))).await;
        advance(&store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
        if let Some(ended) = ended {
            end_at(&store, n, Status::Success, AT, Timestamp(ended)).await;
        }
    }
    let left = async || {
        let mut left = Vec::new();
        for n in 1..=5 {
            let (task, timeline) = (store.task(id(n)).await.unwrap(), store.timeline(id(n)).await.unwrap());
            assert_eq!(task.is_none(), timeline.is_empty());
            left.extend(task.map(|_| n));
        }
        left
    };
    assert_eq!(store.purge(Timestamp(100), 9).await.unwrap(), 0);
    assert_eq!(store.purge(Timestamp(400), 2).await.unwrap(), 2);
    assert_eq!(left().await, [1, 4, 5]);
    assert_eq!(store.purge(Timestamp(400), 9).await.unwrap(), 1);
    assert_eq!(store.purge(Timestamp(u64::MAX), 0).await.unwrap(), 0);
    assert_eq!(left().await, [4, 5]);
    assert_eq!(store.purge(Timestamp(u64::MAX), u32::MAX).await.unwrap(), 1);
    assert_eq!(left().await, [4]);
    assert_eq!(store.ledger(0, 9).await.unwrap().len(), 5);
    // What was purged has let go of its key and its target.
    accept(&store, new(6, "k1", "t1")).await;
}

async fn an_application_comes_back_as_it_was_put(store: Arc<dyn Store>) {
    assert_eq!(store.directory().await.unwrap(), (vec![], vec![]));
    let set = |targets: &[&str]| Some(targets.iter().map(|target| (*target).to_owned()).collect());
    let first = ApplicationRow { grants: None, ..application("z", "first") };
    let second = ApplicationRow { grants: set(&[]), permissions: vec![], ..application("b", "second") };
    let third = ApplicationRow { grants: set(&["t2", "t1"]), ..application("c", "third") };
    let mut rows = vec![first, second, third];
    for row in &rows {
        store.put_application(row.clone()).await.unwrap();
    }
    assert_eq!(store.directory().await.unwrap().0, rows);
    for (grants, requests_per_minute) in [(set(&["t3"]), u32::MAX), (None, 0), (set(&[]), 1), (set(&["t1", "t4"]), 2)] {
        rows[0] = ApplicationRow { grants, requests_per_minute, ..rows[0].clone() };
        store.put_application(rows[0].clone()).await.unwrap();
        assert_eq!(store.directory().await.unwrap().0, rows);
    }
    rows[0].name = "renamed".to_owned();
    rows[0].permissions.reverse();
    rows[0].created_at = Timestamp(1);
    store.put_application(rows[0].clone()).await.unwrap();
    assert_eq!(store.directory().await.unwrap().0, rows);
}

async fn a_name_belongs_to_one_application(store: Arc<dyn Store>) {
    for (id, name) in [("a", "first"), ("b", "second")] {
        store.put_application(application(id, name)).await.unwrap();
    }
    let before = store.directory().await.unwrap();
    for id in ["b", "c"] {
        let error = store.put_application(application(id, "first")).await.unwrap_err();
        assert_eq!(error.to_string(), "an application is named `first` already");
    }
    assert_eq!(store.directory().await.unwrap(), before);
}

async fn a_key_is_rotated_and_revoked_in_place(store: Arc<dyn Store>) {
    for (id, name) in [("a", "first"), ("b", "second")] {
        store.put_application(application(id, name)).await.unwrap();
    }
    let secret = |n| SecretRow { verifier: [n; 32], sealed: vec![n; 3] };
    let key = |id: &str, secrets: &[u8]| KeyRow {
        id: id.to_owned(),
        application: "a".to_owned(),
        secrets: secrets.iter().map(|n| secret(*n)).collect(),
        created_at: AT,
        expires_at: (id == "k1").then_some(AT),
    };
    let other = KeyRow { application: "b".to_owned(), ..key("k2", &[9]) };
    store.put_key(other.clone()).await.unwrap();
    for secrets in [&[1][..], &[2, 1], &[3, 2], &[3], &[]] {
        store.put_key(key("k1", secrets)).await.unwrap();
        assert_eq!(store.directory().await.unwrap().1, [key("k1", secrets), other.clone()]);
    }
}

async fn a_key_of_no_application_or_with_too_many_secrets_is_refused(store: Arc<dyn Store>) {
    store.put_application(application("a", "first")).await.unwrap();
    let key =
        KeyRow { id: "k".to_owned(), application: "a".to_owned(), secrets: vec![], created_at: AT, expires_at: None };
    let secret = SecretRow { verifier: [1; 32], sealed: vec![] };
    store.put_key(KeyRow { application: "b".to_owned(), ..key.clone() }).await.unwrap_err();
    store.put_key(KeyRow { secrets: vec![secret; 3], ..key }).await.unwrap_err();
    assert_eq!(store.directory().await.unwrap().1, []);
}

/// 2026-07-28T12:00:00.123Z.
pub(super) const AT: Timestamp = Timestamp(1_785_240_000_123);

pub(super) fn id(number: u128) -> TaskId {
    TaskId::from_bytes(number.to_be_bytes())
}

pub(super) fn terms() -> Terms {
    Terms { probe: None, idempotent: true, settle_seconds: 10, deadline_seconds: 60 }
}

pub(super) fn new(number: u128, key: &str, target: &str) -> NewTask {
    NewTask {
        id: id(number),
        application: "app".to_owned(),
        key: key.to_owned(),
        fingerprint: [1; 32],
        tool: "print".to_owned(),
        resource: "printer".to_owned(),
        target: target.to_owned(),
        sealed: format!("sealed {number}").into_bytes(),
        terms: terms(),
        at: AT,
    }
}

pub(super) fn application(id: &str, name: &str) -> ApplicationRow {
    ApplicationRow {
        id: id.to_owned(),
        name: name.to_owned(),
        permissions: vec!["print".to_owned(), "copy".to_owned()],
        requests_per_minute: 300,
        grants: None,
        created_at: AT,
    }
}

pub(super) async fn accept(store: &Arc<dyn Store>, new: NewTask) {
    let accepted = store.accept(new).await.unwrap();
    assert!(matches!(accepted, Accepted::Fresh { .. }), "{accepted:?}");
}

/// The next version of a task, in that phase.
pub(super) async fn advance(
    store: &Arc<dyn Store>,
    number: u128,
    phase: Phase,
    entries: Vec<Entry>,
) -> Result<(), Broken> {
    let Record { version, task, .. } = store.task(id(number)).await?.unwrap();
    let task = Task { phase, ..task };
    let step = Advance { id: id(number), version, task, entries, what: "step".to_owned(), at: AT };
    assert_eq!(store.advance(step).await?, Advanced::Written);
    Ok(())
}

/// Ends a task, whose target is free from then on.
pub(super) async fn end(store: &Arc<dyn Store>, number: u128, status: Status, free: Timestamp) {
    end_at(store, number, status, free, AT).await;
}

async fn end_at(store: &Arc<dyn Store>, number: u128, status: Status, free: Timestamp, at: Timestamp) {
    let Record { version, task, .. } = store.task(id(number)).await.unwrap().unwrap();
    let task = Task { phase: Phase::Done(status), finished_at: Some(at), wake_at: None, ..task };
    let (entries, what) = (vec![Entry::Release(free)], "ended".to_owned());
    let step = Advance { id: id(number), version, task, entries, what, at };
    assert_eq!(store.advance(step).await.unwrap(), Advanced::Written);
}
