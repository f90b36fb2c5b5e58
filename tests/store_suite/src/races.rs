//! Calls at the same time from many threads: one wins, and each other call gets the right answer.

use super::*;

pub async fn of_many_simultaneous_equal_calls_one_is_accepted_and_all_get_its_task(store: Arc<dyn Store>) {
    // With one key on two targets, so that no target lock decides.
    let with_key: Vec<_> = (1..=64).map(|n| new(n, "k", &format!("t{}", n % 2))).collect();
    for calls in [with_key, (101..=164).map(|n| without_key(n, "u")).collect()] {
        let (fresh, others) = race(&store, calls.into_iter()).await;
        assert_eq!((fresh.len(), others.len()), (1, 63));
        for other in others {
            assert!(matches!(&other, Acceptance::Hit(hit) if hit.task_id == fresh[0].to_string()), "{other:?}");
        }
    }
}

pub async fn of_many_simultaneous_writes_on_one_target_one_is_accepted_and_the_others_name_it(store: Arc<dyn Store>) {
    for round in 0..8 {
        let numbers = 100 * round..100 * round + 32;
        let (fresh, others) = race(&store, numbers.map(|n| new(n, &format!("k{n}"), &format!("t{round}")))).await;
        assert_eq!((fresh.len(), others.len()), (1, 31));
        for other in others {
            assert!(matches!(other, Acceptance::Busy { id, .. } if id == fresh[0]), "{other:?}");
        }
    }
}

pub async fn a_thousand_writes_on_different_targets_are_all_accepted_and_can_be_read_once_answered(
    store: Arc<dyn Store>,
) {
    at_once((1..=1_000).map(|n| {
        let store = Arc::clone(&store);
        async move {
            accept(&store, nth(n)).await;
            assert!(store.task(id(n)).await.unwrap().is_some());
        }
    }))
    .await;
    assert_eq!(store.in_flight(None, 2_000).await.unwrap().len(), 1_000);
}

pub async fn of_many_steps_from_one_version_one_is_written(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let task = Task::new(policy(), AT);
    let ended =
        Task { phase: Phase::Done(TaskStatus::FailedSilent), finished_at: Some(AT), wake_at: None, ..task.clone() };
    let sending = Task { phase: Phase::Sending, ..task };
    for (version, task, entry) in [(0, sending, Entry::Charge), (1, ended, Entry::Refund)] {
        let steps = (0..32).map(|n| {
            let (store, task, entries) = (Arc::clone(&store), task.clone(), vec![entry]);
            let step = Advance { id: id(1), version, task, entries, what: format!("by {n}").into(), at: AT };
            async move { store.advance(step).await.unwrap() }
        });
        let written = at_once(steps).await.into_iter().filter(|step| *step == Advanced::Written);
        assert_eq!(written.count(), 1);
    }
    let kinds: Vec<_> = ledger(&store, 2).await.into_iter().map(|row| row.kind).collect();
    assert_eq!((kinds, store.timeline(id(1)).await.unwrap().len()), (vec!["charge", "refund"], 3));
}

pub async fn of_many_calls_while_a_task_ends_at_most_one_gets_its_key_or_target(store: Arc<dyn Store>) {
    for round in 0..16 {
        let (first, key, target) = (100 * round, format!("k{round}"), format!("t{round}"));
        accept(&store, new(first, &key, &target)).await;
        let ending = Arc::clone(&store);
        let ending = tokio::spawn(async move { end(&ending, first, TaskStatus::Success, AT).await });
        // Alternately the same call again, and another one on the same target.
        let keys = [key.clone(), format!("{key} and another")];
        let calls = (1..32).map(|n| new(first + n, &keys[n as usize % 2], &target));
        let (fresh, others) = race(&store, calls).await;
        ending.await.unwrap();
        assert!(fresh.len() <= 1, "{fresh:?}");
        for other in others {
            let named = match other {
                Acceptance::Hit(WriteAnswer { task_id, .. }) => TaskId::parse(&task_id).unwrap(),
                Acceptance::Busy { id, .. } => id,
                Acceptance::Fresh { .. } => panic!("{other:?}"),
            };
            assert!(named == id(first) || fresh.contains(&named), "{named}");
        }
        let open = store.in_flight(None, 99).await.unwrap();
        assert_eq!(open.into_iter().map(|task| task.id).collect::<Vec<_>>(), fresh);
        for left in fresh {
            let number = u128::from_be_bytes(left.to_bytes());
            end(&store, number, TaskStatus::Success, AT).await;
        }
    }
}

pub async fn of_many_simultaneous_applications_with_one_name_one_is_created(store: Arc<dyn Store>) {
    let made = at_once((0..32).map(|n| {
        let (store, row) = (Arc::clone(&store), application(&format!("a{n}"), "name"));
        async move { store.put_application(row, vec![]).await.is_ok() }
    }));
    assert_eq!(made.await.into_iter().filter(|made| *made).count(), 1);
    assert_eq!(store.directory().await.unwrap().0.len(), 1);
}

pub async fn of_many_writes_with_one_mark_at_once_one_is_taken_on(store: Arc<dyn Store>) {
    let calls = (1..=32).map(|n| {
        let (store, new) = (Arc::clone(&store), nth(n));
        async move { store.accept(new, vec![mark("nonce", "a")]).await.is_ok() }
    });
    assert_eq!(at_once(calls).await.into_iter().filter(|fresh| *fresh).count(), 1);
    assert_eq!(store.in_flight(None, 99).await.unwrap().len(), 1);
}

/// Returns the accepted tasks, and the answers to the other calls.
async fn race(store: &Arc<dyn Store>, calls: impl Iterator<Item = Record>) -> (Vec<TaskId>, Vec<Acceptance>) {
    let calls = calls.map(|new| {
        let store = Arc::clone(store);
        async move { (new.id, store.accept(new, vec![]).await.unwrap()) }
    });
    let (fresh, others): (Vec<_>, Vec<_>) =
        at_once(calls).await.into_iter().partition(|(_, answer)| matches!(answer, Acceptance::Fresh { .. }));
    (fresh.into_iter().map(|(id, _)| id).collect(), others.into_iter().map(|(_, answer)| answer).collect())
}

async fn at_once<T: Send + 'static>(calls: impl Iterator<Item = impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    let calls: Vec<_> = calls.map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}
