//! Documents: small values with versions.

use crate::column::{get, rows};
use crate::lane::column;
use crate::single::Write;
use tokio_postgres::Client;
use toolwarrant_core::documents::Document;
use toolwarrant_core::store::StoreError;

/// Reads documents.
pub(crate) async fn read(client: &Client, space: &'static str, keys: Vec<String>) -> Result<Vec<Document>, StoreError> {
    let sql = "SELECT key, version, body FROM document WHERE space = $1 AND key = ANY($2)";
    let found = rows(client.query(sql, &[&space, &keys]).await)?;
    found
        .iter()
        .map(|row| {
            let version = get::<i64>(row, "version")?.cast_unsigned();
            Ok(Document { key: get(row, "key")?, version, body: get(row, "body")? })
        })
        .collect()
}

/// Returns the write that puts documents. Its answer has the places of those that were put, from 1.
pub(crate) fn put(space: &'static str, documents: Vec<Document>) -> Write {
    let sql = ",
        input AS MATERIALIZED (
            SELECT given.* FROM turn, unnest($5::text[], $6::bigint[], $7::bytea[])
                WITH ORDINALITY AS given (key, version, body, place)),
        made AS (
            INSERT INTO document (space, key, version, body)
            SELECT $4, key, 1, body FROM input WHERE version = 0 ORDER BY key ON CONFLICT DO NOTHING RETURNING key),
        changed AS (
            UPDATE document SET version = document.version + 1, body = input.body FROM input
                WHERE document.space = $4 AND document.key = input.key AND document.version = input.version
                  AND input.version > 0
            RETURNING document.key),
        written AS (SELECT key FROM made UNION ALL SELECT key FROM changed)
        SELECT turn.one, input.place AS answer
            FROM turn LEFT JOIN (input JOIN written ON written.key = input.key) ON true";
    Write::new(sql, move || {
        vec![
            Box::new(space),
            column(&documents, |document| document.key.clone()),
            column(&documents, |document| document.version.cast_signed()),
            column(&documents, |document| document.body.clone()),
        ]
    })
}
