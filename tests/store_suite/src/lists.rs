//! Reads of tasks and the ledger, their order and pages; and purges.

use super::*;
use std::time::Instant;
use toolwarrant_audit::{Anchor, Head};
use toolwarrant_tasks::store::{LedgerRow, StatusCount};

pub async fn a_timeline_has_every_phase_in_order(store: Arc<dyn Store>) {
    let mut number = 0;
    for status in TaskStatus::ENDS.iter().copied() {
        number += 1;
        let target = format!("t{number}");
        accept(&store, new(number, &target, &target)).await;
        let mut phases = vec![Phase::Baseline, Phase::Sending, Phase::Polling, Phase::Verifying, Phase::Ready];
        phases.push(Phase::Done(status));
        for phase in &phases {
            advance(&store, number, *phase, vec![]).await.unwrap();
        }
        let timeline = store.timeline(id(number)).await.unwrap();
        let told: Vec<_> = timeline.iter().map(|event| (event.phase, event.what.to_string())).collect();
        let mut expected = vec![("ready", "accepted".to_owned())];
        expected.extend(phases.iter().map(|phase| (phase.as_str(), "step".to_owned())));
        assert_eq!(told, expected);
        assert!(timeline.iter().all(|event| event.at == AT));
    }
    assert_eq!(store.timeline(id(99)).await.unwrap(), []);
}

pub async fn the_ledger_is_read_in_pages(store: Arc<dyn Store>) {
    for n in 1..=5 {
        accept(&store, nth(n)).await;
        advance(&store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    }
    let all = ledger(&store, 5).await;
    assert!(all.is_sorted_by(|one, next| one.number < next.number));
    assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5].map(id));
    assert_eq!(store.ledger(0, 2).await.unwrap(), all[..2]);
    assert_eq!(store.ledger(all[1].number, 9).await.unwrap(), all[2..]);
    for (after, limit) in [(all[4].number, 9), (0, 0), (u64::MAX, u32::MAX)] {
        assert_eq!(store.ledger(after, limit).await.unwrap(), []);
    }
}

pub async fn tasks_in_flight_are_read_in_pages_in_the_order_of_their_ids(store: Arc<dyn Store>) {
    let mut known = Vec::new();
    for n in [4, 2, 5, 3, 1] {
        let task = new(n, &format!("k{n}"), &format!("t{}", n * 7 % 10));
        known.push(OpenTask {
            id: task.id,
            identity: task.identity.clone(),
            tool: task.tool.clone(),
            sealed: task.sealed.clone(),
            wake_at: Some(AT),
        });
        accept(&store, task).await;
    }
    end(&store, 3, TaskStatus::Success, AT).await;
    known.sort_by_key(|task| task.id);
    let ended = known.remove(2).id;
    assert_eq!(store.in_flight(None, 2).await.unwrap(), known[..2]);
    assert_eq!(store.in_flight(Some(known[1].id), 9).await.unwrap(), known[2..]);
    assert_eq!(store.in_flight(Some(ended), 9).await.unwrap(), known[2..]);
    assert_eq!(store.in_flight(Some(known[3].id), 9).await.unwrap(), []);
}

