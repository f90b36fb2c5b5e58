//! Opens a database: connections and migrations.

use super::connection::{ALONE, SHARED, connection};
use super::error::DatabaseError;
use super::fault::Fault;
use super::ownership::Ownership;
use super::{keeper, watermark};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use rustix::fs::{StatVfs, statvfs};
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub const FIRST_LAYOUT: u32 = 11;

/// The first script creates a database of [`FIRST_LAYOUT`]. Each other one migrates to the next
/// layout, which `user_version` holds.
pub(super) const SCRIPTS: [&str; 5] = [
    include_str!("migrations/0011_start.sql"),
    include_str!("migrations/0012_request_counts.sql"),
    include_str!("migrations/0013_files.sql"),
    include_str!("migrations/0014_acts.sql"),
    include_str!("migrations/0015_task_status.sql"),
];

pub const LAYOUT: u32 = FIRST_LAYOUT + SCRIPTS.len() as u32 - 1;

const READERS: usize = 2;

/// The task in flight on each target. In memory, for the writing connection only, and part of its
/// transactions.
const TARGET_LOCKS: &str = "
    CREATE TEMP TABLE target_lock (
        resource TEXT NOT NULL,
        target   TEXT NOT NULL,
        task_id  BLOB NOT NULL,
        PRIMARY KEY (target, resource)
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO target_lock SELECT resource, target, id FROM task WHERE terminal = 0;";

pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) keeper: Connection,
    pub(super) readers: Vec<Connection>,
    pub(super) inspector: Connection,
}

/// For a database that has not had all [`SCRIPTS`], such as a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlierLayout {
    Refuse,
    Migrate,
}

/// More than the index of the log needs at first. SQLite does not reserve all of it, and the system
/// ends a process for which it then has no page.
const INDEX_ROOM: u64 = 256 << 10;

pub(super) fn connect(path: &Path, earlier: EarlierLayout) -> Result<Connections, DatabaseError> {
    let index = PathBuf::from([path.as_os_str(), OsStr::new("-shm")].into_iter().collect::<OsString>());
    let lacks_room = |disk: StatVfs| disk.f_bavail.saturating_mul(disk.f_frsize) < INDEX_ROOM;
    if index.exists() || !path.parent().and_then(|folder| statvfs(folder).ok()).is_some_and(lacks_room) {
        match connect_by(path, earlier, SHARED) {
            Err(DatabaseError::Database { source, .. }) if cannot_write(&source) => {}
            connected => return connected,
        }
    }
    let connected = connect_by(path, earlier, ALONE)?;
    tracing::warn!("the disk has no room; until the next start, no other program can use the database");
    Ok(connected)
}

/// Returns true for a full disk, a quota, and a limit on the size of files, among others.
fn cannot_write(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure))
}

fn lacks_room(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

fn connect_by(path: &Path, earlier: EarlierLayout, way: &CStr) -> Result<Connections, DatabaseError> {
    // SQLite does not say which of its files it may not open.
    for end in ["", "-wal", "-shm"] {
        let path = PathBuf::from([path.as_os_str(), OsStr::new(end)].into_iter().collect::<OsString>());
        match File::options().write(true).open(&path) {
            Err(source) if source.kind() == ErrorKind::PermissionDenied => {
                return Err(DatabaseError::File { path, source });
            }
            _ => {}
        }
    }
    watermark::check(path, way)?;
    let path = path.to_owned();
    // SQLite would create it readable by everybody. It gives its other files the mode of this one.
    let made = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    made.map_err(|source| DatabaseError::File { path: path.clone(), source })?;
    let failed = |source| DatabaseError::Database { path: path.clone(), source };

    let mut writer = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, way).map_err(failed)?;
    let found = writer.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    match found {
        1..FIRST_LAYOUT => return Err(DatabaseError::Former { path, found, known: FIRST_LAYOUT }),
        _ if found > LAYOUT => return Err(DatabaseError::Newer { path, found, known: LAYOUT }),
        _ if found < LAYOUT && earlier == EarlierLayout::Refuse => {
            return Err(DatabaseError::Older { path, found, known: LAYOUT });
        }
        _ => migrate(&mut writer, found).map_err(failed)?,
    }
    let reader = || connection(&path, OpenFlags::SQLITE_OPEN_READ_ONLY, way).map_err(failed);
    let readers = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
    let keeper = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, way).map_err(failed)?;
    Ok(Connections { writer, keeper, readers, inspector: reader()? })
}

/// On a full disk it writes nothing.
pub(super) fn take_over(path: &Path, writer: &mut Connection) -> Result<[u8; 16], DatabaseError> {
    let failed = |source| DatabaseError::Database { path: path.to_owned(), source };
    // A copy made with hard links is the database of another folder. Taking it over would take it
    // from the process that uses that folder.
    if path.metadata().is_ok_and(|about| about.nlink() > 1) {
        let why = "it is a hard link to another file; copy it with `backup`, or with `cp` without links";
        return Err(DatabaseError::File { path: path.to_owned(), source: io::Error::other(why) });
    }
    let taken = writer.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
        let taken = (Ownership::take(&transaction)?, watermark::raise(&transaction, keeper::now())?);
        transaction.commit().map(|()| taken)
    });
    let (owner, raised) = match taken {
        Err(why) if cannot_write(&why) => {
            tracing::error!(%why, "the store cannot write; reads and revocations go on");
            return Ownership::inherit(writer).map_err(failed);
        }
        taken => taken.map_err(failed)?,
    };
    // The keeper repeats both.
    let checkpointed = keeper::checkpoint(writer);
    checkpointed.or_else(|why| if cannot_write(&why) { Ok(()) } else { Err(failed(why)) })?;
    match raised.write(path) {
        Err(why) if lacks_room(&why) => tracing::warn!(%why, "the watermark of the database could not be raised"),
        raised => raised.map_err(|source| DatabaseError::File { path: watermark::path_of(path), source })?,
    }
    Ok(owner)
}

pub(super) fn load_target_locks(writer: &Connection) -> Result<(), DatabaseError> {
    let failed = |source| DatabaseError::Database { path: writer.path().unwrap_or_default().into(), source };
    writer.execute_batch(TARGET_LOCKS).map_err(failed)
}

/// Writes a page to the disk without changing anything.
pub(super) fn touch(writer: &Connection) -> Result<(), Fault> {
    Ok(writer.pragma_update(None, "user_version", LAYOUT)?)
}

pub(super) fn blank() -> rusqlite::Result<Connection> {
    let mut blank = Connection::open_in_memory()?;
    migrate(&mut blank, 0)?;
    Ok(blank)
}

/// Runs each script in a transaction.
fn migrate(writer: &mut Connection, found: u32) -> rusqlite::Result<()> {
    writer.execute_batch("PRAGMA journal_mode = WAL;")?;
    for (layout, sql) in (FIRST_LAYOUT..).zip(SCRIPTS).skip_while(|(layout, _)| *layout <= found) {
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", layout)?;
        transaction.commit()?;
        if layout > FIRST_LAYOUT && found > 0 {
            tracing::info!(layout, "the database was migrated");
        }
    }
    Ok(())
}
