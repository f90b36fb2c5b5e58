//! The runs as an operator sees them.

use crate::Postgres;
use crate::claim;
use crate::column::{get, rows};
use crate::runs::{self, Leader, NOW};
use serde::Serialize;
use std::fmt;
use tokio_postgres::Row;
use toolwarrant_core::store::StoreError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Leading,
    /// It has not stopped, and its lease is over.
    Silent,
    Dead,
    Left,
    Replaced,
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A run that leads or has led. A command that changes something is one, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaRun {
    pub name: String,
    pub machine: String,
    /// Later runs have greater ones.
    pub epoch: u64,
    /// With its version.
    pub program: String,
    pub state: RunState,
    /// By the clock of the server.
    pub silent_seconds: u64,
}

const LISTED_MAX: i64 = 20;

impl Postgres {
    /// Returns the latest first.
    pub async fn runs(&self) -> Result<Vec<ReplicaRun>, StoreError> {
        let sql = format!(
            "SELECT name, machine, epoch, program, state, {NOW} - beaten > lease + 1000 AS is_silent, ({NOW} - beaten) / 1000 AS silent
             FROM replica ORDER BY epoch DESC LIMIT $1"
        );
        let read = self.inspector.read(|client| {
            let sql = sql.clone();
            async move { rows(client.query(&sql, &[&LISTED_MAX]).await) }
        });
        read.await?.iter().map(run).collect()
    }

    /// Returns true if a process leads and answers clients.
    pub async fn is_served(&self) -> Result<bool, StoreError> {
        self.inspector.read(|client| async move { claim::is_served(&client).await }).await
    }

    /// Returns the leader that lives, as of the store. Its lease may be over.
    pub async fn leader(&self) -> Result<Option<Leader>, StoreError> {
        self.inspector.read(|client| async move { runs::find_leader(&client).await }).await
    }
}

fn run(row: &Row) -> Result<ReplicaRun, StoreError> {
    let number = |column| Ok::<_, StoreError>(u64::try_from(get::<i64>(row, column)?).unwrap_or(0));
    Ok(ReplicaRun {
        name: get(row, "name")?,
        machine: get(row, "machine")?,
        epoch: number("epoch")?,
        program: get(row, "program")?,
        state: match (get(row, "state")?, get(row, "is_silent")?) {
            ("serving", false) => RunState::Leading,
            ("serving", true) => RunState::Silent,
            ("dead", _) => RunState::Dead,
            ("left", _) => RunState::Left,
            _ => RunState::Replaced,
        },
        silent_seconds: number("silent")?,
    })
}
