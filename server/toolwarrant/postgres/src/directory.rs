//! The SQL of the directory.

use crate::column::{get, json, millis, moment, rows};
use crate::lane::{Parameter, column};
use crate::single::WriteStatement;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};
use toolwarrant_base::{hex, json};
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::act::{Act, ActFilter, StoredAct};
use toolwarrant_core::store::{ApplicationRow, KeyRow, RequestCount, SecretRow, SecretUse, StoreError};

const PUT_APPLICATION: &str = ",
    counted AS (
        UPDATE cluster SET acts = acts + cardinality($5::text[]) FROM turn RETURNING acts),
    put AS (
        INSERT INTO application (id, name, permissions, requests_per_minute, grants, labels, created_at, suspended_at,
                                 deleted_at)
        SELECT $11::text, $12::text, $13::text, $14::bigint, $15::text, $16::text, $17::bigint, $18::bigint, $19::bigint
            FROM counted
        ON CONFLICT (id) DO UPDATE SET
            name = excluded.name, permissions = excluded.permissions, grants = excluded.grants, labels = excluded.labels,
            requests_per_minute = excluded.requests_per_minute, created_at = excluded.created_at,
            suspended_at = excluded.suspended_at, deleted_at = excluded.deleted_at),
    over AS (
        UPDATE api_key SET secrets = '[]', labels = '{}' FROM counted
            WHERE $19 IS NOT NULL AND api_key.application = $11),
    off AS (
        DELETE FROM unconfirmed_key USING counted, api_key
            WHERE $19 IS NOT NULL AND api_key.application = $11 AND unconfirmed_key.id = api_key.id),";

/// The first key of an application.
const WITH_KEY: &str = "
    first AS (
        INSERT INTO api_key (id, application, created_at, expires_at, suspended_at, labels, secrets)
        SELECT $20::text, $21::text, $22::bigint, $23::bigint, $24::bigint, $25::text, $26::text FROM counted),";

const PUT_KEY: &str = ",
    counted AS (
        UPDATE cluster SET acts = acts + cardinality($5::text[]) FROM turn RETURNING acts),
    put AS (
        INSERT INTO api_key (id, application, created_at, expires_at, suspended_at, labels, secrets)
        SELECT $11::text, $12::text, $13::bigint, $14::bigint, $15::bigint, $16::text, $17::text FROM counted
        ON CONFLICT (id) DO UPDATE SET
            application = excluded.application, created_at = excluded.created_at, expires_at = excluded.expires_at,
            suspended_at = excluded.suspended_at, labels = excluded.labels, secrets = excluded.secrets),
    off AS (DELETE FROM unconfirmed_key USING counted WHERE unconfirmed_key.id = $11),";

/// Gives their secrets back to keys that are off. If one of them is not, it fails by a division by
/// zero, because a landing without effect would count as success when its answer is lost.
const CONFIRM: &str = ",
    counted AS (
        UPDATE cluster SET acts = acts + cardinality($5::text[]) / CASE WHEN EXISTS (
                SELECT FROM unnest($11::text[]) AS asked (id) WHERE id NOT IN (SELECT id FROM unconfirmed_key))
            THEN 0 ELSE 1 END
        FROM turn RETURNING acts),
    put AS (
        UPDATE api_key SET secrets = was.secrets FROM counted, unconfirmed_key AS was
            WHERE was.id = ANY($11) AND api_key.id = was.id),
    off AS (DELETE FROM unconfirmed_key USING counted WHERE id = ANY($11)),";

const COUNT_ACTS: &str = ",
    counted AS (
        UPDATE cluster SET acts = acts + cardinality($5::text[]) FROM turn RETURNING acts),";

/// An act that is stored already is skipped.
const WITH_ACTS: &str = "
    recorded AS (
        INSERT INTO act (number, id, at, operator, command, object, act, trail)
        SELECT counted.acts - cardinality($5) + given.place, given.id, given.at, given.operator, given.command, given.object,
               given.act, $4::text
            FROM counted, unnest($5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[])
                WITH ORDINALITY AS given (id, at, operator, command, object, act, place)
        ON CONFLICT (id) DO NOTHING)
    SELECT turn.one, counted.acts AS answer FROM turn LEFT JOIN counted ON true";

