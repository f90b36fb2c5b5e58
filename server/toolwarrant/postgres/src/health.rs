//! The health of the server, for an operator: its promises, and everything that slows it down or
//! that a cluster does not survive. Start at [`Postgres::examine`].

use crate::column::{get, rows};
use crate::connection::{Address, Server, unavailable};
use crate::obstacle::{find_locks, find_missing_standby, find_obstacle};
use crate::{Postgres, partitions, reads, rights};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio_postgres::Client;
use toolwarrant_base::clock::Clock;
use toolwarrant_core::store::StoreError;

/// The servers that have a write when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safekeeping {
    /// A crash of the server can lose and damage data.
    Nowhere,
    /// A failover can forget the write.
    OneServer,
    /// A failover to the synchronous standby loses nothing.
    TwoServers,
}

impl Safekeeping {
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Nowhere => "nowhere: fsync is off, so a crash of the server can lose and damage data",
            Self::OneServer => {
                "on one server: a failover can forget what it has acknowledged; no process then leads until an operator decides"
            }
            Self::TwoServers => "on two servers: a failover to the synchronous standby loses nothing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCheck {
    Partitions,
    Rights,
    Clocks,
    Standby,
    Waits,
    /// Nothing keeps dead rows for long.
    Horizon,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFigures {
    pub safekeeping: Safekeeping,
    /// True if a synchronous standby follows.
    pub has_standby: bool,
    /// In default partitions, counted up to [`COUNTED_MAX`].
    pub default_rows: u64,
    pub dead_rows: Vec<(String, u64)>,
    /// The age of the oldest transaction that keeps dead rows.
    pub horizon: Duration,
}

pub const COUNTED_MAX: i64 = 1_000;

/// In milliseconds.
const CLOCKS_APART: u64 = 1_000;

/// In seconds.
const HORIZON_MAX: i64 = 600;

/// They are made two weeks ahead.
const DAYS_AHEAD: u32 = 2;

const DEFAULTS: &str = "
    SELECT name, count FROM (VALUES
        ('ended_default', (SELECT count(*) FROM (SELECT FROM ended_default LIMIT $1) AS rows)),
        ('event_default', (SELECT count(*) FROM (SELECT FROM event_default LIMIT $1) AS rows))) AS counted (name, count)";

/// Everything that keeps dead rows from being removed, with its age.
const HOLDERS: &str = "
    SELECT 'the transaction of process ' || pid || coalesce(' (' || nullif(application_name, '') || ')', '') AS what,
           extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds
        FROM pg_stat_activity
        WHERE (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND xact_start IS NOT NULL
          AND datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT 'the prepared transaction ' || gid, extract(epoch FROM clock_timestamp() - prepared)::bigint
        FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'the replication slot ' || slot_name || ', which no standby uses,', NULL
        FROM pg_replication_slots WHERE xmin IS NOT NULL AND NOT active";

/// An account without `pg_read_all_stats` sees only that a standby follows.
const STANDBYS: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))";

const SETTINGS: &str = "SELECT name, setting FROM pg_settings WHERE name IN
    ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'max_connections') ORDER BY name";

impl Postgres {
    pub async fn inspect(address: &Address) -> Result<Value, StoreError> {
        let client = Server::parse(address)?.connect().await?;
        inspect(&client).await
    }

    pub async fn examine(&self, check: ServerCheck) -> Result<Vec<String>, StoreError> {
        if check == ServerCheck::Waits {
            return Ok(self.find_obstacle().await?.into_iter().collect());
        }
        self.inspector
            .read_within(crate::ports::INSPECTION, |client| async move { examine(&client, check).await })
            .await
    }

    /// Returns what a statement waits for, or why the server has refused a write, and the remedy.
    pub async fn find_obstacle(&self) -> Result<Option<String>, StoreError> {
        let found = self.inspector.read(|client| async move { find_obstacle(&client).await }).await;
        match (found, self.describe_refusal()) {
            (Ok(None) | Err(_), Some(refusal)) => Ok(Some(refusal)),
            (found, _) => found,
        }
    }

    /// Returns what a commit waits for, if that is the standby.
    pub async fn find_missing_standby(&self) -> Result<Option<String>, StoreError> {
        self.inspector.read(|client| async move { find_missing_standby(&client).await }).await
    }

    /// Returns the sessions that lock tables.
    pub async fn find_locks(&self) -> Result<Vec<String>, StoreError> {
        self.inspector.read(|client| async move { find_locks(&client).await }).await
    }

    #[must_use]
    pub fn describe_refusal(&self) -> Option<String> {
        self.facts.describe_refusal()
    }

    pub async fn server_figures(&self) -> Result<ServerFigures, StoreError> {
        self.inspector.read(|client| async move { figures(&client).await }).await
    }
}

