//! The check that each connection has a session of its own. A pooler that gives a session to each
//! transaction would mix the settings and the batches of connections.

use crate::connection::{Server, unavailable};
use tokio_postgres::Client;
use toolwarrant_core::store::StoreError;

/// Begins a transaction on another connection: this one must keep its session, and the other one
/// must have another.
pub(crate) async fn check(server: &Server, client: &Client) -> Result<(), StoreError> {
    let before = process(client).await?;
    let other = server.connect().await?;
    other.batch_execute("BEGIN").await.map_err(unavailable)?;
    let held = process(&other).await?;
    // A pooler without a free session lets this wait until the transaction ends.
    let is_own = held != before && process(client).await? == before;
    other.batch_execute("ROLLBACK").await.map_err(unavailable)?;
    match is_own {
        true => Ok(()),
        false => Err(StoreError::Corrupt(
            "a pooler shares sessions between connections; set it to session pooling, or connect to PostgreSQL directly"
                .to_owned(),
        )),
    }
}

async fn process(client: &Client) -> Result<i32, StoreError> {
    Ok(client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(unavailable)?.get(0))
}
