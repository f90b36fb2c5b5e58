//! Every store reports a broken rule in the same words, and reports nothing else.

use super::{AT, accept, change, id, new, nth};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_store::{IntegrityRule, Store};
use toolwarrant_tasks::machine::Entry::{self, Charge, Refund, Release, ReverseCharge};
use toolwarrant_tasks::task::{Phase, Task, TaskStatus};

const ALL: [IntegrityRule; 8] = [
    IntegrityRule::Integrity,
    IntegrityRule::Layout,
    IntegrityRule::Refunds,
    IntegrityRule::Charges,
    IntegrityRule::TargetLocks,
    IntegrityRule::Secrets,
    IntegrityRule::Deadlines(AT),
    IntegrityRule::Records,
];

/// Number of attempts to send, and true if anything may have left.
type Sends = (u8, bool);
const NEVER: Sends = (0, false);
const UNSENT: Sends = (3, false);
const SENT: Sends = (1, true);

/// Accepts the task on a target of its own.
async fn end_task(store: &Arc<dyn Store>, number: u128, sends: Sends, status: TaskStatus, entries: Vec<Entry>) {
    accept(store, nth(number)).await;
    step(store, number, sends, Phase::Done(status), entries).await;
}

async fn step(store: &Arc<dyn Store>, number: u128, sends: Sends, phase: Phase, entries: Vec<Entry>) {
    let finished_at = matches!(phase, Phase::Done(_)).then_some(AT);
    let edit = |task| Task { phase, attempts: sends.0, left: sends.1, finished_at, ..task };
    change(store, id(number), AT, entries, edit).await.unwrap();
}

pub async fn what_goes_its_way_breaks_no_rule(store: Arc<dyn Store>) {
    store.touch().await.unwrap();
    go_each_way(&store).await;
    for rule in ALL {
        assert_eq!(store.violations(rule).await.unwrap(), [""; 0], "{rule:?}");
    }
}

/// Makes tasks with every end, and some that are in flight.
async fn go_each_way(store: &Arc<dyn Store>) {
    end_task(store, 1, SENT, TaskStatus::FailedSilent, vec![Charge, Refund, Release(AT)]).await;
    end_task(store, 2, SENT, TaskStatus::Success, vec![Charge, Release(AT)]).await;
    end_task(store, 3, UNSENT, TaskStatus::Failed, vec![Charge, ReverseCharge, Release(AT)]).await;
    end_task(store, 4, NEVER, TaskStatus::Failed, vec![Release(AT)]).await;
    end_task(store, 7, SENT, TaskStatus::SuccessUnverified, vec![Charge, Release(AT)]).await;
    accept(store, new(5, "k5", "t5")).await;
    accept(store, new(6, "k6", "t1")).await;
    step(store, 6, UNSENT, Phase::Sending, vec![Charge]).await;
}

/// Ledger entries outlive their task.
pub async fn what_is_left_of_purged_tasks_breaks_no_rule(store: Arc<dyn Store>) {
    go_each_way(&store).await;
    for purged in [1, 4] {
        assert_eq!(store.purge(Timestamp(AT.0 + 1), purged).await.unwrap(), purged);
        for rule in ALL {
            assert_eq!(store.violations(rule).await.unwrap(), [""; 0], "{rule:?}");
        }
    }
    assert_eq!(store.task(id(1)).await.unwrap(), None);
}

pub async fn each_broken_rule_names_its_task(store: Arc<dyn Store>) {
    end_task(&store, 1, SENT, TaskStatus::FailedSilent, vec![Charge, Release(AT)]).await;
    end_task(&store, 2, SENT, TaskStatus::Timeout, vec![Charge, Refund, Release(AT)]).await;
    end_task(&store, 3, SENT, TaskStatus::FailedSilent, vec![Refund, Release(AT)]).await;
    end_task(&store, 4, SENT, TaskStatus::FailedSilent, vec![Charge, ReverseCharge, Refund, Release(AT)]).await;
    end_task(&store, 5, NEVER, TaskStatus::Failed, vec![ReverseCharge, Release(AT)]).await;
    accept(&store, new(7, "k7", "t7")).await;
    end_task(&store, 8, UNSENT, TaskStatus::Failed, vec![Charge, Release(AT)]).await;
    end_task(&store, 9, NEVER, TaskStatus::Failed, vec![Charge, Release(AT)]).await;
    let deadline = IntegrityRule::Deadlines(AT.plus(Duration::from_secs(60)));
    let expected: [(IntegrityRule, &[(u128, &str)]); 3] = [
        (
            IntegrityRule::Refunds,
            &[
                (1, "ended as failed_silent and has no refund"),
                (2, "has a refund and did not end as failed_silent"),
                (3, "has a refund and no charge that it gives back"),
                (4, "has a refund and no charge that it gives back"),
            ],
        ),
        (
            IntegrityRule::Charges,
            &[
                (3, "has no charge, and one is due"),
                (4, "has a reversal that is not due"),
                (5, "has a reversal and no charge that it takes back"),
                (5, "has a reversal that is not due"),
                (8, "has no reversal, and one is due"),
                (9, "has a charge that is not due"),
            ],
        ),
        (deadline, &[(7, "is in flight, and should have ended at 2026-07-28T12:01:00.123Z")]),
    ];
    for (rule, expected) in expected {
        let mut found = store.violations(rule).await.unwrap();
        found.sort();
        let expected: Vec<_> = expected.iter().map(|(number, what)| format!("{} {what}", id(*number))).collect();
        assert_eq!(found, expected, "{rule:?}");
    }
}
