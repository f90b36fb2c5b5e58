//! The store of several replicas, in one PostgreSQL.
//!
//! All ports of a [`Store`](toolwarrant_store::Store), and those of a cluster, are implemented by
//! [`Postgres`]. Every write is a numbered batch of a `lane`, in one statement: `accepting` and
//! `advancing` put many tasks into one, `single` has the rest. Reads share connections. The SQL
//! stands in `reads`, `directory`, `cluster` and `rules`, the tables in `schema.sql`.

mod accepting;
mod advancing;
mod claim;
mod cluster;
mod column;
mod connection;
mod directory;
mod documents;
mod health;
mod lane;
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
mod session;
mod single;
mod tls;

pub use claim::{Candidate, Claim, Leader, find_leader};
pub use cluster::NewReplica;
pub use connection::Address;
pub use health::{COUNTED_MAX, Safekeeping, ServerCheck, ServerFigures};
pub use operating::{ReplicaRun, RunState};

use accepting::Accepting;
use advancing::Advancing;
use connection::{Server, unavailable};
use lane::{Lane, LaneFacts};
use queue::Queue;
use reader::Reader;
use single::Single;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Client;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hex;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::cluster::Epoch;
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::store::{DuplicateOf, Identity, Record};
use toolwarrant_tasks::task::TaskId;

/// The tables.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// A store that replicas share, opened by one of them.
pub struct Postgres {
    epoch: Epoch,
    replica: String,
    /// The name of the audit trail.
    trail: String,
    /// The length of its lease.
    lease: Duration,
    restored_at: Option<Timestamp>,
    facts: Arc<LaneFacts>,
    /// The latest timeline of the server in which all writes of this run were found.
    timeline: Mutex<String>,
    /// True if each commit waited for another server, as of the latest beat in a settled store.
    is_synchronous: AtomicBool,
    /// The time of the server at the joining, and that moment.
    joined_at: (Timestamp, Instant),
    accepting: Lane<Accepting>,
    advancing: Lane<Advancing>,
    single: Lane<Single>,
    /// Beats, and questions before a send.
    control: Reader,
    /// Reads of requests.
    reader: Arc<Reader>,
    /// Reads of one task each.
    tasks: Queue<TaskId, Option<Record>>,
    /// Searches for a task in flight.
    repeats: Queue<Identity, Option<DuplicateOf>>,
    /// Reads that may take minutes.
    inspector: Reader,
}

impl Postgres {
    /// Checks that the tables of a new cluster can be made.
    ///
    /// # Errors
    /// The server cannot be reached, is older than PostgreSQL 15, or has a cluster already. Or the
    /// account may not make tables there.
    pub async fn check_new(address: &Address) -> Result<(), StoreError> {
        connect_new(address).await.map(drop)
    }

    /// Makes the tables of a new cluster, whose secrets are sealed with the key of this
    /// fingerprint.
    ///
    /// # Errors
    /// See [`Self::check_new`].
    pub async fn init(address: &Address, key: Digest) -> Result<(), StoreError> {
        let client = connect_new(address).await?;
        // One message is one transaction.
        let key = hex::encode(&key);
        let mut sql = SCHEMA.to_owned();
        sql += &format!(
            "INSERT INTO cluster (one, layout, key, timeline) VALUES (true, {}, '\\x{key}', {})",
            cluster::LAYOUT,
            cluster::TIMELINE
        );
        client.batch_execute(&sql).await.map_err(unavailable)?;
        // Before the first task ends: rows in the default partition keep a day from its own.
        partitions::make(&client, reads::time(&client).await?).await
    }

    /// Grants the rights of a replica to another account. The address is that of the owner of the
    /// tables.
    ///
    /// # Errors
    /// The server cannot be reached, has no tables, or refuses this. Or the account of the address
    /// is not the owner.
    pub async fn grant(address: &Address, account: &str) -> Result<(), StoreError> {
        let client = Server::parse(address)?.connect().await?;
        rights::grant(&client, account).await
    }

