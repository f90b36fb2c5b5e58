//! The claim to lead. One process at a time has it, and the others wait.
//!
//! The claim is a session lock of the server. A lock that is free proves nothing about the process
//! that held it, because a cut or a restart of the server frees it, too. So the process that gets
//! the lock waits until the former leader cannot act any more: it has left, it was a run of the
//! same data folder, or no beat of it was seen for longer than its lease.

use crate::cluster::end_runs;
use crate::column::{get, rows};
use crate::connection::{Address, Server, unavailable};
use crate::open;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::cluster::Epoch;
use toolwarrant_core::store::StoreError;

/// Interval at which a waiting process asks for the lock.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Interval at which the holder looks if its session lives.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time for the server to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Silence beyond the lease after which a leader is gone. Clocks that run at different speeds
/// differ by less.
const MARGIN: Duration = Duration::from_secs(1);

/// Time after which a session that has the lock without leading is ended.
const BECOMES_LEADER: Duration = Duration::from_mins(1);

/// The lock, one for each schema.
const LOCK: &str = "hashtextextended('toolwarrant leader ' || current_schema(), 0)";

/// The process that leads, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The name of its replica.
    pub name: String,
    /// Its machine.
    pub machine: String,
}

/// The claim of this process. It ends when this is dropped.
#[derive(Debug)]
pub struct Claim {
    client: Client,
}

/// A run that leads, or has led.
struct LeadingRun {
    epoch: Epoch,
    leader: Leader,
    beat: i64,
    lease: Duration,
}

/// The latest beat of each run that leads, and the time since which it is known.
#[derive(Default)]
struct Watched {
    beats: HashMap<Epoch, (i64, Instant)>,
    /// The session that has the lock, and the time since which it is known.
    holder: Option<(i32, Instant)>,
}

/// A process that may lead one day.
pub struct Candidate {
    server: Server,
    client: Client,
}

impl Candidate {
    /// Connects for the replica of this name, whose master key has this fingerprint. It ends the
    /// former run of that name, which is dead: it had the data folder, and the lock of that is this
    /// process's.
    ///
    /// # Errors
    /// The server cannot be reached, has no tables of this layout, or its secrets were sealed with
    /// another key. Or the account lacks rights, or a pooler shares sessions.
    pub async fn new(address: &Address, name: &str, key: Digest) -> Result<Self, StoreError> {
        let server = Server::parse(address)?;
        let mut client = open(&server, key).await?;
        let ended = async {
            let transaction = client.transaction().await?;
            end_runs(&transaction, name, false).await?;
            transaction.commit().await
        };
        ended.await.map_err(unavailable)?;
        Ok(Self { server, client })
    }

    /// Waits until this process may lead, and shows meanwhile who does. It must then join at once.
    pub async fn wait(self, shown: &watch::Sender<Option<Leader>>) -> Claim {
        let Self { server, mut client } = self;
        let (mut watched, mut fails) = (Watched::default(), false);
        loop {
            match timeout(PATIENCE, ask(&client, &mut watched, shown)).await {
                Ok(Ok(true)) => return Claim { client },
                Ok(Ok(false)) => fails = false,
                failed => {
                    let silent = || StoreError::Unavailable("PostgreSQL does not answer".to_owned());
                    let error = failed.unwrap_or_else(|_| Err(silent())).err();
                    if let (Some(error), false) = (error, fails) {
                        tracing::warn!(%error, "cannot ask for the claim to lead; retrying");
                    }
                    fails = true;
                    if let Ok(other) = server.connect().await {
                        client = other;
                    }
                }
            }
            sleep(ASK_EVERY).await;
        }
    }
}

impl Claim {
    /// Waits until the claim has ended, because its session has. Returns the reason.
    pub async fn wait_for_end(&self) -> StoreError {
        loop {
            sleep(LOOK_EVERY).await;
            match timeout(PATIENCE, self.client.simple_query("")).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return unavailable(error),
                Err(_) => return StoreError::Unavailable("PostgreSQL does not answer".to_owned()),
            }
        }
    }
}

