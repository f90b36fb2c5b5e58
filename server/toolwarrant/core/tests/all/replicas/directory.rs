//! The registry as one of several copies.

use super::harness::{TestReplica, origin, sleep};
use super::link::{StoreLink, Weather};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::access::{AccessError, Granted, Grants};
use toolwarrant_core::act::ActFilter;
use toolwarrant_core::cluster::{Beat, ClusterStore};
use toolwarrant_core::registry::{Changed, Durability, RegistryError};
use toolwarrant_core::store::{ApplicationRow, DirectoryStore, KeyRow};
use toolwarrant_memory::Memory;

async fn pair() -> (Memory, TestReplica, TestReplica) {
    let store = Memory::default();
    let (one, two) = (TestReplica::start(&store, "one").await, TestReplica::start(&store, "two").await);
    (store, one, two)
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_change_reaches_the_other_replica_and_spent_requests_still_count() {
    let (_store, one, two) = pair().await;
    let owner = one.create("app").await;
    let key = one.issue(&owner).await;
    let on_two = two.answer(&key).expect("it is in force when the method returns");
    assert_eq!((&*on_two.id, &*on_two.name, on_two.window.limit()), (&*owner, "app", 300));
    on_two.window.admit(None, Timestamp(0), 200).unwrap();
    let change = async |edit: fn(&mut ApplicationRow)| {
        let changed = one.registry.change(&owner, &origin(), edit).await.unwrap();
        assert_eq!(changed.durability, Durability::Stored);
        two.answer(&key)
    };
    let changed = change(|row| row.name = "other".to_owned()).await.unwrap();
    assert_eq!(&*changed.name, "other");
    let limited = change(|row| row.requests_per_minute = 250).await.unwrap();
    assert!(Arc::ptr_eq(&limited.window, &on_two.window) && limited.window.limit() == 250);
    assert!(
        limited.window.admit(None, Timestamp(0), 51).is_err() && limited.window.admit(None, Timestamp(0), 50).is_ok()
    );
    assert!(!change(|row| row.grants = Grants::nothing()).await.unwrap().grants.covers("tray", "t-1"));
    assert!(change(|row| row.suspended_at = Some(Timestamp(1))).await.unwrap().suspended);
    assert!(!change(|row| row.suspended_at = None).await.unwrap().suspended);

    let suspend = |row: &mut KeyRow| row.suspended_at = Some(Timestamp(1));
    let _ = one.registry.change_key(&key.key_id, &origin(), suspend).await.unwrap();
    assert_eq!(two.answer(&key).unwrap_err(), AccessError::Unauthenticated);
    let _ = one.registry.change_key(&key.key_id, &origin(), |row| row.suspended_at = None).await.unwrap();
    let rotated = one.registry.rotate_key(&key.key_id, None, &origin()).await.unwrap();
    assert!(two.answer(&key).is_ok() && two.answer(&rotated).is_ok());
    // The other replica changes what it did not make.
    let last = two.registry.rotate_key(&key.key_id, None, &origin()).await.unwrap();
    assert_eq!(one.answer(&key).unwrap_err(), AccessError::Unauthenticated, "its third secret ends the first");
    assert!(one.answer(&last).is_ok());
    let _ = two.registry.change(&owner, &origin(), |row| row.delete(Timestamp(2))).await.unwrap();
    assert_eq!(one.answer(&last).unwrap_err(), AccessError::Unauthenticated);
    assert!(one.registry.issue_key(&owner, None, &origin()).await.is_err());
    assert!(one.registry.key(&key.key_id).await.unwrap().secrets.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rotation_that_ends_a_secret_waits_until_it_has_ended_everywhere() {
    let (_store, one, two) = pair().await;
    let key = one.issue(&one.create("app").await).await;
    let _ = one.registry.rotate_key(&key.key_id, None, &origin()).await.unwrap();
    two.set(Weather::Silent);
    let _ = one.registry.rotate_key(&key.key_id, None, &origin()).await.unwrap();
    assert_eq!(two.answer(&key).unwrap_err(), AccessError::NoLease);
}

#[tokio::test(start_paused = true)]
async fn the_last_use_of_a_key_is_known_after_another_replica_has_revoked_it() {
    let (store, one, two) = pair().await;
    let key = one.issue(&one.create("app").await).await;
    assert!(two.answer(&key).is_ok());
    let _ = one.revoke(&key).await;
    assert_eq!(store.uses(None).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_changes_at_once_both_survive() {
    for seed in 0..60 {
        let store = Memory::default();
        let one = TestReplica::join(StoreLink::join(&store, "one", seed, 30)).await;
        let two = TestReplica::join(StoreLink::join(&store, "two", seed + 1_000, 30)).await;
        let owner = one.create("app").await;
        let key = one.issue(&owner).await;
        sleep(2_000).await;
        let edits: [fn(&mut ApplicationRow); 6] = [
            |row| row.suspended_at = Some(Timestamp(1)),
            |row| row.permissions.push("print".to_owned()),
            |row| row.permissions.retain(|held| held != "look"),
            |row| drop(row.labels.insert("team".to_owned(), "blue".to_owned())),
            |row| row.requests_per_minute = 7,
            |row| {
                let all = || ["tray"].into_iter();
                row.grants.spell_out(all()).entry("tray".into()).or_insert_with(|| Granted::some([])).remove("t-1");
            },
        ];
        let (origin_one, origin_two) = (origin(), origin());
        let apply = async |replica: &TestReplica, from: usize| {
            for edit in edits.iter().skip(from).step_by(2) {
                let changed = replica.registry.change(&owner, &origin_one, edit).await.expect("it is planned again");
                assert_eq!(changed.durability, Durability::Stored);
            }
        };
        let rotate = two.registry.rotate_key(&key.key_id, None, &origin_two);
        let ((), (), rotated) = tokio::join!(apply(&one, 0), apply(&two, 1), rotate);
        for replica in [&one, &two] {
            let row = replica.registry.find("app").await.unwrap();
            assert_eq!(row.suspended_at, Some(Timestamp(1)), "{seed}");
            assert_eq!((&*row.permissions, row.requests_per_minute), (&["print".to_owned()][..], 7), "{seed}");
            assert!(
                row.labels.contains_key("team")
                    && !row.grants.covers("tray", "t-1")
                    && row.grants.covers("tray", "t-2")
            );
            assert!(replica.answer(rotated.as_ref().unwrap()).unwrap().suspended, "{seed}");
        }
        let filter = ActFilter { limit: 100, ..ActFilter::default() };
        assert_eq!(store.acts(filter).await.unwrap().len(), 9, "each act once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_others_overtake_each_time_asks_for_a_repetition() {
    let (_store, one, two) = pair().await;
    let owner = one.create("app").await;
    let key = one.issue(&owner).await;
    two.set(Weather::Crowded);
    let refused = [
        two.registry.change(&owner, &origin(), |row| row.requests_per_minute = 400).await.map(drop).unwrap_err(),
        two.registry.revoke_key(&key.key_id, &origin()).await.map(drop).unwrap_err(),
    ];
    for refused in refused {
        assert!(matches!(&refused, RegistryError::Unavailable(why) if why.contains("repeat the command")), "{refused}");
    }
    assert!(two.answer(&key).is_ok(), "nothing has changed");
    two.set(Weather::Fair);
    let _ = two.revoke(&key).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_replica_took_away_without_the_store_stays_so_next_to_the_changes_of_others() {
    let (store, one, two) = pair().await;
    let owner = one.create("app").await;
    let keys = [one.issue(&owner).await, one.issue(&owner).await, one.issue(&owner).await];
    let hide = |row: &mut ApplicationRow, id: &str| {
        row.grants.spell_out(["tray"]).entry("tray".into()).or_insert_with(|| Granted::some([])).remove(id);
    };
    two.set(Weather::Down);
    let owed = |changed: Result<Changed, RegistryError>| {
        let why = changed.unwrap_err().to_string();
        assert!(why.contains("in force, but not stored") && why.contains("other replicas"), "{why}");
    };
    let take = |row: &mut ApplicationRow| {
        (row.requests_per_minute, row.suspended_at) = (50, Some(Timestamp(1)));
        hide(row, "t-1");
    };
    owed(two.registry.change(&owner, &origin(), take).await);
    owed(two.registry.revoke_key(&keys[0].key_id, &origin()).await);
    let expire = |row: &mut KeyRow| row.expires_at = Some(Timestamp(u64::MAX / 2));
    owed(two.registry.change_key(&keys[1].key_id, &origin(), expire).await);
    assert!(matches!(two.registry.settle().await, Durability::Owed(_)));
    assert!(one.answer(&keys[0]).is_ok(), "the other replica cannot know");
    let give = |row: &mut ApplicationRow| {
        row.permissions.push("print".to_owned());
        row.requests_per_minute = 40;
        hide(row, "t-2");
    };
    // It is stored, and waits for the other replica.
    let waiting = tokio::time::timeout(Duration::from_millis(500), one.registry.change(&owner, &origin(), give)).await;
    assert!(waiting.is_err());
    let rotated = one.registry.rotate_key(&keys[0].key_id, None, &origin()).await.unwrap();
    let later = one.registry.rotate_key(&keys[1].key_id, None, &origin()).await.unwrap();

    two.set(Weather::Fair);
    sleep(3_000).await;
    assert_eq!(two.answer(&rotated).unwrap_err(), AccessError::Unauthenticated, "a revoked key stays revoked");
    assert_eq!(two.registry.settle().await, Durability::Stored);
    sleep(3_000).await;
    let (version, rows) =
        (store.changes(0).await.unwrap().version, store.beat(Beat::default()).await.unwrap().replicas);
    assert!(rows.iter().all(|row| row.seen == version), "{rows:?}");
    for replica in [&one, &two] {
        let row = replica.registry.find("app").await.unwrap();
        assert_eq!((row.requests_per_minute, row.suspended_at), (40, Some(Timestamp(1))));
        assert_eq!(row.permissions, ["look", "print"]);
        assert_eq!(["t-1", "t-2", "t-3"].map(|id| row.grants.covers("tray", id)), [false, false, true]);
        for key in [&keys[0], &rotated] {
            assert_eq!(replica.answer(key).unwrap_err(), AccessError::Unauthenticated);
        }
        assert!([&keys[1], &keys[2], &later].map(|key| replica.answer(key).is_ok()) == [true; 3]);
        assert!(replica.registry.key(&keys[1].key_id).await.unwrap().expires_at.is_some());
    }
    let filter = ActFilter { limit: 100, ..ActFilter::default() };
    assert_eq!(store.acts(filter).await.unwrap().len(), 10, "each act once");
}

#[tokio::test(start_paused = true)]
async fn a_key_of_an_application_that_another_replica_deletes_without_the_store_is_dead() {
    let (_store, one, two) = pair().await;
    let owner = one.create("app").await;
    two.set(Weather::Down);
    two.registry.change(&owner, &origin(), |row| row.delete(Timestamp(1))).await.unwrap_err();
    let key = one.issue(&owner).await;
    two.set(Weather::Fair);
    sleep(3_000).await;
    assert_eq!(two.answer(&key).unwrap_err(), AccessError::Unauthenticated);
    assert_eq!(two.registry.settle().await, Durability::Stored);
    sleep(3_000).await;
    assert_eq!(one.answer(&key).unwrap_err(), AccessError::Unauthenticated);
    assert!(two.registry.key(&key.key_id).await.unwrap().secrets.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_found_and_a_revocation_is_written_with_one_act() {
    let (store, one, two) = pair().await;
    let owner = one.create("app").await;
    let key = one.issue(&owner).await;
    two.set(Weather::Deaf);
    two.registry.revoke_key(&key.key_id, &origin()).await.unwrap_err();
    assert!(store.changes(0).await.unwrap().keys[0].secrets.is_empty(), "it has landed");
    two.set(Weather::Fair);
    sleep(3_000).await;
    assert_eq!(one.answer(&key).unwrap_err(), AccessError::Unauthenticated);
    assert_eq!(two.registry.settle().await, Durability::Stored);
    let filter = ActFilter { limit: 100, ..ActFilter::default() };
    assert_eq!(store.acts(filter).await.unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_gives_fails_without_the_store_and_changes_nothing() {
    let (_store, one, two) = pair().await;
    let owner = one.create("app").await;
    for weather in [Weather::Down, Weather::Silent] {
        two.set(weather);
        let errors = [
            two.registry.issue_key(&owner, None, &origin()).await.map(drop).unwrap_err(),
            two.registry.issue_key("app_unknown", None, &origin()).await.map(drop).unwrap_err(),
            two.registry.change(&owner, &origin(), |row| row.requests_per_minute = 400).await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, RegistryError::Unavailable(_)), "{error}");
        }
        assert_eq!(two.registry.find("app").await.unwrap().requests_per_minute, 300);
    }
}