async fn inspect(client: &Client) -> Result<Value, StoreError> {
    let sql = "SELECT current_setting('server_version') AS version, to_regclass('cluster') IS NOT NULL AS has_tables,
                      (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS standbys";
    let found = rows(client.query(sql, &[]).await)?;
    let row = found.first().ok_or_else(|| StoreError::Corrupt("the server does not describe itself".to_owned()))?;
    let (version, has_tables): (String, bool) = (get(row, "version")?, get(row, "has_tables")?);
    let (standbys, settings): (i64, _) = (get(row, "standbys")?, settings(client).await?);
    let safe = judge_settings(&settings).describe();
    Ok(json!({
        "version": version, "has_tables": has_tables, "acknowledged_data_is": safe, "synchronous_standbys": standbys,
        "waits": find_obstacle(client).await?, "settings": settings,
    }))
}

async fn settings(client: &Client) -> Result<Map<String, Value>, StoreError> {
    let settings = rows(client.query(SETTINGS, &[]).await)?;
    settings.iter().map(|row| Ok((get(row, "name")?, get::<String>(row, "setting")?.into()))).collect()
}

/// Judges by names of standbys: if there are any, a commit waits until one of them has it.
fn judge_settings(settings: &Map<String, Value>) -> Safekeeping {
    let is =
        |name: &str, values: &[&str]| settings.get(name).and_then(Value::as_str).is_some_and(|it| values.contains(&it));
    match (is("fsync", &["on"]), is("synchronous_standby_names", &[""]) || is("synchronous_commit", &["off", "local"]))
    {
        (false, _) => Safekeeping::Nowhere,
        (true, true) => Safekeeping::OneServer,
        (true, false) => Safekeeping::TwoServers,
    }
}

async fn examine(client: &Client, check: ServerCheck) -> Result<Vec<String>, StoreError> {
    match check {
        ServerCheck::Partitions => {
            let missing = partitions::missing(client, reads::time(client).await?, DAYS_AHEAD).await?;
            let missing =
                missing.into_iter().map(|(table, day)| format!("{} is missing", partitions::name(table, day)));
            let full = defaults(client).await?.into_iter().filter(|(_, rows)| *rows > 0);
            let full = full.map(|(name, rows)| match rows {
                COUNTED_MAX => format!("{name} has {rows} rows or more"),
                _ => format!("{name} has rows: {rows}"),
            });
            Ok(full.chain(missing).collect())
        }
        ServerCheck::Rights => {
            Ok(rights::missing(client, None).await?.into_iter().map(|right| format!("no {right}")).collect())
        }
        ServerCheck::Clocks => compare_clocks(client).await,
        ServerCheck::Standby => Ok(match judge_settings(&settings(client).await?) {
            Safekeeping::TwoServers => Vec::new(),
            safe => vec![format!("acknowledged data is {}", safe.describe())],
        }),
        ServerCheck::Waits => find_locks(client).await,
        ServerCheck::Horizon => {
            let found = holders(client).await?.into_iter().filter_map(|(what, seconds)| match seconds {
                Some(seconds) if seconds < HORIZON_MAX => None,
                Some(seconds) => Some(format!("{what} has been open for {} minutes", seconds / 60)),
                None => Some(format!("{what} keeps dead rows")),
            });
            Ok(found.chain(blindness(client).await?).collect())
        }
    }
}

/// Leaves the time of the question and its answer out of the difference.
async fn compare_clocks(client: &Client) -> Result<Vec<String>, StoreError> {
    let clock = Clock::system();
    let (sent, asked) = (clock.wall(), clock.now());
    let theirs = reads::time(client).await?;
    let half = clock.now().since(asked) / 2;
    let here = sent.plus(half);
    let (apart, side) = match theirs >= here {
        true => (theirs.since(here), "ahead of"),
        false => (here.since(theirs), "behind"),
    };
    let is_apart = apart.saturating_sub(half) > Duration::from_millis(CLOCKS_APART);
    let seconds = apart.as_millis().saturating_add(500) / 1_000;
    Ok(is_apart
        .then(|| format!("the clock of the server is {seconds} s {side} that of this machine"))
        .into_iter()
        .collect())
}

async fn defaults(client: &Client) -> Result<Vec<(String, i64)>, StoreError> {
    let found = rows(client.query(DEFAULTS, &[&COUNTED_MAX]).await)?;
    found.iter().map(|row| Ok((get(row, "name")?, get(row, "count")?))).collect()
}

async fn holders(client: &Client) -> Result<Vec<(String, Option<i64>)>, StoreError> {
    let found = rows(client.query(HOLDERS, &[]).await)?;
    found.iter().map(|row| Ok((get(row, "what")?, get(row, "seconds")?))).collect()
}

async fn blindness(client: &Client) -> Result<Option<String>, StoreError> {
    let sql = "SELECT current_user::text AS account WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')";
    let found = rows(client.query(sql, &[]).await)?;
    let describe = |account: &str| {
        format!(
            "`{account}` does not see the transactions of others; a superuser can GRANT pg_read_all_stats TO {account}"
        )
    };
    found.first().map(|row| Ok(describe(get(row, "account")?))).transpose()
}

async fn figures(client: &Client) -> Result<ServerFigures, StoreError> {
    let sql = "SELECT relname::text AS name, n_dead_tup AS dead FROM pg_stat_user_tables
               WHERE relid = ANY (ARRAY[to_regclass('task'), to_regclass('target'), to_regclass('replica'), to_regclass('writer')])
               ORDER BY 1";
    let dead = rows(client.query(sql, &[]).await)?;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(ServerFigures {
        safekeeping: judge_settings(&settings(client).await?),
        has_standby: client.query_one(STANDBYS, &[]).await.map_err(unavailable)?.get(0),
        default_rows: defaults(client).await?.into_iter().map(|(_, rows)| count(rows)).sum(),
        dead_rows: dead
            .iter()
            .map(|row| Ok((get(row, "name")?, count(get(row, "dead")?))))
            .collect::<Result<_, StoreError>>()?,
        horizon: Duration::from_secs(
            holders(client).await?.into_iter().filter_map(|(_, age)| age).max().map_or(0, count),
        ),
    })
}