    /// Joins the cluster as a replica. One that leads has the [`Claim`].
    ///
    /// # Errors
    /// The server cannot be reached, is older than PostgreSQL 15, has no tables of this layout, or
    /// its secrets were sealed with another key. The account lacks rights, or a pooler shares
    /// sessions.
    pub async fn join(address: &Address, new: NewReplica) -> Result<Self, StoreError> {
        let server = Server::parse(address)?;
        let mut client = open(&server, new.key).await?;
        let row = client.query_one("SELECT restored_at FROM cluster", &[]).await.map_err(unavailable)?;
        let restored_at = row.get::<_, Option<i64>>(0).map(column::moment);
        let (epoch, timeline, time) = cluster::join(&mut client, &new).await?;
        let facts = Arc::new(LaneFacts::default());
        let reader = Arc::new(Reader::of_kept_data(&server));
        Ok(Self {
            epoch,
            replica: new.name,
            trail: new.trail,
            lease: new.lease,
            restored_at,
            accepting: lane::start::<Accepting>(&server, epoch, 0, &facts),
            advancing: lane::start::<Advancing>(&server, epoch, 1, &facts),
            single: lane::start::<Single>(&server, epoch, 2, &facts),
            control: Reader::of_lease(&server, new.lease),
            tasks: Queue::of_reads(&reader, reads::tasks_of),
            repeats: Queue::of_reads(&reader, reads::repeats),
            reader,
            inspector: Reader::new(&server),
            facts,
            timeline: Mutex::new(timeline),
            is_synchronous: AtomicBool::new(false),
            joined_at: (time, Instant::now()),
        })
    }

    /// Returns the time of the server, as of the joining and this machine's clock since.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        let (time, at) = self.joined_at;
        time.plus(at.elapsed())
    }
}

/// Connects to a server with the tables of a cluster, and checks everything that a replica needs.
async fn open(server: &Server, key: Digest) -> Result<Client, StoreError> {
    let client = server.connect().await?;
    check_server(&client).await?;
    rights::check(&client).await?;
    check_tables(&client, key).await?;
    session::check(server, &client).await?;
    Ok(client)
}

/// Connects to a server that has no cluster yet.
async fn connect_new(address: &Address) -> Result<Client, StoreError> {
    let client = Server::parse(address)?.connect().await?;
    check_server(&client).await?;
    let sql = "SELECT to_regclass('cluster') IS NOT NULL, current_user::text, current_schema()::text,
                   coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
    let row = client.query_one(sql, &[]).await.map_err(unavailable)?;
    let (exists, account, schema, may_create) =
        (row.get(0), row.get::<_, &str>(1), row.get::<_, Option<&str>>(2), row.get(3));
    match (exists, may_create) {
        (true, _) => Err(StoreError::Conflict("there is a store already; `store check` shows it".to_owned())),
        (false, false) => Err(StoreError::Corrupt(format!(
            "the account `{account}` cannot make tables; a superuser can let it: GRANT CREATE ON SCHEMA {} TO {account}",
            schema.unwrap_or("public")
        ))),
        (false, true) => Ok(client),
    }
}

/// Refuses a server that is too old.
async fn check_server(client: &Client) -> Result<(), StoreError> {
    let version =
        client.query_one("SELECT current_setting('server_version_num')::int", &[]).await.map_err(unavailable)?;
    let version: i32 = version.get(0);
    if version < 150_000 {
        return Err(StoreError::Corrupt(format!(
            "the server is PostgreSQL {}, and 15 or later is needed",
            version / 10_000
        )));
    }
    Ok(())
}

/// Refuses a layout that this program does not know, and another master key.
async fn check_tables(client: &Client, key: Digest) -> Result<(), StoreError> {
    let row = client.query_one("SELECT layout, key FROM cluster", &[]).await.map_err(unavailable)?;
    cluster::check_layout(row.get(0))?;
    match row.get::<_, &[u8]>(1) == key {
        true => Ok(()),
        false => Err(StoreError::Corrupt(
            "the master key is not the one that this store was made with; copy that one to the data folder".to_owned(),
        )),
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("replica", &self.replica).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
