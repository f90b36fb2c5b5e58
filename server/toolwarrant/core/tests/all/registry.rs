//! The registry, by its public interface.

use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::{Credentials, Grants};
use toolwarrant_core::act::{Channel, Claims, Operator, Origin, Role};
use toolwarrant_core::lease::Lease;
use toolwarrant_core::registry::{Durability, KeyPrefixes, NewApplication, NewKey, Registry};
use toolwarrant_core::store::{DirectoryStore, KeyRow, SecretRow};
use toolwarrant_memory::Memory;

use crate::contract::CATALOGUE;

const PREFIXES: KeyPrefixes = KeyPrefixes { id: "tk_", secret: "ts_" };

async fn open(store: &Arc<Memory>) -> Registry {
    open_with(store, &Clock::manual(Timestamp(0)), None).await
}

pub(crate) async fn open_with<S: DirectoryStore>(store: &Arc<S>, clock: &Clock, lease: Option<Lease>) -> Registry {
    let random = Random::System;
    let keyring = KeyRing::new("test", &[7; 32], random.clone());
    let registry = Registry::open(store.clone(), &CATALOGUE, PREFIXES, keyring, clock.clone(), random, lease);
    registry.await.expect("a store that can be read")
}

pub(crate) fn origin() -> Origin {
    let claims = Claims::default();
    let operator = Operator { role: Role::Owner, name: "alice".to_owned(), uid: 7, channel: Channel::Offline, claims };
    Origin { operator, command: "test".to_owned() }
}

pub(crate) async fn one(registry: &Registry) -> String {
    let name = "one".to_owned();
    let new = NewApplication { name, permissions: Vec::new(), grants: Grants::everything(), requests_per_minute: 300 };
    registry.create(new, &origin()).await.expect("a new name").object
}

/// Also makes an application, with a key that ends then.
async fn open_with_key(ends: Option<Timestamp>) -> (Arc<Memory>, Registry, NewKey) {
    let store = Arc::default();
    let registry = open(&store).await;
    let key = registry.issue_key(&one(&registry).await, ends, &origin()).await.expect("stored");
    (store, registry, key)
}

fn lives(registry: &Registry, key: &NewKey) -> bool {
    lives_at(registry, key, Timestamp(0))
}

fn lives_at(registry: &Registry, key: &NewKey, now: Timestamp) -> bool {
    let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
    registry.access().authenticate(shown, None, &Clock::manual(now)).is_ok()
}

