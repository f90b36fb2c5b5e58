//! The store of a service whose machine may die, in PostgreSQL. One process at a time leads, and
//! others wait.
//!
//! [`Postgres`] implements all ports of a [`Store`](toolwarrant_store::Store). Every write is a
//! numbered batch of a `lane`: `accepting` and `advancing` put many tasks into one, `single` has
//! the rest. Reads share connections. The SQL stands in `reads`, `directory`, `runs` and `rules`,
//! the tables in `schema.sql`. Start at [`Candidate`].

mod accepting;
mod advancing;
mod claim;
mod column;
mod connection;
mod directory;
mod files;
mod health;
mod lane;
mod obstacle;
mod opening;
mod operating;
mod partitions;
mod ports;
mod prepared;
mod queue;
mod reader;
mod reads;
mod recovery;
mod rights;
mod rules;
mod runs;
mod scram;
mod session;
mod single;
mod stream;
mod tls;
mod url;

pub use claim::{Candidate, Claim, LEASE, Waiting};
pub use connection::Address;
pub use health::{COUNTED_MAX, Safekeeping, ServerCheck, ServerFigures};
pub use operating::{ReplicaRun, RunState};
pub use runs::{LAYOUT, Leader, NewRun, SeenBeat};

use accepting::Accepting;
use advancing::Advancing;
use connection::{Server, unavailable};
use lane::{Lane, LaneFacts};
use opening::{connect_new, open};
use queue::Queue;
use reader::ReadingSession;
use single::Single;
use std::fmt;
use std::sync::Arc;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hex;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::store::{Identity, Record, WriteAnswer};
use toolwarrant_tasks::task::TaskId;

pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// Opened by the process that leads, or for reading.
pub struct Postgres {
    /// 0 if this process only reads.
    epoch: u64,
    trail: String,
    restored_at: Option<Timestamp>,
    facts: Arc<LaneFacts>,
    accepting: Lane<Accepting>,
    advancing: Lane<Advancing>,
    single: Lane<Single>,
    reader: Arc<ReadingSession>,
    tasks: Queue<TaskId, Option<Record>>,
    repeats: Queue<Identity, Option<WriteAnswer>>,
    /// Reads that may take minutes.
    inspector: ReadingSession,
}

impl Postgres {
    pub async fn check_new(address: &Address) -> Result<(), StoreError> {
        connect_new(address).await.map(drop)
    }

    /// Makes a store whose secrets are sealed with the key of this fingerprint.
    pub async fn init(address: &Address, key: Digest) -> Result<(), StoreError> {
        let client = connect_new(address).await?;
        // One message is one transaction.
        let key = hex::encode(&key);
        let mut sql = SCHEMA.to_owned();
        sql += &format!(
            "INSERT INTO cluster (one, layout, key, timeline) VALUES (true, {}, '\\x{key}', {})",
            runs::LAYOUT,
            runs::TIMELINE
        );
        client.batch_execute(&sql).await.map_err(unavailable)?;
        // Before the first task ends: rows in the default partition keep a day from its own.
        partitions::make(&client, reads::time(&client).await?).await
    }

    /// Takes the address of the owner of the tables.
    pub async fn grant(address: &Address, account: &str) -> Result<(), StoreError> {
        let client = Server::parse(address)?.connect().await?;
        rights::grant(&client, account).await
    }

    /// Opens the store of the leader. Acts belong to the audit trail of that name.
    pub async fn lead(claim: &Claim, trail: String) -> Result<Self, StoreError> {
        Self::over(&claim.server, claim.epoch, trail).await
    }

    pub async fn read(address: &Address, key: Digest, trail: String) -> Result<Self, StoreError> {
        let server = Server::parse(address)?;
        drop(open(&server, key).await?);
        Self::over(&server, 0, trail).await
    }

    /// Returns the name of the replica, which its audit trail has, too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.trail
    }

    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    async fn over(server: &Server, epoch: u64, trail: String) -> Result<Self, StoreError> {
        let (facts, reader) = (Arc::new(LaneFacts::default()), Arc::new(ReadingSession::of_kept_data(server)));
        let restored_at = reader.read(|client| async move {
            let row = client.query_one("SELECT restored_at FROM cluster", &[]).await.map_err(unavailable)?;
            Ok(row.get::<_, Option<i64>>(0).map(column::moment))
        });
        Ok(Self {
            epoch,
            trail,
            restored_at: restored_at.await?,
            accepting: lane::start::<Accepting>(server, epoch, 0, &facts),
            advancing: lane::start::<Advancing>(server, epoch, 1, &facts),
            single: lane::start::<Single>(server, epoch, 2, &facts),
            tasks: Queue::of_reads(&reader, reads::tasks_of),
            repeats: Queue::of_reads(&reader, reads::repeats),
            reader,
            inspector: ReadingSession::new(server),
            facts,
        })
    }
}

/// Returns the leader that lives, as of the store. Its lease may be over.
pub async fn find_leader(address: &Address) -> Result<Option<Leader>, StoreError> {
    runs::find_leader(&Server::parse(address)?.connect().await?).await
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("trail", &self.trail).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