pub(crate) fn put_application(
    row: ApplicationRow,
    key: Option<KeyRow>,
    acts: Vec<Act>,
    trail: &str,
) -> Result<WriteStatement, StoreError> {
    let ApplicationRow { id, name, permissions, requests_per_minute, grants, created_at, .. } = row;
    let ApplicationRow { labels, suspended_at, deleted_at, .. } = row;
    let taken = format!("an application is named `{name}` already");
    let texts = [json(&permissions), json(&write_grants(&grants)), json(&labels)];
    let [permissions, grants, labels] = texts.map(|text| text.map_err(unwritten));
    let (permissions, grants, labels) = (permissions?, grants?, labels?);
    let head = acts_of(&acts, trail)?;
    let with_key = if key.is_some() { WITH_KEY } else { "" };
    let key = key.map(key_columns).transpose()?;
    let times = (millis(created_at), suspended_at.map(millis), deleted_at.map(millis));
    let parameters = move || -> Vec<Parameter> {
        let mut all = head();
        let (created_at, suspended_at, deleted_at) = times;
        all.extend([Box::new(id.clone()) as Parameter, Box::new(name.clone()), Box::new(permissions.clone())]);
        all.extend([
            Box::new(i64::from(requests_per_minute)) as Parameter,
            Box::new(grants.clone()),
            Box::new(labels.clone()),
        ]);
        all.extend([Box::new(created_at) as Parameter, Box::new(suspended_at), Box::new(deleted_at)]);
        all.extend(key.iter().flat_map(|columns| columns()));
        all
    };
    let write = WriteStatement::new(format!("{PUT_APPLICATION}{with_key}{WITH_ACTS}"), parameters);
    Ok(WriteStatement { conflicts: vec![("ix_application_name", taken)], ..write })
}

/// Conflicts if one of the keys is not off.
pub(crate) fn confirm_keys(keys: Vec<String>, acts: &[Act], trail: &str) -> Result<WriteStatement, StoreError> {
    let head = acts_of(acts, trail)?;
    let parameters = move || -> Vec<Parameter> {
        let mut all = head();
        all.push(Box::new(keys.clone()));
        all
    };
    let write = WriteStatement::new(format!("{CONFIRM}{WITH_ACTS}"), parameters);
    let conflicts = vec![(SqlState::DIVISION_BY_ZERO.code(), "a key does not wait for confirmation".to_owned())];
    Ok(WriteStatement { conflicts, ..write })
}

pub(crate) fn put_key(row: KeyRow, acts: Vec<Act>, trail: &str) -> Result<WriteStatement, StoreError> {
    let lost = format!("the key {} does not belong to an application", row.id);
    let (head, columns) = (acts_of(&acts, trail)?, key_columns(row)?);
    let parameters = move || [head(), columns()].into_iter().flatten().collect();
    let write = WriteStatement::new(format!("{PUT_KEY}{WITH_ACTS}"), parameters);
    Ok(WriteStatement { conflicts: vec![("api_key_application_fkey", lost)], ..write })
}

fn key_columns(row: KeyRow) -> Result<impl Fn() -> Vec<Parameter> + Send + Sync, StoreError> {
    let KeyRow { id, application, secrets, created_at, expires_at, labels, suspended_at } = row;
    if secrets.len() > 2 {
        return Err(StoreError::Conflict(format!("the key {id} has more than two secrets")));
    }
    let secrets: Vec<_> = secrets.iter().map(StoredSecret::from).collect();
    let (labels, secrets) = (json(&labels).map_err(unwritten)?, json(&secrets).map_err(unwritten)?);
    let times = (millis(created_at), expires_at.map(millis), suspended_at.map(millis));
    Ok(move || -> Vec<Parameter> {
        let (created_at, expires_at, suspended_at) = times;
        vec![
            Box::new(id.clone()),
            Box::new(application.clone()),
            Box::new(created_at),
            Box::new(expires_at),
            Box::new(suspended_at),
            Box::new(labels.clone()),
            Box::new(secrets.clone()),
        ]
    })
}

pub(crate) fn put_acts(acts: &[Act], trail: &str) -> Result<WriteStatement, StoreError> {
    Ok(WriteStatement::new(format!("{COUNT_ACTS}{WITH_ACTS}"), acts_of(acts, trail)?))
}

fn acts_of(acts: &[Act], trail: &str) -> Result<impl Fn() -> Vec<Parameter> + Send + Sync + use<>, StoreError> {
    let json = acts.iter().map(json).collect::<Result<Vec<_>, _>>().map_err(unwritten)?;
    let acts: Vec<_> = acts.iter().cloned().zip(json).collect();
    let trail = trail.to_owned();
    Ok(move || -> Vec<Parameter> {
        vec![
            Box::new(trail.clone()),
            column(&acts, |(act, _)| act.id.clone()),
            column(&acts, |(act, _)| millis(act.at)),
            column(&acts, |(act, _)| act.operator.name.clone()),
            column(&acts, |(act, _)| act.command.clone()),
            column(&acts, |(act, _)| act.object.clone()),
            column(&acts, |(_, json)| json.clone()),
        ]
    })
}

