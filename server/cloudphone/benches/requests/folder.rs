//! Data folders with applications and keys.

use crate::server::PROGRAM;
use anyhow::{Context, Result};
use kit::{KeyPair, ProgramOperator};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::runtime::Builder;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hex;
use toolwarrant_base::keyring::{KeyRing, SecretRow};
use toolwarrant_base::random::Random;
use toolwarrant_core::access::Access;
use toolwarrant_operator::Names;

pub(crate) fn home() -> Result<TempDir> {
    Ok(TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?)
}

pub(crate) fn one(home: &TempDir) -> Result<(PathBuf, KeyPair)> {
    let data = home.path().join("data");
    let key = make(&data, 0)?;
    Ok((data, key))
}

/// Returns the key of the first application. The secrets of the others are unknown.
pub(crate) fn make(data: &Path, others: usize) -> Result<KeyPair> {
    let key = make_at(data, &[])?;
    if others > 0 {
        add_strangers(data, others)?;
    }
    Ok(key)
}

/// Expects the options that name a store, if it is not that of the folder.
pub(crate) fn make_at(data: &Path, store: &[&str]) -> Result<KeyPair> {
    let operator = ProgramOperator { program: PROGRAM.into(), data: data.to_owned() };
    let run = async |line: &str| operator.json(line.split(' ').chain(store.iter().copied())).await;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        run("app create bench --permission device --permission stream --requests-per-minute 100000000").await?;
        run("device assign bench --all").await?;
        KeyPair::read(&run("key create bench").await?)
    })
}

/// Inserts keys with unknown secrets. Through the store, each would be a separate write to the
/// disk, which takes minutes.
fn add_strangers(data: &Path, count: usize) -> Result<()> {
    let master = hex::decode(fs::read_to_string(data.join("master.key"))?.trim_end()).context("a master key")?;
    let master = master.as_slice().try_into()?;
    let access = Access::new(KeyRing::new(&Names::of("cloudphone", "").salt, master, Random::System));
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
