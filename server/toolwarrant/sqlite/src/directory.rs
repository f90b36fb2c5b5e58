//! The SQL of applications, grants and keys.

use super::column::{millis, moment, read};
use super::fault::Fault;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::store::{ApplicationRow, KeyRow, Labels, SecretRow, SecretUse};

pub(super) fn directory(db: &Connection) -> Result<(Vec<ApplicationRow>, Vec<KeyRow>), Fault> {
    let snapshot = db.unchecked_transaction()?;
    Ok((applications(&snapshot)?, keys(&snapshot)?))
}

pub(super) fn latest_time(db: &Connection) -> Result<Option<Timestamp>, Fault> {
    let mut select = db.prepare_cached("SELECT number, seen FROM clock")?;
    let seen = select.query_and_then([], |row| read("clock", row, |row| row.get(1)))?.next();
    Ok(seen.transpose()?.map(moment))
}

pub(super) fn see(db: &Connection, now: Timestamp) -> Result<(), Fault> {
    let see = "INSERT INTO clock VALUES (1, ?1) ON CONFLICT (number) DO UPDATE SET seen = excluded.seen";
    db.prepare_cached(see)?.execute([millis(now)])?;
    Ok(())
}

pub(super) fn put_application(db: &Connection, row: &ApplicationRow) -> Result<(), Fault> {
    let ApplicationRow { id, name, permissions, requests_per_minute, grants, created_at, .. } = row;
    let ApplicationRow { labels, suspended_at, deleted_at, .. } = row;
    let (name, former_name) = if deleted_at.is_some() { (id, Some(name)) } else { (name, None) };
    let namesake = "SELECT 1 FROM application WHERE name = ?1 AND id <> ?2";
    if db.prepare_cached(namesake)?.exists((name, id))? {
        return Err(Fault::conflict(format!("an application is named `{name}` already")));
    }
    let permissions = serde_json::to_string(permissions).map_err(|error| Fault::unavailable(error.to_string()))?;
    let put = "INSERT INTO application (id, name, permissions, requests_per_minute, every_target, created_at,
                                        labels, suspended_at, deleted_at, former_name)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
               ON CONFLICT (id) DO UPDATE SET
                   name = excluded.name, permissions = excluded.permissions,
                   requests_per_minute = excluded.requests_per_minute, every_target = excluded.every_target,
                   created_at = excluded.created_at, labels = excluded.labels, suspended_at = excluded.suspended_at,
                   deleted_at = excluded.deleted_at, former_name = excluded.former_name";
    let every_target = grants.resources().is_none();
    let life = (write_labels(labels)?, suspended_at.map(millis), deleted_at.map(millis));
    let values = (id, name, permissions, requests_per_minute, every_target, millis(*created_at));
    let (id_, name_, permissions_, rate, every, created) = values;
    let values = (id_, name_, permissions_, rate, every, created, life.0, life.1, life.2, former_name);
    db.prepare_cached(put)?.execute(values)?;
    if deleted_at.is_some() {
        db.prepare_cached("DELETE FROM unconfirmed_key WHERE id IN (SELECT id FROM api_key WHERE application = ?1)")?
            .execute([id])?;
        let end = "UPDATE api_key SET labels = '{}', latest_verifier = NULL, latest_sealed = NULL, latest_created_at = NULL,
                       previous_verifier = NULL, previous_sealed = NULL, previous_created_at = NULL, previous_ends_at = NULL
                   WHERE application = ?1";
        db.prepare_cached(end)?.execute([id])?;
    }
    db.prepare_cached("DELETE FROM application_resource WHERE application = ?1")?.execute([id])?;
    let put = "INSERT INTO application_resource (application, resource, every_target) VALUES (?1, ?2, ?3)";
    let (mut put, put_target) = (db.prepare_cached(put)?, "INSERT INTO resource_target VALUES (?1, ?2, ?3)");
    let mut put_target = db.prepare_cached(put_target)?;
    let mut put_rule = db.prepare_cached("INSERT INTO resource_rule VALUES (?1, ?2, ?3, ?4)")?;
    for (resource, granted) in grants.resources().into_iter().flatten() {
        put.execute((id, resource, granted.prefixes().any(str::is_empty)))?;
        for target in granted.ids() {
            put_target.execute((id, resource, target))?;
        }
        let prefixes = granted.prefixes().filter(|prefix| !prefix.is_empty()).map(|prefix| ("prefix", prefix));
        for (kind, text) in prefixes.chain(granted.exceptions().iter().map(|target| ("exception", &**target))) {
            put_rule.execute((id, resource, kind, text))?;
        }
    }
    Ok(())
}