pub async fn tasks_are_found_by_each_property_and_say_how_many_were_examined(store: Arc<dyn Store>) {
    // Ids begin with the time of acceptance.
    let at = |n: u64| AT.plus(Duration::from_secs(n));
    let id = id_at;
    for n in 1..=6 {
        let of =
            |call: &mut Identity| (call.application, call.resource) = (format!("a{}", n % 2), format!("r{}", n % 2));
        let call = alike(without_key(1, &format!("t{}", n / 2)), of);
        let tool = if n % 3 == 0 { "copy" } else { "print" }.to_owned();
        accept(&store, Record { id: id(n), tool, ..at_time(call, at(n)) }).await;
    }
    for (n, status) in [(1, TaskStatus::Failed), (2, TaskStatus::Success), (4, TaskStatus::Failed)] {
        change(&store, id(n), at(9), vec![], |task| finish(status, at(9), task)).await.unwrap();
    }
    let found = async |filter: TaskFilter| {
        let TaskRows { records, examined, next } = store.tasks(filter).await.unwrap();
        for record in &records {
            assert_eq!(store.task(record.id).await.unwrap().as_ref(), Some(record));
        }
        let numbers = |id: TaskId| (1..=6).find(|n| id == id_at(*n));
        (
            records.into_iter().filter_map(|record| numbers(record.id)).collect::<Vec<_>>(),
            examined,
            next.and_then(numbers),
        )
    };
    let all = || TaskFilter { limit: 9, examine: 9, ..TaskFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (all(), (vec![6, 5, 4, 3, 2, 1], 6, None)),
        (TaskFilter { tool: text("copy"), ..all() }, (vec![6, 3], 6, None)),
        (TaskFilter { resource: text("r0"), ..all() }, (vec![6, 4, 2], 6, None)),
        (TaskFilter { statuses: vec![TaskStatus::Dispatched], ..all() }, (vec![6, 5, 3], 3, None)),
        (TaskFilter { statuses: vec![TaskStatus::Failed, TaskStatus::Success], ..all() }, (vec![4, 2, 1], 6, None)),
        (
            TaskFilter { statuses: vec![TaskStatus::Failed, TaskStatus::Success], limit: 2, ..all() },
            (vec![4, 2], 5, Some(2)),
        ),
        (TaskFilter { tool: text("none"), limit: 1, ..all() }, (vec![], 6, None)),
        (TaskFilter { since: Some(at(3)), until: Some(at(5)), ..all() }, (vec![4, 3], 2, None)),
        (TaskFilter { since: Some(at(5)), until: Some(at(3)), ..all() }, (vec![], 0, None)),
        (TaskFilter { before: Some(id(4)), until: Some(at(6)), limit: 2, ..all() }, (vec![3, 2], 2, Some(2))),
        (TaskFilter { tool: text("copy"), examine: 2, ..all() }, (vec![6], 2, Some(5))),
        (TaskFilter { limit: 6, ..all() }, (vec![6, 5, 4, 3, 2, 1], 6, None)),
        (TaskFilter { application: text("a1"), ..all() }, (vec![5, 3, 1], 3, None)),
        (TaskFilter { application: text("a1"), before: Some(id(5)), limit: 1, ..all() }, (vec![3], 1, Some(3))),
        (TaskFilter { target: text("t1"), ..all() }, (vec![3, 2], 6, None)),
        (TaskFilter { application: text("a0"), target: text("t1"), ..all() }, (vec![2], 3, None)),
        (TaskFilter { application: text("a0"), target: text("t0"), ..all() }, (vec![], 3, None)),
        (TaskFilter { before: Some(id(1)), ..all() }, (vec![], 0, None)),
        (TaskFilter { limit: 0, ..all() }, (vec![], 0, None)),
    ];
    for (filter, expected) in cases {
        let shown = format!("{filter:?}");
        assert_eq!(found(filter).await, expected, "{shown}");
    }
    // In flight, success, unverified, failed, failed silently, timeout.
    let counts = [
        (all(), [3, 1, 0, 2, 0, 0]),
        (TaskFilter { application: text("a1"), tool: text("print"), ..all() }, [1, 0, 0, 1, 0, 0]),
        (TaskFilter { application: text("other"), ..all() }, [0; 6]),
        (TaskFilter { prefix: text("t"), ..all() }, [3, 1, 0, 2, 0, 0]),
        (TaskFilter { prefix: text("t2"), ..all() }, [1, 0, 0, 1, 0, 0]),
        (TaskFilter { since: Some(at(2)), until: Some(at(4)), ..all() }, [1, 1, 0, 0, 0, 0]),
    ];
    for (filter, expected) in counts {
        let shown = format!("{filter:?}");
        let exact = expected.map(|count| StatusCount { count, is_cut: false });
        assert_eq!(store.count_tasks(filter.clone()).await.unwrap(), exact, "{shown}");
        let bounded = store.count_tasks(TaskFilter { examine: 1, ..filter }).await.unwrap();
        assert!(bounded.iter().any(|count| count.is_cut) || expected == [0; 6], "{shown}: {bounded:?}");
        for (StatusCount { count, is_cut }, exact) in bounded.into_iter().zip(expected) {
            assert!(count <= 1 && (count == exact || is_cut && count < exact), "{shown}: {bounded:?}");
        }
    }
}

fn id_at(n: u64) -> TaskId {
    TaskId::new(AT.plus(Duration::from_secs(n)), [1; 10])
}

