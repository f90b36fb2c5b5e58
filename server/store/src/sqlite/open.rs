//! Opens a database: connections, settings and migrations.

use super::ownership::Ownership;
use super::{Fault, keeper, watermark};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Migrations from each layout to the next. `user_version` is the layout of a database.
pub(super) const MIGRATIONS: [&str; 7] = [
    include_str!("../migrations/0001_start.sql"),
    include_str!("../migrations/0002_refunds.sql"),
    include_str!("../migrations/0003_claims.sql"),
    include_str!("../migrations/0004_lanes.sql"),
    include_str!("../migrations/0005_grants.sql"),
    include_str!("../migrations/0006_marks.sql"),
    include_str!("../migrations/0007_identity.sql"),
];

/// The layout that this program reads and writes.
pub const LAYOUT: u32 = MIGRATIONS.len() as u32;

/// Number of reading connections.
const READERS: usize = 2;

/// How long to wait while another program, such as an operator's tool, has the database locked.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Prepared statements that each connection caches: more than there are.
const STATEMENTS: usize = 32;

/// Settings of every connection. `FULL` makes a commit survive a power cut (on macOS only with `fullfsync`). `secure_delete`
/// overwrites what is wiped. `temp_store` keeps temporary data off the disk. Without `trusted_schema`, a manipulated database
/// calls no functions. The log grows to 32 MB before it is merged: pages that change often are then written once.
const EVERY: &str = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; \
                     PRAGMA secure_delete = FAST; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; \
                     PRAGMA wal_autocheckpoint = 8000;";

/// Target locks: the task in flight on each target. In memory, for the writing connection alone; the table takes part in its
/// transactions.
const TARGET_LOCKS: &str = "
    CREATE TEMP TABLE target_lock (
        resource TEXT NOT NULL,
        target   TEXT NOT NULL,
        task_id  BLOB NOT NULL,
        PRIMARY KEY (target, resource)
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO target_lock SELECT resource, target, id FROM task WHERE terminal = 0;";

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its file cannot be created.
    #[error("cannot use {path}: {source}")]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It has a layout that this program does not know: a newer one wrote it.
    #[error(
        "the database `{path}` has layout {found}, and this program knows none beyond {known}; \
         start the newer one that wrote it"
    )]
    Newer {
        /// Its path.
        path: PathBuf,
        /// The layout of the database.
        found: u32,
        /// The latest layout that this program knows.
        known: u32,
    },
    /// It has an older layout, and was to be opened without changes.
    #[error(
        "the database `{path}` has layout {found}, which is older than this program's {LAYOUT}; \
         the next start of a server brings it up to date"
    )]
    Older {
        /// Its path.
        path: PathBuf,
        /// The layout of the database.
        found: u32,
    },
    /// It lacks what it once held, or is another one.
    #[error(
        "the database `{path}` is not what it was: {what}. Put a backup in an empty folder with the command `restore`; or, to go on \
         with what there is and accept the loss, remove `{watermark}`"
    )]
    Lost {
        /// Its path.
        path: PathBuf,
        /// The file that tells what it held.
        watermark: PathBuf,
        /// What it held, and what is left of that.
        what: String,
    },
    /// Its content cannot be used.
    #[error("cannot use the database `{path}`: {why}")]
    Content {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No thread can be started.
    #[error("the store has no thread: {0}")]
    Thread(#[from] io::Error),
    /// SQLite cannot open it.
    #[error("cannot open the database `{path}`: {source}")]
    Database {
        /// Its path.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

/// The connections to one database.
pub(super) struct Connections {
    pub(super) writer: Connection,
    /// For the thread that keeps the watermark.
    pub(super) keeper: Connection,
    pub(super) readers: Vec<Connection>,
    /// For reads that may take minutes.
    pub(super) inspector: Connection,
}

/// Opens a database and migrates it, unless its layout is older than `oldest`. Grants from before layout 5 become grants of
/// `former_resource`.
pub(super) fn connect(path: &Path, former_resource: &str, oldest: u32) -> Result<Connections, DatabaseError> {
    watermark::check(path)?;
    let path = path.to_owned();
    // SQLite would create it readable by everybody. It gives its other files the mode of this one.
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    made.map_err(|source| DatabaseError::File { path: path.clone(), source })?;
    let failed = |source| DatabaseError::Database { path: path.clone(), source };

    let mut writer = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let found = writer.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found > LAYOUT {
        return Err(DatabaseError::Newer { path, found, known: LAYOUT });
    }
    if found < oldest {
        return Err(DatabaseError::Older { path, found });
    }
    migrate(&mut writer, found, former_resource).map_err(failed)?;
    let reader = || connection(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed);
    let readers = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
    let keeper = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    Ok(Connections { writer, keeper, readers, inspector: reader()? })
}

/// Makes this process the owner of the database, copies into it what is in the log, and raises its watermark.
pub(super) fn take_over(path: &Path, writer: &mut Connection) -> Result<[u8; 16], DatabaseError> {
    let failed = |source| DatabaseError::Database { path: path.to_owned(), source };
    let taken = writer.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
        let taken = (Ownership::take(&transaction)?, watermark::raise(&transaction, keeper::now())?);
        transaction.commit().map(|()| taken)
    });
    let (owner, raised) = taken.map_err(failed)?;
    keeper::checkpoint(writer).map_err(failed)?;
    raised.write(path).map_err(|source| DatabaseError::File { path: watermark::path_of(path), source })?;
    Ok(owner)
}

/// Loads the target locks into the writing connection.
pub(super) fn load_target_locks(writer: &Connection) -> Result<(), DatabaseError> {
    let failed = |source| DatabaseError::Database { path: writer.path().unwrap_or_default().into(), source };
    writer.execute_batch(TARGET_LOCKS).map_err(failed)
}

/// Writes the layout number that is there already: a page goes to the disk, and nothing changes.
pub(super) fn touch(writer: &Connection) -> Result<(), Fault> {
    Ok(writer.pragma_update(None, "user_version", LAYOUT)?)
}

/// Returns an empty database of the latest layout.
pub(super) fn blank() -> rusqlite::Result<Connection> {
    let mut blank = Connection::open_in_memory()?;
    migrate(&mut blank, 0, "")?;
    Ok(blank)
}

pub(super) fn connection(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(EVERY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Runs the migrations that the database has not had, each in a transaction. Meanwhile, a temporary table tells them what only the
/// caller knows.
fn migrate(writer: &mut Connection, found: u32, former_resource: &str) -> rusqlite::Result<()> {
    writer.execute_batch("PRAGMA journal_mode = WAL;")?;
    if found == LAYOUT {
        return Ok(());
    }
    writer.execute_batch("CREATE TEMP TABLE opening (former_resource TEXT NOT NULL) STRICT;")?;
    writer.execute("INSERT INTO temp.opening VALUES (?1)", [former_resource])?;
    for (layout, sql) in (1..).zip(MIGRATIONS).skip_while(|(layout, _)| *layout <= found) {
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", layout)?;
        transaction.commit()?;
    }
    writer.execute_batch("DROP TABLE temp.opening;")
}
