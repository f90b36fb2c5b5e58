//! Documents: small values with versions.

use crate::column::{get, rows};
use crate::lane::{Parameter, column};
use crate::prepared::PreparedClient;
use toolwarrant_core::documents::Document;
use toolwarrant_core::store::StoreError;

/// Reads documents.
pub(crate) async fn read(
    client: &PreparedClient,
    space: &'static str,
    keys: Vec<String>,
) -> Result<Vec<Document>, StoreError> {
    let sql = "SELECT key, version, body FROM document WHERE space = $1 AND key = ANY($2)";
    let found = rows(client.query_again(sql, &[&space, &keys]).await)?;
    found
        .iter()
        .map(|row| {
            let version = get::<i64>(row, "version")?.cast_unsigned();
            Ok(Document { key: get(row, "key")?, version, body: get(row, "body")? })
        })
        .collect()
}

/// A document with its space.
pub(crate) type SpacedDocument = (&'static str, Document);

/// Puts documents. The answer has the places of those that were put, from 1. Rows are locked in
/// order, because other replicas put the same documents.
pub(crate) const PUT: &str = ",
    input AS MATERIALIZED (
        SELECT given.* FROM turn, unnest($4::text[], $5::text[], $6::bigint[], $7::bytea[])
            WITH ORDINALITY AS given (space, key, version, body, place)),
    made AS (
        INSERT INTO document (space, key, version, body)
        SELECT space, key, 1, body FROM input WHERE version = 0 ORDER BY space, key ON CONFLICT DO NOTHING
        RETURNING space, key),
    locked AS MATERIALIZED (
        SELECT document.space, document.key, input.body FROM input JOIN document USING (space, key, version)
            WHERE input.version > 0 ORDER BY document.space, document.key FOR UPDATE OF document),
    changed AS (
        UPDATE document SET version = document.version + 1, body = locked.body FROM locked
            WHERE document.space = locked.space AND document.key = locked.key
        RETURNING document.space, document.key),
    written AS (SELECT space, key FROM made UNION ALL SELECT space, key FROM changed)
    SELECT turn.one, input.place AS answer FROM turn LEFT JOIN (input JOIN written USING (space, key)) ON true";

/// Returns the parameters of [`PUT`], from the fourth on.
pub(crate) fn put_parameters(documents: &[&SpacedDocument]) -> Vec<Parameter> {
    vec![
        column(documents, |(space, _)| *space),
        column(documents, |(_, document)| document.key.clone()),
        column(documents, |(_, document)| document.version.cast_signed()),
        column(documents, |(_, document)| document.body.clone()),
    ]
}