fn unwritten(error: serde_json::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

#[derive(Serialize, Deserialize)]
struct StoredSecret {
    verifier: String,
    sealed: String,
    created_at: Option<u64>,
    ends_at: Option<u64>,
}

impl From<&SecretRow> for StoredSecret {
    fn from(SecretRow { verifier, sealed, created_at, ends_at }: &SecretRow) -> Self {
        let time = |at: &Option<toolwarrant_base::Timestamp>| at.map(|at| at.0);
        let (created_at, ends_at) = (time(created_at), time(ends_at));
        Self { verifier: hex::encode(verifier), sealed: hex::encode(sealed), created_at, ends_at }
    }
}

impl StoredSecret {
    fn read(self) -> Option<SecretRow> {
        let Self { verifier, sealed, created_at, ends_at } = self;
        let verifier = hex::decode(&verifier)?.as_slice().try_into().ok()?;
        let time = |at: Option<u64>| at.map(toolwarrant_base::Timestamp);
        Some(SecretRow {
            verifier,
            sealed: hex::decode(&sealed)?,
            created_at: time(created_at),
            ends_at: time(ends_at),
        })
    }
}

/// Prefixes, ids and exceptions.
type StoredGrant = (Vec<String>, Vec<String>, Vec<String>);

fn write_grants(grants: &Grants) -> Option<BTreeMap<String, StoredGrant>> {
    let texts = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::to_owned).collect::<Vec<_>>();
    Some(
        grants
            .resources()?
            .iter()
            .map(|(resource, granted)| {
                let (ids, except) = (granted.ids().iter().map(|id| &**id), granted.exceptions().iter().map(|id| &**id));
                let stored = (texts(&mut granted.prefixes()), texts(&mut { ids }), texts(&mut { except }));
                (resource.to_string(), stored)
            })
            .collect(),
    )
}

fn read_grants(stored: Option<BTreeMap<String, StoredGrant>>) -> Grants {
    let Some(resources) = stored else { return Grants::everything() };
    let granted = resources.into_iter().map(|(resource, (prefixes, ids, except))| {
        let mut granted = Granted::default();
        prefixes.iter().for_each(|prefix| granted.add_prefix(prefix));
        ids.iter().for_each(|id| granted.add(id));
        except.iter().for_each(|id| granted.remove(id));
        (resource.into_boxed_str(), granted)
    });
    Grants::only(granted.collect())
}

pub(crate) async fn directory(client: &Client) -> Result<(Vec<ApplicationRow>, Vec<KeyRow>), StoreError> {
    let sql = "SELECT id, name, permissions, requests_per_minute, grants, labels, created_at, suspended_at, deleted_at
               FROM application ORDER BY number";
    let applications = rows(client.query(sql, &[]).await)?;
    let sql = "SELECT id, application, created_at, expires_at, suspended_at, labels, secrets FROM api_key ORDER BY id";
    let keys = rows(client.query(sql, &[]).await)?;
    let keys = keys.iter().map(read_key).collect::<Result<_, _>>()?;
    Ok((applications.iter().map(read_application).collect::<Result<_, _>>()?, keys))
}

fn read_application(row: &Row) -> Result<ApplicationRow, StoreError> {
    let id: String = get(row, "id")?;
    let broken = |error| StoreError::Corrupt(format!("the application {id} cannot be read: {error}"));
    let grants = json::read(get(row, "grants")?).map_err(broken)?;
    Ok(ApplicationRow {
        name: get(row, "name")?,
        permissions: json::read(get(row, "permissions")?).map_err(broken)?,
        requests_per_minute: u32::try_from(get::<i64>(row, "requests_per_minute")?).unwrap_or(u32::MAX),
        grants: read_grants(grants),
        created_at: moment(get(row, "created_at")?),
        labels: json::read(get(row, "labels")?).map_err(broken)?,
        suspended_at: get::<Option<i64>>(row, "suspended_at")?.map(moment),
        deleted_at: get::<Option<i64>>(row, "deleted_at")?.map(moment),
        id,
    })
}

fn read_key(row: &Row) -> Result<KeyRow, StoreError> {
    let id: String = get(row, "id")?;
    let broken = |why: String| StoreError::Corrupt(format!("the key {id} cannot be read: {why}"));
    let secrets: Vec<StoredSecret> = json::read(get(row, "secrets")?).map_err(|error| broken(error.to_string()))?;
    let secrets = secrets.into_iter().map(StoredSecret::read).collect::<Option<Vec<_>>>();
    Ok(KeyRow {
        application: get(row, "application")?,
        secrets: secrets.ok_or_else(|| broken("a secret is not hexadecimal".to_owned()))?,
        created_at: moment(get(row, "created_at")?),
        expires_at: get::<Option<i64>>(row, "expires_at")?.map(moment),
        labels: json::read(get(row, "labels")?).map_err(|error| broken(error.to_string()))?,
        suspended_at: get::<Option<i64>>(row, "suspended_at")?.map(moment),
        id,
    })
}