pub async fn refunds_are_listed_newest_first_by_application_and_time(store: Arc<dyn Store>) {
    for n in 1..=4_u32 {
        let call = without_key(n.into(), &format!("t{n}"));
        accept(&store, alike(call, |call| call.application = format!("a{}", n % 2))).await;
        let (at, entries) = (AT.plus(Duration::from_secs(n.into())), vec![Entry::Charge, Entry::Refund]);
        let end = |task| finish(TaskStatus::FailedSilent, at, task);
        change(&store, id(n.into()), at, entries, end).await.unwrap();
    }
    let at = |n: u64| Some(AT.plus(Duration::from_secs(n)));
    let all = || RefundFilter { limit: 9, ..RefundFilter::default() };
    let found = async |filter: RefundFilter| {
        let rows = store.refunds(filter).await.unwrap();
        assert!(rows.iter().all(|row| row.kind == "refund"));
        rows.into_iter().map(|row| u128::from_be_bytes(row.id.to_bytes())).collect::<Vec<_>>()
    };
    assert_eq!(found(all()).await, [4, 3, 2, 1]);
    assert_eq!(found(RefundFilter { application: Some("a1".to_owned()), ..all() }).await, [3, 1]);
    assert_eq!(found(RefundFilter { since: at(2), until: at(4), ..all() }).await, [3, 2]);
    let entries = store.entries(id(3)).await.unwrap();
    assert_eq!(
        entries.iter().map(|row| (row.id, row.kind)).collect::<Vec<_>>(),
        [(id(3), "charge"), (id(3), "refund")]
    );
    let page = store.refunds(RefundFilter { limit: 2, ..all() }).await.unwrap();
    assert_eq!(found(RefundFilter { before: Some(page[1].number), ..all() }).await, [2, 1]);
}

pub async fn only_old_ended_tasks_are_purged_earliest_first_and_the_ledger_never(store: Arc<dyn Store>) {
    for (n, ended) in [(1, Some(300)), (2, Some(100)), (3, Some(200)), (4, None), (5, Some(400))] {
        accept(&store, nth(n)).await;
        advance(&store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
        if let Some(ended) = ended {
            end_at(&store, n, TaskStatus::Success, AT, Timestamp(ended)).await;
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
    assert_eq!(ledger(&store, 5).await.len(), 5);
    // A purged task has released its key and its target.
    accept(&store, new(6, "k1", "t1")).await;
}

pub async fn a_target_continues_to_cool_down_when_its_task_is_purged(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let settled = AT.plus(Duration::from_secs(30));
    end(&store, 1, TaskStatus::Timeout, settled).await;
    assert_eq!(store.purge(AT.plus(Duration::from_secs(1)), 9).await.unwrap(), 1);
    assert_eq!(store.accept(new(2, "k", "t"), vec![]).await.unwrap(), Acceptance::Fresh { wake_at: settled });
}

pub async fn only_cool_downs_that_are_long_over_are_purged(store: Arc<dyn Store>) {
    let settled = |n: u64| AT.plus(Duration::from_secs(10 * n));
    for n in 1..=3 {
        accept(&store, nth(n.into())).await;
        end(&store, n.into(), TaskStatus::Timeout, settled(n)).await;
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

pub async fn stored_data_is_counted_with_its_age(store: Arc<dyn Store>) {
    let figures = async || {
        let figures = store.figures().await.unwrap().into_iter();
        figures.map(|figure| (figure.what, figure.rows, figure.oldest)).collect::<Vec<_>>()
    };
    let empty = ["ended tasks", "timelines of tasks", "cool-downs", "deduplication keys", "ledger", "acts"];
    let empty = empty.map(|what| (what, 0, None));
    assert_eq!(figures().await, empty);
    accept(&store, new(1, "k", "t")).await;
    advance(&store, 1, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    end_at(&store, 1, TaskStatus::Success, AT, Timestamp(300)).await;
    store.mark(vec![mark("nonce", "a write")]).await.unwrap();
    let (rows, oldest): (Vec<_>, Vec<_>) = figures().await.into_iter().map(|(_, rows, oldest)| (rows, oldest)).unzip();
    assert_eq!(rows, [1, 2, 1, 1, 1, 0]);
    assert_eq!((oldest[0], oldest[3]), (Some(Timestamp(300)), Some(AT)));
}

pub async fn the_recorded_anchor_of_the_audit_is_read_unchanged(store: Arc<dyn Store>) {
    assert_eq!(store.audit_anchor().await.unwrap(), None);
    let head = |number, byte| Head { number, hash: [byte; 32] };
    let mut anchor = Anchor { newest: head(u64::MAX, 1), pruned: head(3, 2), acts: 7 };
    for number in [9, 10] {
        anchor.newest.number = number;
        store.put_audit_anchor(anchor).await.unwrap();
        assert_eq!(store.audit_anchor().await.unwrap(), Some(anchor));
    }
}

/// Waits for the rows: a store may show a row only when older transactions of other tests have
/// ended.
pub async fn ledger(store: &Arc<dyn Store>, rows: usize) -> Vec<LedgerRow> {
    let begun = Instant::now();
    loop {
        let found = store.ledger(0, 999).await.unwrap();
        if found.len() >= rows {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{rows} rows are not there: {found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