pub(super) fn put_key(db: &Connection, row: &KeyRow) -> Result<(), Fault> {
    let KeyRow { id, application, secrets, created_at, expires_at, labels, suspended_at } = row;
    let (latest, previous) = match secrets.as_slice() {
        [] => (None, None),
        [latest] => (Some(latest), None),
        [latest, previous] => (Some(latest), Some(previous)),
        _ => return Err(Fault::conflict(format!("the key {id} has more than two secrets"))),
    };
    if !db.prepare_cached("SELECT 1 FROM application WHERE id = ?1")?.exists([application])? {
        return Err(Fault::conflict(format!("the key {id} does not belong to an application")));
    }
    let put = "INSERT INTO api_key (id, application, created_at, expires_at, labels, suspended_at,
                                    latest_verifier, latest_sealed, latest_created_at,
                                    previous_verifier, previous_sealed, previous_created_at, previous_ends_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
               ON CONFLICT (id) DO UPDATE SET
                   application = excluded.application, created_at = excluded.created_at, expires_at = excluded.expires_at,
                   labels = excluded.labels, suspended_at = excluded.suspended_at,
                   latest_verifier = excluded.latest_verifier, latest_sealed = excluded.latest_sealed,
                   latest_created_at = excluded.latest_created_at,
                   previous_verifier = excluded.previous_verifier, previous_sealed = excluded.previous_sealed,
                   previous_created_at = excluded.previous_created_at, previous_ends_at = excluded.previous_ends_at";
    let verifier = |secret: Option<&SecretRow>| secret.map(|secret| secret.verifier);
    let sealed = |secret: Option<&SecretRow>| secret.map(|secret| secret.sealed.clone());
    let made = |secret: Option<&SecretRow>| secret.and_then(|secret| secret.created_at).map(millis);
    let values = rusqlite::params![
        id,
        application,
        millis(*created_at),
        expires_at.map(millis),
        write_labels(labels)?,
        suspended_at.map(millis),
        verifier(latest),
        sealed(latest),
        made(latest),
        verifier(previous),
        sealed(previous),
        made(previous),
        previous.and_then(|previous| previous.ends_at).map(millis),
    ];
    db.prepare_cached(put)?.execute(values)?;
    forget_unconfirmed(db, id)
}

pub(super) fn put_uses(db: &Connection, uses: &[SecretUse]) -> Result<(), Fault> {
    let put = "INSERT INTO secret_use VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (key, verifier) DO UPDATE SET at = excluded.at, address = excluded.address
               WHERE excluded.at > at";
    for SecretUse { key, verifier, at, from } in uses {
        db.prepare_cached(put)?.execute((key, verifier, millis(*at), from.map(|from| from.to_string())))?;
    }
    Ok(())
}

pub(super) fn uses(db: &Connection, keys: Option<Vec<String>>) -> Result<Vec<SecretUse>, Fault> {
    let of_keys = if keys.is_some() { "WHERE key IN (SELECT value FROM json_each(?1))" } else { "WHERE ?1 IS NULL" };
    let mut select = db.prepare_cached(&format!("SELECT key, verifier, at, address FROM secret_use {of_keys}"))?;
    let keys = keys.map(|keys| serde_json::Value::from(keys).to_string());
    let columns = |row: &Row<'_>| {
        let from = row.get::<_, Option<String>>(3)?.and_then(|address| address.parse().ok());
        Ok(SecretUse { key: row.get(0)?, verifier: row.get(1)?, at: moment(row.get(2)?), from })
    };
    select.query_and_then([keys], |row| read("secret_use", row, columns))?.collect()
}

/// Deletes the secrets from before a restore: the key has other secrets, or was revoked.
pub(super) fn forget_unconfirmed(db: &Connection, key: &str) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM unconfirmed_key WHERE id = ?1")?.execute([key])?;
    Ok(())
}

fn write_labels(labels: &Labels) -> Result<String, Fault> {
    serde_json::to_string(labels).map_err(|error| Fault::unavailable(error.to_string()))
}

fn read_labels(id: &str, labels: &str) -> Result<Labels, Fault> {
    json::read(labels).map_err(|error| Fault::corrupt(format!("the labels of {id} cannot be read: {error}")))
}