#[tokio::test]
async fn a_new_key_has_the_recognisable_form() {
    let (_, _, key) = open_with_key(None).await;
    for (text, prefix, digits) in [(&key.key_id, "tk_", 16), (key.secret.expose(), "ts_", 64)] {
        let hex = text.strip_prefix(prefix).unwrap();
        assert_eq!(hex.len(), digits, "{text}");
        assert!(hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{text}");
    }
}

#[tokio::test]
async fn rotation_keeps_the_latest_two_secrets_also_over_a_restart() {
    let (store, registry, first) = open_with_key(None).await;
    let second = registry.rotate_key(&first.key_id, None, &origin()).await.unwrap();
    assert_eq!([&first, &second].map(|key| lives(&registry, key)), [true, true]);
    let third = registry.rotate_key(&first.key_id, None, &origin()).await.unwrap();
    for registry in [&registry, &open(&store).await] {
        assert_eq!([&first, &second, &third].map(|key| lives(registry, key)), [false, true, true]);
    }
}

#[tokio::test]
async fn a_key_is_in_force_for_the_application_and_with_the_secret_that_it_was_made_for_and_no_change_of_its_row_moves_it()
 {
    let store: Arc<Memory> = Arc::default();
    let registry = open(&store).await;
    let mine = one(&registry).await;
    let new = NewApplication {
        name: "two".to_owned(),
        permissions: Vec::new(),
        grants: Grants::everything(),
        requests_per_minute: 300,
    };
    let theirs = registry.create(new, &origin()).await.unwrap().object;
    let issue = async |application: &str| registry.issue_key(application, None, &origin()).await.unwrap();
    let (own, victim, other) = (issue(&mine).await, issue(&theirs).await, issue(&theirs).await);
    let (_, rows) = store.directory().await.unwrap();
    let row = |key: &NewKey| rows.iter().find(|row| row.id == key.key_id).unwrap().clone();
    let (own_row, victims) = (row(&own), row(&victim));
    let verifier = SecretRow { verifier: own_row.secrets[0].verifier, ..victims.secrets[0].clone() };
    let both = [&victims.secrets[..], &own_row.secrets[..]].concat();
    for (case, changed) in [
        ("another application", KeyRow { application: theirs.clone(), ..own_row.clone() }),
        ("a secret of another key", KeyRow { secrets: own_row.secrets.clone(), ..victims.clone() }),
        ("a second secret of another key", KeyRow { secrets: both, ..victims.clone() }),
        ("a verifier of another key", KeyRow { secrets: vec![verifier], ..victims.clone() }),
        ("a copy", KeyRow { id: "tk_copy".to_owned(), application: theirs.clone(), ..own_row.clone() }),
    ] {
        let shown = NewKey { key_id: changed.id.clone(), secret: own.secret.clone(), act_id: String::new() };
        store.put_key(changed, Vec::new()).await.unwrap();
        let registry = open(&store).await;
        assert!(!lives(&registry, &shown), "{case}");
        registry.reload_keys().await.unwrap();
        assert!(!lives(&registry, &shown) && lives(&registry, &other), "{case}");
        for row in [&own_row, &victims] {
            store.put_key(row.clone(), Vec::new()).await.unwrap();
        }
    }
    let registry = open(&store).await;
    assert_eq!([&own, &victim].map(|key| lives(&registry, key)), [true, true], "as they were made");
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_for_ever_and_others_stay() {
    let store = Arc::default();
    let registry = open(&store).await;
    let owner = one(&registry).await;
    let (gone, kept) = (
        registry.issue_key(&owner, None, &origin()).await.unwrap(),
        registry.issue_key(&owner, None, &origin()).await.unwrap(),
    );
    assert_eq!(registry.revoke_key(&gone.key_id, &origin()).await.unwrap().durability, Durability::Stored);
    for registry in [&registry, &open(&store).await] {
        assert_eq!([&gone, &kept].map(|key| lives(registry, key)), [false, true]);
        let refused = registry.rotate_key(&gone.key_id, None, &origin()).await.unwrap_err().to_string();
        assert!(refused.contains("is revoked"), "{refused}");
    }
}

#[tokio::test]
async fn a_key_ends_at_its_time_also_over_a_restart() {
    let ends = Timestamp(5_000);
    let (store, registry, key) = open_with_key(Some(ends)).await;
    for registry in [&registry, &open(&store).await] {
        assert_eq!([Timestamp(4_999), ends].map(|now| lives_at(registry, &key, now)), [true, false]);
    }
}

#[tokio::test]
async fn an_application_is_suspended_resumed_and_deleted_for_all_its_keys_also_over_a_restart() {
    let store = Arc::default();
    let registry = open(&store).await;
    let owner = one(&registry).await;
    let key = registry.issue_key(&owner, None, &origin()).await.unwrap();
    let state = |registry: &Registry| {
        let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
        let caller = registry.access().authenticate(shown, None, &Clock::manual(Timestamp(0))).ok();
        caller.map(|caller| caller.application.suspended)
    };
    for (suspended_at, expected) in [(Some(Timestamp(1)), Some(true)), (None, Some(false))] {
        let changed = registry.change(&owner, &origin(), |row| row.suspended_at = suspended_at).await.unwrap();
        assert_eq!(changed.durability, Durability::Stored);
        assert_eq!([state(&registry), state(&open(&store).await)], [expected, expected]);
    }
    let _ = registry.change(&owner, &origin(), |row| row.delete(Timestamp(2))).await.unwrap();
    let again = one(&registry).await;
    assert_ne!(again, owner, "the name is free");
    for registry in [&registry, &open(&store).await] {
        assert_eq!(state(registry), None);
        assert_eq!(registry.find("one").await.unwrap().id, again);
        assert_eq!(registry.find(&owner).await.unwrap().deleted_at, Some(Timestamp(2)));
        let refusals = [
            registry.issue_key(&owner, None, &origin()).await.map(drop).unwrap_err().to_string(),
            registry.change(&owner, &origin(), |row| row.deleted_at = None).await.map(drop).unwrap_err().to_string(),
        ];
        assert!(refusals[0].contains("no application") && refusals[1].contains("was deleted"), "{refusals:?}");
    }
}

#[tokio::test]
async fn another_limit_counts_with_the_requests_of_the_last_minute() {
    let registry = open(&Arc::default()).await;
    let owner = one(&registry).await;
    let key = registry.issue_key(&owner, None, &origin()).await.unwrap();
    let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
    let window = || {
        let caller = registry.access().authenticate(shown, None, &Clock::manual(Timestamp(0))).unwrap();
        Arc::clone(&caller.application.window)
    };
    let admits = |n| window().admit(None, Timestamp(0), n).is_ok();
    assert!(admits(250));
    for (limit, room) in [(260, 10), (100, 0), (400, 140)] {
        let _ = registry.change(&owner, &origin(), |row| row.requests_per_minute = limit).await.unwrap();
        assert!(!admits(room + 1) && admits(room), "{limit}");
    }
    assert_eq!((window().usage(Timestamp(0)), window().usage(Timestamp(61_000))), (400, 0));
}

#[tokio::test]
async fn an_older_secret_ends_after_its_grace_and_a_suspended_key_keeps_its_secrets() {
    let (store, registry, first) = open_with_key(None).await;
    let second = registry.rotate_key(&first.key_id, Some(Duration::from_secs(5)), &origin()).await.unwrap();
    let live = |registry: &Registry, at| [&first, &second].map(|key| lives_at(registry, key, Timestamp(at)));
    for registry in [&registry, &open(&store).await] {
        assert_eq!([live(registry, 4_999), live(registry, 5_000)], [[true, true], [false, true]]);
    }
    for (suspended_at, expected) in [(Some(Timestamp(0)), [false, false]), (None, [true, true])] {
        let edit = |row: &mut KeyRow| row.suspended_at = suspended_at;
        let _ = registry.change_key(&first.key_id, &origin(), edit).await.unwrap();
        assert_eq!([live(&registry, 0), live(&open(&store).await, 0)], [expected, expected]);
    }
    let _ = registry.change_key(&first.key_id, &origin(), |row| row.expires_at = Some(Timestamp(3))).await.unwrap();
    assert_eq!([live(&registry, 2), live(&open(&store).await, 3)], [[true, true], [false, false]]);
}

#[tokio::test]
async fn the_last_use_of_each_secret_is_known_at_once_and_stays_over_rotations_and_restarts() {
    let (store, registry, first) = open_with_key(None).await;
    let use_it = |registry: &Registry, key: &NewKey, at: u64, from: [u8; 4]| {
        let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
        let clock = Clock::manual(Timestamp(at));
        registry.access().authenticate(shown, Some(from.into()), &clock).unwrap();
    };
    let uses = async |registry: &Registry| {
        let uses = registry.uses(None).await.unwrap().remove(&first.key_id).unwrap_or_default();
        let mut uses: Vec<_> = uses.iter().map(|one| (one.at.0, one.from.unwrap().to_string())).collect();
        uses.sort();
        uses
    };
    let (one, other) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    assert_eq!(uses(&registry).await, []);
    use_it(&registry, &first, 7, one);
    use_it(&registry, &first, 8, other);
    assert_eq!(uses(&registry).await, [(7, "10.0.0.1".to_owned())], "the first use since the last collection");
    registry.store_uses().await.unwrap();
    use_it(&registry, &first, 9, other);
    let second = registry.rotate_key(&first.key_id, None, &origin()).await.unwrap();
    use_it(&registry, &second, 10, one);
    let both = [(9, "10.0.0.2".to_owned()), (10, "10.0.0.1".to_owned())];
    assert_eq!(uses(&registry).await, both);
    let _ = registry.revoke_key(&first.key_id, &origin()).await.unwrap();
    assert_eq!(uses(&open(&store).await).await, both, "also of secrets that have ended within the minute");
    let wrong = Credentials { key_id: &first.key_id, secret: "wrong" };
    registry.access().authenticate(wrong, Some(one.into()), &Clock::manual(Timestamp(20))).unwrap_err();
    assert_eq!(uses(&registry).await, both, "a refused use is no use");
}

#[tokio::test]
async fn without_a_lease_nothing_changes_because_another_process_may_lead() {
    let (store, clock) = (Arc::new(Memory::default()), Clock::manual(Timestamp(0)));
    let lease = Lease::new(clock.clone());
    lease.extend(lease.begin(), Duration::from_secs(9));
    let registry = open_with(&store, &clock, Some(lease.clone())).await;
    let owner = one(&registry).await;
    let key = registry.issue_key(&owner, None, &origin()).await.unwrap();
    clock.advance(Duration::from_secs(10));
    let passing = async {
        loop {
            clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
    };
    let changes = async {
        let revoked = registry.revoke_key(&key.key_id, &origin()).await.map(drop);
        [revoked, registry.issue_key(&owner, None, &origin()).await.map(drop)]
    };
    let refused = tokio::select! {
        refused = changes => refused,
        () = passing => unreachable!(),
    };
    for refused in refused {
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with("nothing has changed: this is not stored here"), "{said}");
    }
    assert_eq!(store.directory().await.unwrap().1[0].secrets.len(), 1);
    lease.extend(lease.begin(), Duration::from_secs(9));
    assert!(lives_at(&registry, &key, clock.now()), "it is not revoked");
    let _ = registry.revoke_key(&key.key_id, &origin()).await.unwrap();
    assert!(store.directory().await.unwrap().1[0].secrets.is_empty());
}
