//! Reads of tasks and the ledger, their order and pages; and purges.

use super::*;
use toolwarrant_audit::{Anchor, Birth, Head};

pub(super) async fn a_timeline_has_every_phase_in_order(store: Arc<dyn Store>) {
    let mut number = 0;
    for status in Status::ALL.iter().copied() {
        number += 1;
        let target = format!("t{number}");
        accept(&store, new(number, &target, &target)).await;
        let mut phases = vec![Phase::Baseline, Phase::Sending, Phase::Polling, Phase::Verifying, Phase::Ready];
        phases.push(Phase::Done(status));
        for phase in &phases {
            advance(&store, number, *phase, vec![]).await.unwrap();
        }
        let timeline = store.timeline(id(number)).await.unwrap();
        let told: Vec<_> = timeline.iter().map(|event| (event.phase, event.what.as_str())).collect();
        let mut expected = vec![("ready", "accepted")];
        expected.extend(phases.iter().map(|phase| (phase.as_str(), "step")));
        assert_eq!(told, expected);
        assert!(timeline.iter().all(|event| event.at == AT));
    }
    assert_eq!(store.timeline(id(99)).await.unwrap(), []);
}

pub(super) async fn the_ledger_is_read_in_pages(store: Arc<dyn Store>) {
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

pub(super) async fn tasks_in_flight_are_read_in_pages_in_the_order_of_their_ids(store: Arc<dyn Store>) {
    let mut known = Vec::new();
    for n in [4, 2, 5, 3, 1] {
        let task = new(n, &format!("k{n}"), &format!("t{}", n * 7 % 10));
        known.push(OpenTask {
            id: task.id,
            identity: task.identity.clone(),
            tool: task.tool.clone(),
            sealed: Some(task.sealed.clone()),
            wake_at: Some(AT),
        });
        accept(&store, task).await;
    }
    end(&store, 3, Status::Success, AT).await;
    known.sort_by_key(|task| task.id);
    let ended = known.remove(2).id;
    assert_eq!(store.in_flight(None, 2).await.unwrap(), known[..2]);
    assert_eq!(store.in_flight(Some(known[1].id), 9).await.unwrap(), known[2..]);
    assert_eq!(store.in_flight(Some(ended), 9).await.unwrap(), known[2..]);
    assert_eq!(store.in_flight(Some(known[3].id), 9).await.unwrap(), []);
}

pub(super) async fn tasks_are_listed_newest_first_by_application_by_target_and_in_pages(store: Arc<dyn Store>) {
    for n in 1..=8 {
        let (application, resource, target) = (format!("a{}", n % 2), format!("r{n}"), format!("t{}", n / 2));
        let identity = Identity { application, key: None, fingerprint: [1; 32], resource, target };
        accept(&store, NewTask { identity, ..new(n, "", "") }).await;
    }
    end(&store, 5, Status::Failed, AT).await;
    let listed = async |application: Option<&str>, target: Option<&str>, before: Option<u128>, limit| {
        let (application, target) = (application.map(str::to_owned), target.map(str::to_owned));
        let tasks = store.tasks(TaskFilter { application, target, before: before.map(id), limit }).await.unwrap();
        for task in &tasks {
            assert_eq!(store.task(task.id).await.unwrap().as_ref(), Some(task));
        }
        tasks.into_iter().map(|task| u128::from_be_bytes(task.id.to_bytes())).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, None, None, 99).await, [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(listed(None, None, Some(7), 3).await, [6, 5, 4]);
    assert_eq!(listed(Some("a1"), None, Some(7), 2).await, [5, 3]);
    assert_eq!(listed(None, Some("t3"), None, 99).await, [7, 6]);
    assert_eq!(listed(Some("a0"), Some("t3"), None, 99).await, [6]);
    assert_eq!(listed(Some("a0"), Some("t0"), None, 99).await, []);
    assert_eq!(listed(None, None, Some(1), 99).await, []);
    assert_eq!(listed(None, None, Some(u128::MAX), 0).await, []);
}

pub(super) async fn only_old_ended_tasks_are_purged_earliest_first_and_the_ledger_never(store: Arc<dyn Store>) {
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
    // A purged task has released its key and its target.
    accept(&store, new(6, "k1", "t1")).await;
}

pub(super) async fn a_target_continues_to_cool_down_when_its_task_is_purged(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let settled = AT.plus(Duration::from_secs(30));
    end(&store, 1, Status::Timeout, settled).await;
    assert_eq!(store.purge(AT.plus(Duration::from_secs(1)), 9).await.unwrap(), 1);
    assert_eq!(store.accept(new(2, "k", "t")).await.unwrap(), Acceptance::Fresh { wake_at: settled });
}

pub(super) async fn only_cool_downs_that_are_long_over_are_purged(store: Arc<dyn Store>) {
    let settled = |n: u64| AT.plus(Duration::from_secs(10 * n));
    for n in 1..=3 {
        accept(&store, new(n.into(), &format!("k{n}"), &format!("t{n}"))).await;
        end(&store, n.into(), Status::Timeout, settled(n)).await;
    }
    let left = async || {
        let figures = store.figures().await.unwrap();
        let cool_downs = figures.into_iter().find(|figure| figure.what == "cool-downs").unwrap();
        (cool_downs.rows, cool_downs.oldest)
    };
    assert_eq!(left().await, (3, Some(settled(1))));
    store.purge(settled(1), 9).await.unwrap();
    assert_eq!(left().await, (3, Some(settled(1))));
    store.purge(settled(3), 1).await.unwrap();
    assert_eq!(left().await, (2, Some(settled(2))));
    store.purge(settled(3), 9).await.unwrap();
    assert_eq!(left().await, (1, Some(settled(3))));
}

pub(super) async fn stored_data_is_counted_with_its_age(store: Arc<dyn Store>) {
    let figures = async || {
        let figures = store.figures().await.unwrap().into_iter();
        figures.map(|figure| (figure.what, figure.rows, figure.oldest)).collect::<Vec<_>>()
    };
    let empty =
        ["ended tasks", "timelines of tasks", "cool-downs", "deduplication keys", "ledger"].map(|what| (what, 0, None));
    assert_eq!(figures().await, empty);
    accept(&store, new(1, "k", "t")).await;
    advance(&store, 1, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    end_at(&store, 1, Status::Success, AT, Timestamp(300)).await;
    let of_a_stop = DeduplicationKey { until: Timestamp(0), ..mark("reads", "a read") };
    store.mark(vec![mark("nonce", "a write"), of_a_stop]).await.unwrap();
    let (rows, oldest): (Vec<_>, Vec<_>) = figures().await.into_iter().map(|(_, rows, oldest)| (rows, oldest)).unzip();
    assert_eq!(rows, [1, 2, 1, 1, 1]);
    assert_eq!((oldest[0], oldest[3]), (Some(Timestamp(300)), Some(AT)));
}

pub(super) async fn the_recorded_anchor_of_the_audit_is_read_unchanged(store: Arc<dyn Store>) {
    assert_eq!(store.audit_anchor().await.unwrap(), None);
    let head = |number, byte| Head { number, hash: [byte; 32] };
    let mut anchor = Anchor {
        newest: head(u64::MAX, 1),
        pruned: head(3, 2),
        birth: Birth { file: "audit-2026-07-28.jsonl".to_owned(), length: 7 },
    };
    for number in [9, 10] {
        anchor.newest.number = number;
        store.put_audit_anchor(anchor.clone()).await.unwrap();
        assert_eq!(store.audit_anchor().await.unwrap(), Some(anchor.clone()));
    }
}