pub(crate) fn put_uses(uses: Vec<SecretUse>) -> WriteStatement {
    // A row may be written once in a statement.
    let mut latest = BTreeMap::new();
    for one in uses {
        let known = latest.entry((one.key.clone(), one.verifier)).or_insert_with(|| one.clone());
        if known.at < one.at {
            *known = one;
        }
    }
    let uses: Vec<_> = latest.into_values().collect();
    let sql = ", put AS (
            INSERT INTO secret_use SELECT given.* FROM turn, unnest($4::text[], $5::bytea[], $6::bigint[], $7::text[]) AS given
            ON CONFLICT (key, verifier) DO UPDATE SET at = excluded.at, address = excluded.address
                WHERE excluded.at > secret_use.at)
        SELECT one, NULL::bigint AS answer FROM turn";
    WriteStatement::new(sql, move || {
        vec![
            column(&uses, |one| one.key.clone()),
            column(&uses, |one| one.verifier.to_vec()),
            column(&uses, |one| millis(one.at)),
            column(&uses, |one| one.from.map(|from| from.to_string())),
        ]
    })
}

pub(crate) async fn uses(client: &Client, keys: Option<Vec<String>>) -> Result<Vec<SecretUse>, StoreError> {
    let sql = "SELECT key, verifier, at, address FROM secret_use WHERE $1::text[] IS NULL OR key = ANY($1)";
    let found = rows(client.query(sql, &[&keys]).await)?;
    let one = |row: &Row| {
        let from: Option<&str> = get(row, "address")?;
        let verifier = crate::column::fingerprint(get(row, "verifier")?)?;
        let (key, at) = (get(row, "key")?, moment(get(row, "at")?));
        Ok(SecretUse { key, verifier, at, from: from.and_then(|from| from.parse().ok()) })
    };
    found.iter().map(one).collect()
}

pub(crate) fn put_requests(requests: Vec<RequestCount>, since: u64) -> WriteStatement {
    let sql = ", gone AS (DELETE FROM request_count USING turn WHERE second < $7),
        put AS (
            INSERT INTO request_count SELECT given.* FROM turn, unnest($4::bigint[], $5::text[], $6::bigint[]) AS given
            ON CONFLICT (second, application) DO UPDATE SET requests = excluded.requests)
        SELECT one, NULL::bigint AS answer FROM turn";
    WriteStatement::new(sql, move || {
        vec![
            column(&requests, |count| count.second.cast_signed()),
            column(&requests, |count| count.application.clone()),
            column(&requests, |count| i64::from(count.requests)),
            Box::new(since.cast_signed()),
        ]
    })
}

pub(crate) async fn requests(client: &Client) -> Result<Vec<RequestCount>, StoreError> {
    let sql = "SELECT second, application, requests FROM request_count ORDER BY second";
    let count = |row: &Row| {
        let (second, requests) = (get::<i64>(row, "second")?.cast_unsigned(), get::<i64>(row, "requests")?);
        Ok(RequestCount {
            application: get(row, "application")?,
            second,
            requests: u32::try_from(requests).unwrap_or(u32::MAX),
        })
    };
    rows(client.query(sql, &[]).await)?.iter().map(count).collect()
}

/// Reads the newest first.
pub(crate) async fn acts(client: &Client, filter: ActFilter) -> Result<Vec<StoredAct>, StoreError> {
    let ActFilter { id, operator, object, command, since, until, before, limit } = filter;
    let sql = "SELECT number, act FROM act
               WHERE ($1::text IS NULL OR id = $1) AND ($2::text IS NULL OR operator = $2)
                 AND ($3::text IS NULL OR object = $3)
                 AND ($4::text IS NULL OR starts_with(command || ' ', $4 || ' '))
                 AND at >= $5 AND at < $6 AND number < $7 ORDER BY number DESC LIMIT $8";
    let (since, until) = (since.map_or(0, millis), until.map_or(i64::MAX, millis));
    let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&id, &operator, &object, &command, &since, &until, &before, &i64::from(limit)];
    rows(client.query(sql, parameters).await)?.iter().map(read_act).collect()
}

/// Reads the oldest first.
pub(crate) async fn acts_of_trail(
    client: &Client,
    trail: &str,
    after: u64,
    limit: u32,
) -> Result<Vec<StoredAct>, StoreError> {
    let sql = "SELECT number, act FROM act WHERE number > $1 AND trail = $3 ORDER BY number LIMIT $2";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    rows(client.query(sql, &[&after, &i64::from(limit), &trail]).await)?.iter().map(read_act).collect()
}

fn read_act(row: &Row) -> Result<StoredAct, StoreError> {
    let number: i64 = get(row, "number")?;
    let broken = |error| StoreError::Corrupt(format!("the act {number} cannot be read: {error}"));
    let act = json::read(get(row, "act")?).map_err(broken)?;
    Ok(StoredAct { number: number.cast_unsigned(), act })
}
