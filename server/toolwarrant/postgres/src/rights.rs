//! The rights of the account of a replica. The owner of the tables has all of them, and can grant
//! them.

use crate::column::{get, rows};
use crate::connection::{describe, unavailable};
use tokio_postgres::Client;
use toolwarrant_core::store::StoreError;

/// Nothing that has happened can be changed or removed.
const RIGHTS: [(&str, &str); 19] = [
    ("cluster", "SELECT, UPDATE"),
    ("replica", "SELECT, INSERT, UPDATE, DELETE"),
    ("writer", "SELECT, INSERT, UPDATE, DELETE"),
    ("task", "SELECT, INSERT, UPDATE, DELETE"),
    ("target", "SELECT, INSERT, UPDATE, DELETE"),
    ("ended", "SELECT, INSERT"),
    ("ended_default", "SELECT"),
    ("event", "SELECT, INSERT"),
    ("event_default", "SELECT"),
    ("ledger", "SELECT, INSERT"),
    ("mark", "SELECT, INSERT, DELETE"),
    ("application", "SELECT, INSERT, UPDATE"),
    ("api_key", "SELECT, INSERT, UPDATE"),
    ("unconfirmed_key", "SELECT, INSERT, UPDATE, DELETE"),
    ("secret_use", "SELECT, INSERT, UPDATE"),
    ("request_count", "SELECT, INSERT, UPDATE, DELETE"),
    ("act", "SELECT, INSERT"),
    ("audit_anchor", "SELECT, INSERT, UPDATE"),
    ("file", "SELECT, INSERT, UPDATE"),
];

const FUNCTIONS: &str = "make_day(text, bigint), drop_day(text, bigint)";

pub(crate) async fn grant(client: &Client, account: &str) -> Result<(), StoreError> {
    check_visible(client).await?;
    let row = client.query_one("SELECT quote_ident(current_schema()), quote_ident($1)", &[&account]).await;
    let row = row.map_err(unavailable)?;
    let (schema, role): (&str, &str) = (row.get(0), row.get(1));
    let tables = RIGHTS.map(|(table, rights)| format!("GRANT {rights} ON {table} TO {role};"));
    let sql = format!(
        "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT EXECUTE ON FUNCTION {FUNCTIONS} TO {role}; {}",
        tables.concat()
    );
    client.batch_execute(&sql).await.map_err(|error| match error.as_db_error() {
        Some(_) => StoreError::Corrupt(format!(
            "PostgreSQL refuses to grant rights to `{account}`: {}; the URL must be that of the owner of the tables",
            describe(&error)
        )),
        None => unavailable(error),
    })?;
    // The server only warns an account that may not grant.
    let missing = missing(client, Some(account)).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let owner = "SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE oid = 'cluster'::regclass";
    let row = client.query_one(owner, &[]).await.map_err(unavailable)?;
    let (owner, missing): (&str, _) = (row.get(0), missing.join(", "));
    Err(StoreError::Corrupt(format!(
        "the account `{account}` still lacks rights: {missing}; give the URL of `{owner}`, who owns the tables and can grant them"
    )))
}

async fn check_visible(client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT 1 WHERE to_regclass('cluster') IS NOT NULL";
    match client.query_opt(sql, &[]).await.map_err(unavailable)? {
        Some(_) => Ok(()),
        None => Err(StoreError::Corrupt(
            "this account sees no tables; `store init` makes them, and `store grant` lets another account use them"
                .to_owned(),
        )),
    }
}

/// Returns those such as `DELETE on task`; by default of this session.
pub(crate) async fn missing(client: &Client, account: Option<&str>) -> Result<Vec<String>, StoreError> {
    let all = RIGHTS.iter().flat_map(|(table, rights)| rights.split(", ").map(move |right| (*table, right)));
    let (tables, rights): (Vec<_>, Vec<_>) = all.unzip();
    let sql = "SELECT kind || ' on ' || name AS what FROM unnest($1::text[], $2::text[]) AS needed (name, kind)
                   WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(coalesce($4::name, current_user), to_regclass(name), kind)
               UNION ALL
               SELECT 'EXECUTE on ' || name FROM unnest($3::text[]) AS name
                   WHERE to_regprocedure(name) IS NOT NULL AND NOT has_function_privilege(coalesce($4::name, current_user),
                                                                                     to_regprocedure(name), 'EXECUTE')";
    let functions: Vec<_> = FUNCTIONS.split_inclusive(')').map(|name| name.trim_start_matches(", ")).collect();
    let found = rows(client.query(sql, &[&tables, &rights, &functions, &account]).await)?;
    found.iter().map(|row| get(row, "what")).collect()
}

pub(crate) async fn check(client: &Client) -> Result<(), StoreError> {
    check_visible(client).await?;
    let missing = missing(client, None).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let row = client.query_one("SELECT current_user::text AS account", &[]).await.map_err(unavailable)?;
    let (account, missing) = (get::<&str>(&row, "account")?, missing.join(", "));
    Err(StoreError::Corrupt(format!(
        "the account `{account}` lacks rights: {missing}; `store grant {account}` with the URL of the owner of the tables grants them"
    )))
}
