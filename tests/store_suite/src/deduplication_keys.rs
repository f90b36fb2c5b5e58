//! Deduplication keys, written with a task or alone.

use super::*;

pub fn mark(space: &'static str, key: &str) -> DeduplicationKey {
    DeduplicationKey { space, key: key.as_bytes().into(), until: AT }
}

fn is_conflict<T>(answer: Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Conflict(_)))
}

pub async fn marks_are_written_with_their_task_or_nothing_is(store: Arc<dyn Store>) {
    store.accept(new(1, "k", "t"), vec![mark("nonce", "a"), mark("nonce", "b")]).await.unwrap();
    // One existing key is enough for a conflict, also for a duplicate or a busy target; so is the
    // same key twice.
    for (key, target) in [("l", "u"), ("k", "u"), ("l", "t")] {
        let marks = vec![mark("nonce", "c"), mark("nonce", "a")];
        assert!(is_conflict(store.accept(new(2, key, target), marks).await));
    }
    assert!(is_conflict(store.accept(new(2, "l", "u"), vec![mark("nonce", "c"), mark("nonce", "c")]).await));
    assert_eq!((store.task(id(2)).await.unwrap(), repeat(&store, "app", "l").await), (None, None));
    // The attempts leave nothing behind; neither does a task that cannot be accepted.
    assert!(is_conflict(store.accept(new(1, "l", "u"), vec![mark("nonce", "c")]).await));
    store.accept(new(2, "l", "u"), vec![mark("nonce", "c"), mark("other", "a")]).await.unwrap();
    assert!(is_conflict(store.mark(vec![mark("nonce", "c")]).await));
}

pub async fn marks_of_a_call_that_is_answered_without_a_task_are_written_too(store: Arc<dyn Store>) {
    accept(&store, new(1, "k", "t")).await;
    let hit = store.accept(new(2, "k", "t"), vec![mark("nonce", "hit")]).await.unwrap();
    let busy = store.accept(new(2, "l", "t"), vec![mark("nonce", "busy")]).await.unwrap();
    assert!(matches!((&hit, &busy), (Acceptance::Hit(_), Acceptance::Busy { .. })), "{hit:?} {busy:?}");
    end(&store, 1, TaskStatus::Success, AT).await;
    for key in ["hit", "busy"] {
        assert!(is_conflict(store.accept(new(2, "l", "t"), vec![mark("nonce", key)]).await), "{key}");
    }
}

pub async fn a_mark_is_made_once_and_again_after_it_was_purged(store: Arc<dyn Store>) {
    let until = |key: &str, millis| DeduplicationKey { until: Timestamp(millis), ..mark("nonce", key) };
    store.mark(vec![until("c", 30), until("a", 10), until("b", 20)]).await.unwrap();
    assert!(is_conflict(store.mark(vec![until("d", 40), until("a", 99)]).await));
    store.mark(vec![until("d", 40), mark("other", "a")]).await.unwrap();
    store.mark(vec![]).await.unwrap();
    // Keys are read in pages, in order.
    let page = async |after: Option<&str>| {
        let page = store.marks("nonce", after.map(|key| key.as_bytes().into()), 3).await.unwrap();
        page.iter().map(|key| String::from_utf8(key.to_vec()).unwrap()).collect::<String>()
    };
    assert_eq!([page(None).await, page(Some("c")).await, page(Some("d")).await], ["abc", "d", ""]);
    // The keys with the latest `until` are deleted last, and no key is deleted early.
    assert_eq!(store.purge_marks(Timestamp(10), 9).await.unwrap(), 0);
    assert_eq!(store.purge_marks(Timestamp(40), 2).await.unwrap(), 2);
    store.mark(vec![until("a", 50), until("b", 50)]).await.unwrap();
    assert!(is_conflict(store.mark(vec![until("c", 50)]).await));
    assert_eq!(store.purge_marks(Timestamp(40), 9).await.unwrap(), 1);
    store.mark(vec![until("c", 50)]).await.unwrap();
    assert!(is_conflict(store.mark(vec![until("d", 50)]).await));
}
