//! The SQL of applications, grants and keys.

use super::column::{millis, moment, read};
use super::fault::Fault;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::store::{ApplicationRow, KeyRow, SecretRow};

/// Reads all applications and keys in one transaction.
pub(super) fn directory(db: &Connection) -> Result<(Vec<ApplicationRow>, Vec<KeyRow>), Fault> {
    let snapshot = db.unchecked_transaction()?;
    Ok((applications(&snapshot)?, keys(&snapshot)?))
}

/// Reads the latest time that was recorded.
pub(super) fn latest_time(db: &Connection) -> Result<Option<Timestamp>, Fault> {
    let mut select = db.prepare_cached("SELECT number, seen FROM clock")?;
    let seen = select.query_and_then([], |row| read("clock", row, |row| row.get(1)))?.next();
    Ok(seen.transpose()?.map(moment))
}

/// Records the time.
pub(super) fn see(db: &Connection, now: Timestamp) -> Result<(), Fault> {
    let see = "INSERT INTO clock VALUES (1, ?1) ON CONFLICT (number) DO UPDATE SET seen = excluded.seen";
    db.prepare_cached(see)?.execute([millis(now)])?;
    Ok(())
}

/// Creates or replaces an application with its grants.
pub(super) fn put_application(db: &Connection, row: &ApplicationRow) -> Result<(), Fault> {
    let ApplicationRow { id, name, permissions, requests_per_minute, grants, created_at } = row;
    let namesake = "SELECT 1 FROM application WHERE name = ?1 AND id <> ?2";
    if db.prepare_cached(namesake)?.exists((name, id))? {
        return Err(Fault::conflict(format!("an application is named `{name}` already")));
    }
    let permissions = serde_json::to_string(permissions).map_err(|error| Fault::unavailable(error.to_string()))?;
    let put = "INSERT INTO application (id, name, permissions, requests_per_minute, every_target, created_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (id) DO UPDATE SET
                   name = excluded.name, permissions = excluded.permissions,
                   requests_per_minute = excluded.requests_per_minute, every_target = excluded.every_target,
                   created_at = excluded.created_at";
    let values = (id, name, permissions, requests_per_minute, grants.resources().is_none(), millis(*created_at));
    db.prepare_cached(put)?.execute(values)?;
    db.prepare_cached("DELETE FROM application_resource WHERE application = ?1")?.execute([id])?;
    let put = "INSERT INTO application_resource (application, resource, every_target) VALUES (?1, ?2, ?3)";
    let (mut put, put_target) = (db.prepare_cached(put)?, "INSERT INTO resource_target VALUES (?1, ?2, ?3)");
    let mut put_target = db.prepare_cached(put_target)?;
    for (resource, granted) in grants.resources().into_iter().flatten() {
        let targets = match granted {
            Granted::All => None,
            Granted::Some(targets) => Some(targets),
        };
        put.execute((id, resource, targets.is_none()))?;
        for target in targets.into_iter().flatten() {
            put_target.execute((id, resource, target))?;
        }
    }
    Ok(())
}

/// Creates or replaces a key with its secrets.
pub(super) fn put_key(db: &Connection, row: &KeyRow) -> Result<(), Fault> {
    let KeyRow { id, application, secrets, created_at, expires_at } = row;
    let (latest, previous) = match secrets.as_slice() {
        [] => (None, None),
        [latest] => (Some(latest), None),
        [latest, previous] => (Some(latest), Some(previous)),
        _ => return Err(Fault::conflict(format!("the key {id} has more than two secrets"))),
    };
    if !db.prepare_cached("SELECT 1 FROM application WHERE id = ?1")?.exists([application])? {
        return Err(Fault::conflict(format!("the key {id} does not belong to an application")));
    }
    let put = "INSERT INTO api_key (id, application, created_at, expires_at, latest_verifier, latest_sealed,
                                    previous_verifier, previous_sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT (id) DO UPDATE SET
                   application = excluded.application, created_at = excluded.created_at, expires_at = excluded.expires_at,
                   latest_verifier = excluded.latest_verifier, latest_sealed = excluded.latest_sealed,
                   previous_verifier = excluded.previous_verifier, previous_sealed = excluded.previous_sealed";
    let (latest, previous) = (latest.map(columns).unzip(), previous.map(columns).unzip());
    let expires_at = expires_at.map(millis);
    let values = (id, application, millis(*created_at), expires_at, latest.0, latest.1, previous.0, previous.1);
    db.prepare_cached(put)?.execute(values)?;
    forget_unconfirmed(db, id)
}

