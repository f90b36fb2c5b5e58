//! How a database is opened: its connections, its settings, and the layout that it must have.

use super::Fault;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What takes a database from one layout to the next. Its `user_version` says which it has.
pub(super) const MIGRATIONS: [&str; 6] = [
    include_str!("../migrations/0001_start.sql"),
    include_str!("../migrations/0002_refunds.sql"),
    include_str!("../migrations/0003_claims.sql"),
    include_str!("../migrations/0004_lanes.sql"),
    include_str!("../migrations/0005_grants.sql"),
    include_str!("../migrations/0006_marks.sql"),
];

/// The layout that this program reads and writes.
pub(super) const LAYOUT: u32 = MIGRATIONS.len() as u32;

/// Connections that read.
const READERS: usize = 2;

/// How long to wait for a tool of the operator that has the database locked.
const BUSY: Duration = Duration::from_secs(5);

/// Statements that each connection keeps ready: more than there are.
const STATEMENTS: usize = 32;

/// `FULL` makes a commit survive the loss of power (on macOS only with `fullfsync`), `secure_delete` overwrites what is
/// wiped, `temp_store` leaves nothing outside of the folder, and a database that was tampered with can call no function.
/// The log grows to 32 MB before it is folded in: most pages change many times, and are then written once.
const EVERY: &str = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; \
                     PRAGMA secure_delete = FAST; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; \
                     PRAGMA wal_autocheckpoint = 8000;";

/// One write at a time on a target: which task that is. For the connection that writes alone, and as long as it is open; it takes
/// part in every transaction.
const LANES: &str = "
    CREATE TEMP TABLE lane (
        resource TEXT NOT NULL,
        target   TEXT NOT NULL,
        task_id  BLOB NOT NULL,
        PRIMARY KEY (target, resource)
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO lane SELECT resource, target, id FROM task WHERE terminal = 0;";

/// A database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its file cannot be made.
    #[error("cannot use {path}: {source}; --data names another folder")]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A newer program has brought it to a layout that this one does not know.
    #[error(
        "the database `{path}` has layout {found}, and this program knows none beyond {known}; \
         start the newer one that wrote it"
    )]
    Newer {
        /// Its path.
        path: PathBuf,
        /// The layout that it has.
        found: u32,
        /// The latest layout that this program knows.
        known: u32,
    },
    /// An older program has left it, and it is to stay as it is.
    #[error(
        "the database `{path}` has layout {found}, which is older than this program's {LAYOUT}; \
         the next start of a server brings it up to date"
    )]
    Older {
        /// Its path.
        path: PathBuf,
        /// The layout that it has.
        found: u32,
    },
    /// There is no thread to be had for it.
    #[error("the store has no thread: {0}")]
    Thread(#[from] io::Error),
    /// SQLite does not open the database.
    #[error("cannot open the database `{path}`: {source}")]
    Database {
        /// Its path.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

/// The connections of one database.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    /// Reads everything, for as long as that takes.
    pub(super) inspector: Connection,
}

/// Opens a database, unless its layout is older than that one. `former_resource` is the one that its grants are of where they name
/// none.
pub(super) fn connect(path: &Path, former_resource: &str, oldest: u32) -> Result<Connections, OpenError> {
    let path = path.to_owned();
    // SQLite would make it readable by everybody, and gives its other files the mode of this one.
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    made.map_err(|source| OpenError::File { path: path.clone(), source })?;
    let failed = |source| OpenError::Database { path: path.clone(), source };

    let mut writer = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let found = writer.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found > LAYOUT {
        return Err(OpenError::Newer { path, found, known: LAYOUT });
    }
    if found < oldest {
        return Err(OpenError::Older { path, found });
    }
    migrate(&mut writer, found, former_resource).map_err(failed)?;
    let reader = || connection(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed);
    let readers = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
    Ok(Connections { writer, readers, inspector: reader()? })
}

/// Makes the lanes known to the connection that writes.
pub(super) fn hold_lanes(writer: &Connection) -> Result<(), OpenError> {
    let failed = |source| OpenError::Database { path: writer.path().unwrap_or_default().into(), source };
    writer.execute_batch(LANES).map_err(failed)
}

/// Writes the number of the layout, which it has already: a page goes to the disk, and nothing changes.
pub(super) fn touch(writer: &Connection) -> Result<(), Fault> {
    Ok(writer.pragma_update(None, "user_version", LAYOUT)?)
}

/// An empty database of the layout that this program knows.
pub(super) fn blank() -> rusqlite::Result<Connection> {
    let mut blank = Connection::open_in_memory()?;
    migrate(&mut blank, 0, "")?;
    Ok(blank)
}

fn connection(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(EVERY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Takes the database through the migrations that it has not seen, each as a whole. They read what only the opener knows from a
/// table that is there meanwhile.
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
