//! Data folders with applications and keys.

use anyhow::{Context, Result};
use cloudphone::phones::contract::CATALOGUE;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::sync::watch;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::act::{Channel, Claims, Origin};
use toolwarrant_core::registry::{KeyPrefixes, NewApplication, NewKey, Registry};
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::{Names, OpenedData, StoreOptions, local_operator};

#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) key_id: String,
    pub(crate) secret: String,
}

pub(crate) fn home() -> Result<TempDir> {
    Ok(TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?)
}

pub(crate) fn one(home: &TempDir) -> Result<(PathBuf, Key)> {
    let data = home.path().join("data");
    let key = make(&data, 0)?;
    Ok((data, key))
}

/// Returns the key of the first application. The secrets of the others are unknown.
pub(crate) fn make(data: &Path, others: usize) -> Result<Key> {
    let key = make_at(data, 1, &StoreOptions::default())?.pop().context("a key")?;
    if others > 0 {
        add_strangers(&data.join("cloudphone.db"), others)?;
    }
    Ok(key)
}

pub(crate) fn make_at(data: &Path, applications: usize, place: &StoreOptions) -> Result<Vec<Key>> {
    let names = Names {
        keys: KeyPrefixes { id: "cpk_", secret: "cps_" },
        ..Names::of("cloudphone", env!("CARGO_PKG_VERSION"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = DataFolder::open(data, &names)?;
        let claim = match place.is_folder() {
            true => None,
            false => Some(place.claim(&folder, &names, &watch::Sender::default()).await?),
        };
        let opened = OpenedData::open(&folder, &names, &CATALOGUE, &Random::System, (place, claim)).await?;
        let mut keys = Vec::new();
        for n in 0..applications {
            keys.push(application(&opened.registry, n).await?);
        }
        if let Some(shared) = opened.shared {
            shared.leave().await;
        }
        anyhow::Ok(keys)
    })
}

async fn application(registry: &Registry, n: usize) -> Result<Key> {
    let new = NewApplication {
        name: format!("bench {n}"),
        permissions: permissions(),
        grants: everything(),
        requests_per_minute: u32::MAX,
    };
    let operator = local_operator(Channel::Offline, Claims::default());
    let origin = Origin { operator, command: "bench".to_owned() };
    let application = registry.create(new, &origin).await?.object;
    let NewKey { key_id, secret, .. } = registry.issue_key(&application, None, &origin).await?;
    Ok(Key { key_id, secret: secret.expose().clone() })
}

/// Inserts keys with unknown secrets. Through the store, each would be a separate write to the
/// disk, which takes minutes.
fn add_strangers(database: &Path, count: usize) -> Result<()> {
    let mut db = Connection::open(database)?;
    let transaction = db.transaction()?;
    let numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)";
    let applications = "INSERT INTO application (id, name, permissions, requests_per_minute, every_target, created_at)
                        SELECT printf('app_%016x', n), 'stranger ' || n, permissions, 300, every_target, created_at
                        FROM numbers JOIN (SELECT * FROM application ORDER BY number LIMIT 1)";
    let grants = "INSERT INTO application_resource (application, resource, every_target)
                  SELECT printf('app_%016x', n), resource, every_target
                  FROM numbers JOIN (SELECT * FROM application_resource LIMIT 1)";
    // A start opens the seal of the first key, by id, so that key must not be one of these.
    let keys = "INSERT INTO api_key (id, application, created_at, latest_verifier, latest_sealed)
                SELECT printf('cpk_ffff%012x', n), printf('app_%016x', n), created_at, randomblob(32), latest_sealed
                FROM numbers JOIN (SELECT * FROM api_key LIMIT 1)";
    for insert in [applications, grants, keys] {
        transaction.execute(&format!("{numbers} {insert}"), [count as i64])?;
    }
    Ok(transaction.commit()?)
}

fn permissions() -> Vec<String> {
    ["device", "stream"].map(str::to_owned).into()
}

fn everything() -> Grants {
    Grants::nothing().with("device", Granted::all())
}
