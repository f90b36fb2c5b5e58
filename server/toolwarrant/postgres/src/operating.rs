//! The replicas as an operator sees them, and the ways to end one.

use crate::Postgres;
use crate::cluster::NOW;
use crate::column::{get, rows};
use crate::connection::unavailable;
use crate::lane::Parameter;
use crate::single::Write;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use tokio_postgres::Row;
use toolwarrant_core::cluster::Epoch;
use toolwarrant_core::store::StoreError;

/// The state of a run as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It answers requests.
    Serving,
    /// It will stop when it hears of that.
    #[serde(rename = "asked to stop")]
    AskedToStop,
    /// It finishes its requests.
    Draining,
    /// It has not said that it stops, and its lease is over.
    Silent,
    /// It has stopped as planned.
    Left,
    /// Another replica, a restart or an operator has ended it.
    Evicted,
}

impl RunState {
    /// Returns true if the run has ended.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Left | Self::Evicted)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A run of a replica. Commands join as replicas, too, and are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaRun {
    /// Its name.
    pub name: String,
    /// Its machine.
    pub machine: String,
    /// Its epoch.
    pub epoch: u64,
    /// The program, with its version.
    pub program: String,
    /// Its state.
    pub state: RunState,
    /// Seconds since its latest beat, by the clock of the server.
    pub silent_seconds: u64,
    /// Number of tasks in flight that it owns. Those of a run that has ended wait for adoption.
    pub tasks: u64,
    /// The version of the directory that is in force there.
    pub directory: u64,
    /// Number of later changes of the directory.
    pub changes_behind: u64,
}

/// Returns the statement that reads all runs that lead or have led.
fn runs() -> String {
    format!(
        "SELECT name, machine, epoch, program, replica.seen, directory - replica.seen AS behind,
           CASE WHEN state IN ('serving', 'draining') AND {NOW} - beaten > lease + 1000 THEN 'silent'
                WHEN state = 'serving' AND is_asked_to_leave THEN 'asked to stop' ELSE state END AS state,
           ({NOW} - beaten) / 1000 AS silent,
           (SELECT count(*) FROM task WHERE owner = epoch) AS tasks
        FROM replica CROSS JOIN cluster WHERE leads ORDER BY name, epoch"
    )
}

const ASK_TO_LEAVE: &str = ",
    asked AS (
        UPDATE replica SET is_asked_to_leave = true FROM turn
            WHERE name = $4 AND state IN ('serving', 'draining') RETURNING replica.epoch)
    SELECT turn.one, asked.epoch AS answer FROM turn LEFT JOIN asked ON true";

impl Postgres {
    /// Returns the runs that the store knows, ordered by name. One that has left is known until
    /// its tasks are adopted, and for a minute; one that was evicted, for a day.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn runs(&self) -> Result<Vec<ReplicaRun>, StoreError> {
        let found = self.inspector.read(|client| async move { rows(client.query(&runs(), &[]).await) }).await?;
        found.iter().map(run).collect()
    }

    /// Returns true if a run leads.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn has_leader(&self) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT FROM replica WHERE leads AND state IN ('serving', 'draining'))";
        let read = self.inspector.read(|client| async move { client.query_one(sql, &[]).await.map_err(unavailable) });
        Ok(read.await?.get(0))
    }

    /// Returns the name of this run.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.replica
    }

    /// Asks the run of a replica to stop. It learns of that with its next beat. Returns its epoch,
    /// if there is such a run.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn ask_to_leave(&self, name: &str) -> Result<Option<Epoch>, StoreError> {
        self.name_run(ASK_TO_LEAVE, name).await
    }

    async fn name_run(&self, sql: &str, name: &str) -> Result<Option<Epoch>, StoreError> {
        let name = name.to_owned();
        let found = self.write(Write::new(sql, move || -> Vec<Parameter> { vec![Box::new(name.clone())] })).await?;
        Ok(found.first().map(|epoch| Epoch(epoch.cast_unsigned())))
    }
}

fn run(row: &Row) -> Result<ReplicaRun, StoreError> {
    let unknown = |error: Error| StoreError::Corrupt(format!("the state of a replica cannot be read: {error}"));
    let number = |column| Ok::<_, StoreError>(u64::try_from(get::<i64>(row, column)?).unwrap_or(0));
    Ok(ReplicaRun {
        name: get(row, "name")?,
        machine: get(row, "machine")?,
        epoch: number("epoch")?,
        program: get(row, "program")?,
        state: RunState::deserialize(get::<&str>(row, "state")?.into_deserializer()).map_err(unknown)?,
        silent_seconds: number("silent")?,
        tasks: number("tasks")?,
        directory: number("seen")?,
        changes_behind: number("behind")?,
    })
}
