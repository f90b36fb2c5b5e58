//! A connection with the statements that were prepared on it. To plan a statement over all
//! partitions takes PostgreSQL longer than to run it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};
use toolwarrant_base::ignore_poison;

pub(crate) struct PreparedClient {
    client: Client,
    prepared: Mutex<HashMap<String, Statement>>,
}

impl Deref for PreparedClient {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl PreparedClient {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, prepared: Mutex::default() }
    }

    pub(crate) async fn prepare_once(&self, sql: &str) -> Result<Statement, Error> {
        let known = ignore_poison(self.prepared.lock()).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        ignore_poison(self.prepared.lock()).insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) async fn query_again(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        self.client.query(&self.prepare_once(sql).await?, parameters).await
    }
}