/// Returns the leader that lives, as of the store. Its lease may be over.
///
/// # Errors
/// The server cannot be reached, or has no tables.
pub async fn find_leader(address: &Address) -> Result<Option<Leader>, StoreError> {
    let client = Server::parse(address)?.connect().await?;
    let found = rows(client.query(NOT_SILENT, &[]).await)?;
    found.first().map(|row| Ok(Leader { name: get(row, "name")?, machine: get(row, "machine")? })).transpose()
}

/// The leader whose beats have not been missed for longer than its lease, by the clock of the
/// server.
const NOT_SILENT: &str = "SELECT name, machine FROM replica WHERE leads AND state IN ('serving', 'draining')
    AND (extract(epoch FROM clock_timestamp()) * 1000)::bigint - beaten <= lease + 1000";

/// Asks for the lock. Returns true if this process may lead.
async fn ask(
    client: &Client,
    watched: &mut Watched,
    shown: &watch::Sender<Option<Leader>>,
) -> Result<bool, StoreError> {
    // A session gets a lock as often as it asks, and has it until its end.
    let holder = format!(
        "SELECT pid, pid = pg_backend_pid() AS is_own FROM pg_locks
             WHERE locktype = 'advisory' AND granted AND objsubid = 1
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND (classid::bigint << 32) | objid::bigint = {LOCK}"
    );
    let holder = rows(client.query(&holder, &[]).await)?.first().map(|row| Ok((get(row, "pid")?, get(row, "is_own")?)));
    let has_lock = match holder.transpose()? {
        Some((_, true)) => true,
        Some((pid, false)) => watched.note_holder(pid),
        None => {
            let sql = format!("SELECT pg_try_advisory_lock({LOCK})");
            client.query_one(&sql, &[]).await.map_err(unavailable)?.get(0)
        }
    };
    let runs = "SELECT epoch, name, machine, beat, lease FROM replica WHERE leads AND state IN ('serving', 'draining')";
    let runs = rows(client.query(runs, &[]).await)?;
    let runs = runs.iter().map(|row| {
        Ok(LeadingRun {
            epoch: Epoch(get::<i64>(row, "epoch")?.cast_unsigned()),
            leader: Leader { name: get(row, "name")?, machine: get(row, "machine")? },
            beat: get(row, "beat")?,
            lease: Duration::from_millis(u64::try_from(get::<i32>(row, "lease")?).unwrap_or(u64::MAX)),
        })
    });
    let runs = runs.collect::<Result<Vec<_>, StoreError>>()?;
    let is_over = watched.is_over(&runs);
    let patience = runs.iter().map(|run| run.lease + MARGIN).max().unwrap_or(BECOMES_LEADER);
    let leader = runs.into_iter().map(|run| run.leader).next();
    shown.send_if_modified(|known| {
        let is_news = *known != leader;
        *known = leader;
        is_news
    });
    // A session that got the lock since then is that of another process that waits.
    if let (false, true, Some((pid, since))) = (has_lock, is_over, watched.holder)
        && since.elapsed() >= patience
    {
        tracing::warn!("the process that leads stands still; its session is ended");
        client.query("SELECT pg_terminate_backend($1)", &[&pid]).await.map_err(unavailable)?;
    }
    Ok(has_lock && is_over)
}

impl Watched {
    /// Takes note of the session that has the lock, which is not that of this process.
    fn note_holder(&mut self, pid: i32) -> bool {
        if self.holder.is_none_or(|(known, _)| known != pid) {
            self.holder = Some((pid, Instant::now()));
        }
        false
    }

    /// Takes note of the beats. Returns true if none of these runs can act any more.
    fn is_over(&mut self, runs: &[LeadingRun]) -> bool {
        let now = Instant::now();
        self.beats.retain(|epoch, _| runs.iter().any(|run| run.epoch == *epoch));
        let mut is_over = true;
        for run in runs {
            let known = self.beats.entry(run.epoch).or_insert((run.beat, now));
            if known.0 != run.beat {
                *known = (run.beat, now);
            }
            is_over &= now.duration_since(known.1) >= run.lease + MARGIN;
        }
        is_over
    }
}
