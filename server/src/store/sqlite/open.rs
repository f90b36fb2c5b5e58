//! A data folder: its lock, its database, and the layout that the database must have.

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What takes a database from one layout to the next. Its `user_version` says which it has.
pub(super) const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001_start.sql")];

/// The layout that this program reads and writes.
const LAYOUT: u32 = MIGRATIONS.len() as u32;

/// The database's name in the data folder.
pub(super) const DATABASE: &str = "cloudphone.db";

/// Connections that read.
const READERS: usize = 2;

/// How long to wait for a tool of the operator that has the database locked.
const BUSY: Duration = Duration::from_secs(5);

/// Statements that each connection keeps ready: more than there are.
const STATEMENTS: usize = 32;

/// `FULL` makes a commit survive the loss of power (on macOS only with `fullfsync`), `secure_delete` overwrites what is
/// wiped, `temp_store` leaves nothing outside of the folder, and a database that was tampered with can call no function.
const EVERY: &str = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; \
                     PRAGMA secure_delete = FAST; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;";

/// A data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It belongs to another process.
    #[error("another cloudphone uses the data folder `{0}`; stop that one, or choose another folder")]
    InUse(PathBuf),
    /// A newer program has brought it to a layout that this one does not know.
    #[error(
        "the data folder `{folder}` has layout {found}, and this cloudphone knows none beyond {known}; \
         start the newer one that wrote it"
    )]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// The layout that it has.
        found: u32,
        /// The latest layout that this program knows.
        known: u32,
    },
    /// The folder, or a file in it, cannot be made or opened.
    #[error("cannot use `{path}` for the data folder: {source}")]
    Folder {
        /// Which path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// SQLite does not open the database.
    #[error("cannot open the database `{path}`: {source}")]
    Database {
        /// Its path.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

/// Creates the folder if need be, and takes it for as long as the file lives.
pub(super) fn claim(folder: &Path) -> Result<File, OpenError> {
    let failed = |path: &Path, source| OpenError::Folder { path: path.to_owned(), source };
    if !folder.is_dir() {
        create(folder).map_err(|source| failed(folder, source))?;
    }
    let mode = fs::metadata(folder).map_err(|source| failed(folder, source))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        tracing::warn!(folder = %folder.display(), mode = %format!("{mode:o}"), "others can enter the data folder");
    }
    let path = folder.join("lock");
    let lock = file(&path).map_err(|source| failed(&path, source))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(&path, source)),
    }
}

/// Opens the database of a claimed folder: the connection that writes, and those that read.
pub(super) fn connect(folder: &Path) -> Result<(Connection, Vec<Connection>), OpenError> {
    let path = folder.join(DATABASE);
    // SQLite would make it readable by everybody; its other files take the mode from this one.
    file(&path).map_err(|source| OpenError::Folder { path: path.clone(), source })?;
    let failed = |source| OpenError::Database { path: path.clone(), source };

    let mut writer = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let found = writer.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found > LAYOUT {
        return Err(OpenError::Newer { folder: folder.to_owned(), found, known: LAYOUT });
    }
    migrate(&mut writer, found).map_err(failed)?;
    let reader = |_| connection(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed);
    Ok((writer, (0..READERS).map(reader).collect::<Result<_, _>>()?))
}

fn connection(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(EVERY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Takes the database through the migrations that it has not seen, each as a whole.
fn migrate(writer: &mut Connection, found: u32) -> rusqlite::Result<()> {
    writer.execute_batch("PRAGMA journal_mode = WAL;")?;
    for (layout, sql) in (1..).zip(MIGRATIONS).skip_while(|(layout, _)| *layout <= found) {
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", layout)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Creates a folder that its owner alone can enter, for good: its name is on the disk as well.
fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    File::open(folder.join(".."))?.sync_all()
}

/// Opens a file; creates it if need be, for its owner alone.
fn file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}
