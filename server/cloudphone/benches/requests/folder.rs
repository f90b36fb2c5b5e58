//! Data folders with applications and keys.

use anyhow::{Context, Result};
use cloudphone::phones::contract::CATALOGUE;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::sync::watch;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hex;
use toolwarrant_base::keyring::{KeyRing, SecretRow};
use toolwarrant_base::random::Random;
use toolwarrant_core::access::{Access, Granted, Grants};
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
    let key = make_at(data, &StoreOptions::default())?;
    if others > 0 {
        add_strangers(data, others)?;
    }
    Ok(key)
}

pub(crate) fn make_at(data: &Path, place: &StoreOptions) -> Result<Key> {
    let names = names();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = DataFolder::open(data, &names)?;
        let claim = match place.is_folder() {
            true => None,
            false => Some(place.claim(&folder, &names, &watch::Sender::default()).await?),
        };
        let opened = OpenedData::open(&folder, &names, &CATALOGUE, &Random::System, (place, claim)).await?;
        let key = application(&opened.registry).await?;
        if let Some(shared) = opened.shared {
            shared.leave().await;
        }
        anyhow::Ok(key)
    })
}

fn names() -> Names {
    Names { keys: KeyPrefixes { id: "cpk_", secret: "cps_" }, ..Names::of("cloudphone", env!("CARGO_PKG_VERSION")) }
}

async fn application(registry: &Registry) -> Result<Key> {
    let new = NewApplication {
        name: "bench".to_owned(),
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
fn add_strangers(data: &Path, count: usize) -> Result<()> {
    let master = hex::decode(fs::read_to_string(data.join("master.key"))?.trim_end()).context("a master key")?;
    let master = master.as_slice().try_into()?;
    let access = Access::new(KeyRing::new(&names().salt, master, Random::System));
    let mut db = Connection::open(data.join("cloudphone.db"))?;
    let transaction = db.transaction()?;
    let numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)";
    let applications = "INSERT INTO application (id, name, permissions, requests_per_minute, every_target, created_at)
                        SELECT printf('app_%016x', n), 'stranger ' || n, permissions, 300, every_target, created_at
                        FROM numbers JOIN (SELECT * FROM application ORDER BY number LIMIT 1)";
    let grants = "INSERT INTO application_resource (application, resource, every_target)
                  SELECT printf('app_%016x', n), resource, every_target
                  FROM numbers JOIN (SELECT * FROM application_resource LIMIT 1)";
    for insert in [applications, grants] {
        transaction.execute(&format!("{numbers} {insert}"), [count as i64])?;
    }
    let key =
        "INSERT INTO api_key (id, application, created_at, latest_verifier, latest_sealed) VALUES (?1, ?2, 0, ?3, ?4)";
    for n in 1..=count {
        let (id, application) = (format!("cpk_ffff{n:012x}"), format!("app_{n:016x}"));
        let SecretRow { verifier, sealed, .. } = access.secret(&application, &id, &id, Timestamp(0))?;
        transaction.prepare_cached(key)?.execute((id, application, verifier, sealed))?;
    }
    Ok(transaction.commit()?)
}

fn permissions() -> Vec<String> {
    ["device", "stream"].map(str::to_owned).into()
}

fn everything() -> Grants {
    Grants::nothing().with("device", Granted::all())
}