/// Deletes the secrets that a key had before a restore, because the key now has other secrets or
/// was revoked.
pub(super) fn forget_unconfirmed(db: &Connection, key: &str) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM unconfirmed_key WHERE id = ?1")?.execute([key])?;
    Ok(())
}

fn columns(secret: &SecretRow) -> (&[u8; 32], &[u8]) {
    let SecretRow { verifier, sealed } = secret;
    (verifier, sealed)
}

fn applications(db: &Connection) -> Result<Vec<ApplicationRow>, Fault> {
    let mut granted = BTreeMap::<String, BTreeMap<Box<str>, Granted>>::new();
    let mut resources = db.prepare_cached("SELECT application, resource, every_target FROM application_resource")?;
    for row in resources.query_and_then([], |row| read("application_resource", row, |row| row.try_into()))? {
        let (application, resource, every): (_, Box<str>, bool) = row?;
        let all = if every { Granted::All } else { Granted::some([]) };
        granted.entry(application).or_default().insert(resource, all);
    }
    let mut targets = db.prepare_cached("SELECT application, resource, target FROM resource_target")?;
    for row in targets.query_and_then([], |row| read("resource_target", row, |row| row.try_into()))? {
        let (application, resource, target): (String, String, String) = row?;
        let granted = granted.get_mut(&application).and_then(|resources| resources.get_mut(&*resource));
        if let Some(Granted::Some(targets)) = granted {
            targets.insert(target.into());
        }
    }
    let sql = "SELECT id, name, permissions, requests_per_minute, every_target, created_at
               FROM application ORDER BY number";
    let mut select = db.prepare_cached(sql)?;
    let columns = |row: &Row<'_>| <(String, _, String, _, bool, i64)>::try_from(row);
    let rows = select.query_and_then([], |row| read("application", row, columns))?;
    rows.map(|row| {
        let (id, name, permissions, requests_per_minute, every_target, created_at) = row?;
        let broken = |error| Fault::corrupt(format!("the permissions of the application {id} cannot be read: {error}"));
        let permissions = serde_json::from_str(&permissions).map_err(broken)?;
        let granted = granted.remove(&id).unwrap_or_default();
        let grants = if every_target { Grants::everything() } else { Grants::only(granted) };
        let created_at = moment(created_at);
        Ok(ApplicationRow { id, name, permissions, requests_per_minute, grants, created_at })
    })
    .collect()
}

fn keys(db: &Connection) -> Result<Vec<KeyRow>, Fault> {
    let sql = "SELECT id, application, created_at, expires_at, latest_verifier, latest_sealed, previous_verifier, previous_sealed
               FROM api_key ORDER BY id";
    let mut select = db.prepare_cached(sql)?;
    let key = |row: &Row<'_>| {
        let (id, application, created_at, expires_at, verifier, sealed, old_verifier, old_sealed) = row.try_into()?;
        let expires_at: Option<i64> = expires_at;
        let secret = |(verifier, sealed)| SecretRow { verifier, sealed };
        let latest = Option::zip(verifier, sealed).map(secret);
        let secrets = latest.into_iter().chain(Option::zip(old_verifier, old_sealed).map(secret)).collect();
        let (created_at, expires_at) = (moment(created_at), expires_at.map(moment));
        Ok(KeyRow { id, application, secrets, created_at, expires_at })
    };
    select.query_and_then([], |row| read("api_key", row, key))?.collect()
}
