//! Applications and keys: created, changed, ended, and loaded by the next process.

use std::sync::Arc;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::{Credentials, Grants};
use toolwarrant_core::registry::{Durability, KeyPrefixes, NewApplication, NewKey, Registry, RegistryError};
use toolwarrant_store::testing::memory::Memory;

mod contract {
    //! The print shop's contract, written against this crate alone.
    toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
}

use contract::CATALOGUE;

const PREFIXES: KeyPrefixes = KeyPrefixes { id: "tk_", secret: "ts_" };

async fn open(store: &Arc<Memory>) -> Registry {
    let random = Random::System;
    let keyring = KeyRing::new("test", &[7; 32], random.clone());
    let clock = Clock::manual(Timestamp(0));
    Registry::open(store.clone(), &CATALOGUE, PREFIXES, keyring, clock, random).await.expect("a store that can be read")
}

async fn one(registry: &Registry) -> String {
    let name = "one".to_owned();
    let new = NewApplication { name, permissions: Vec::new(), grants: Grants::everything(), requests_per_minute: 300 };
    registry.create(new).await.expect("a new name")
}

fn lives(registry: &Registry, key: &NewKey) -> bool {
    lives_at(registry, key, Timestamp(0))
}

fn lives_at(registry: &Registry, key: &NewKey, now: Timestamp) -> bool {
    let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
    registry.access().authenticate(shown, &Clock::manual(now)).is_ok()
}

#[tokio::test]
async fn a_new_key_has_the_recognisable_form() {
    let registry = open(&Arc::default()).await;
    let key = registry.issue_key(&one(&registry).await, None).await.unwrap();
    for (text, prefix, digits) in [(&key.key_id, "tk_", 16), (key.secret.expose(), "ts_", 64)] {
        let hex = text.strip_prefix(prefix).unwrap();
        assert_eq!(hex.len(), digits, "{text}");
        assert!(hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{text}");
    }
}

#[tokio::test]
async fn rotation_keeps_the_latest_two_secrets_also_over_a_restart() {
    let store = Arc::default();
    let registry = open(&store).await;
    let first = registry.issue_key(&one(&registry).await, None).await.unwrap();
    let second = registry.rotate_key(&first.key_id).await.unwrap();
    assert_eq!([&first, &second].map(|key| lives(&registry, key)), [true, true]);
    let third = registry.rotate_key(&first.key_id).await.unwrap();
    for registry in [&registry, &open(&store).await] {
        assert_eq!([&first, &second, &third].map(|key| lives(registry, key)), [false, true, true]);
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_for_ever_and_others_stay() {
    let store = Arc::default();
    let registry = open(&store).await;
    let owner = one(&registry).await;
    let (gone, kept) =
        (registry.issue_key(&owner, None).await.unwrap(), registry.issue_key(&owner, None).await.unwrap());
    assert_eq!(registry.revoke_key(&gone.key_id).await.unwrap(), Durability::Stored);
    for registry in [&registry, &open(&store).await] {
        assert_eq!([&gone, &kept].map(|key| lives(registry, key)), [false, true]);
        let refused = registry.rotate_key(&gone.key_id).await.unwrap_err().to_string();
        assert!(refused.contains("is revoked"), "{refused}");
    }
}

#[tokio::test]
async fn a_key_ends_at_its_time_also_over_a_restart() {
    let store = Arc::default();
    let registry = open(&store).await;
    let ends = Timestamp(5_000);
    let key = registry.issue_key(&one(&registry).await, Some(ends)).await.unwrap();
    for registry in [&registry, &open(&store).await] {
        assert_eq!([Timestamp(4_999), ends].map(|now| lives_at(registry, &key, now)), [true, false]);
    }
}

#[tokio::test]
async fn an_error_names_what_is_missing_or_taken() {
    let registry = open(&Arc::default()).await;
    one(&registry).await;
    let new = |name: &str, permission: &str| NewApplication {
        name: name.to_owned(),
        permissions: vec![permission.to_owned()],
        grants: Grants::everything(),
        requests_per_minute: 1,
    };
    let said = |refused: RegistryError| refused.to_string();
    let refusals = [
        said(registry.create(new("two", "fly")).await.unwrap_err()),
        said(registry.create(new("one", "print")).await.unwrap_err()),
        said(registry.issue_key("app_0", None).await.unwrap_err()),
        said(registry.revoke_key("tk_0").await.unwrap_err()),
    ];
    let expected = [
        "there is no permission `fly`; there are `look`, `print`, `service`",
        "an application is named `one` already",
        "there is no application `app_0`; the `list` command shows all",
        "there is no key `tk_0`; the `list` command shows all",
    ];
    assert_eq!(refusals, expected);
}