fn applications(db: &Connection) -> Result<Vec<ApplicationRow>, Fault> {
    let mut granted = BTreeMap::<String, BTreeMap<Box<str>, Granted>>::new();
    let mut resources = db.prepare_cached("SELECT application, resource, every_target FROM application_resource")?;
    for row in resources.query_and_then([], |row| read("application_resource", row, |row| row.try_into()))? {
        let (application, resource, every): (_, Box<str>, bool) = row?;
        let all = if every { Granted::all() } else { Granted::default() };
        granted.entry(application).or_default().insert(resource, all);
    }
    let mut targets = db.prepare_cached("SELECT application, resource, target FROM resource_target")?;
    for row in targets.query_and_then([], |row| read("resource_target", row, |row| row.try_into()))? {
        let (application, resource, target): (String, String, String) = row?;
        let granted = granted.get_mut(&application).and_then(|resources| resources.get_mut(&*resource));
        if let Some(granted) = granted {
            granted.add(&target);
        }
    }
    // Prefixes come before exceptions.
    let mut rules =
        db.prepare_cached("SELECT application, resource, kind, text FROM resource_rule ORDER BY kind DESC")?;
    for row in rules.query_and_then([], |row| read("resource_rule", row, |row| row.try_into()))? {
        let (application, resource, kind, text): (String, String, String, String) = row?;
        match granted.get_mut(&application).and_then(|resources| resources.get_mut(&*resource)) {
            Some(granted) if kind == "prefix" => granted.add_prefix(&text),
            Some(granted) => granted.remove(&text),
            None => {}
        }
    }
    let sql = "SELECT id, ifnull(former_name, name), permissions, requests_per_minute, every_target, created_at,
                      labels, suspended_at, deleted_at
               FROM application ORDER BY number";
    let mut select = db.prepare_cached(sql)?;
    let columns = |row: &Row<'_>| <(String, _, String, _, bool, i64, String, Option<i64>, Option<i64>)>::try_from(row);
    let rows = select.query_and_then([], |row| read("application", row, columns))?;
    rows.map(|row| {
        let (id, name, permissions, requests_per_minute, every_target, created_at, labels, suspended, deleted) = row?;
        let broken = |error| Fault::corrupt(format!("the permissions of the application {id} cannot be read: {error}"));
        let permissions = json::read(&permissions).map_err(broken)?;
        let granted = granted.remove(&id).unwrap_or_default();
        let grants = if every_target { Grants::everything() } else { Grants::only(granted) };
        Ok(ApplicationRow {
            labels: read_labels(&id, &labels)?,
            id,
            name,
            permissions,
            requests_per_minute,
            grants,
            created_at: moment(created_at),
            suspended_at: suspended.map(moment),
            deleted_at: deleted.map(moment),
        })
    })
    .collect()
}

fn keys(db: &Connection) -> Result<Vec<KeyRow>, Fault> {
    let sql = "SELECT id, application, created_at, expires_at, labels, suspended_at,
                      latest_verifier, latest_sealed, latest_created_at,
                      previous_verifier, previous_sealed, previous_created_at, previous_ends_at
               FROM api_key ORDER BY id";
    let mut select = db.prepare_cached(sql)?;
    let time = |row: &Row<'_>, column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(moment));
    let secret = |row: &Row<'_>, first: usize, ends_at: Option<Timestamp>| {
        let (verifier, sealed, created_at) = (row.get(first)?, row.get(first + 1)?, time(row, first + 2)?);
        let secret = |(verifier, sealed)| SecretRow { verifier, sealed, created_at, ends_at };
        Ok::<_, rusqlite::Error>(Option::zip(verifier, sealed).map(secret))
    };
    let key = |row: &Row<'_>| {
        let secrets = [secret(row, 6, None)?, secret(row, 9, time(row, 12)?)?];
        let key = KeyRow {
            id: row.get(0)?,
            application: row.get(1)?,
            secrets: secrets.into_iter().flatten().collect(),
            created_at: moment(row.get(2)?),
            expires_at: time(row, 3)?,
            labels: Labels::new(),
            suspended_at: time(row, 5)?,
        };
        Ok((key, row.get::<_, String>(4)?))
    };
    let rows = select.query_and_then([], |row| read("api_key", row, key))?;
    rows.map(|row| {
        let (key, labels) = row?;
        Ok(KeyRow { labels: read_labels(&key.id, &labels)?, ..key })
    })
    .collect()
}
