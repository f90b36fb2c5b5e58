//! Opens a database: connections and migrations.

use super::connection::connection;
use super::error::DatabaseError;
use super::fault::Fault;
use super::ownership::Ownership;
use super::{keeper, watermark};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Migrations from each layout to the next. `user_version` is the layout of a database.
pub(super) const MIGRATIONS: [&str; 11] = [
    include_str!("migrations/0001_start.sql"),
    include_str!("migrations/0002_refunds.sql"),
    include_str!("migrations/0003_claims.sql"),
    include_str!("migrations/0004_lanes.sql"),
    include_str!("migrations/0005_grants.sql"),
    include_str!("migrations/0006_marks.sql"),
    include_str!("migrations/0007_identity.sql"),
    include_str!("migrations/0008_audit.sql"),
    include_str!("migrations/0009_clock.sql"),
    include_str!("migrations/0010_task_pages.sql"),
    include_str!("migrations/0011_operators.sql"),
];

/// The layout that this program reads and writes.
pub const LAYOUT: u32 = MIGRATIONS.len() as u32;

/// Number of reading connections.
const READERS: usize = 2;

/// Target locks: the task in flight on each target. The table is in memory, for the writing
/// connection only, and takes part in its transactions.
const TARGET_LOCKS: &str = "
    CREATE TEMP TABLE target_lock (
        resource TEXT NOT NULL,
        target   TEXT NOT NULL,
        task_id  BLOB NOT NULL,
        PRIMARY KEY (target, resource)
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO target_lock SELECT resource, target, id FROM task WHERE terminal = 0;";

/// Options to open a database.
#[derive(Debug)]
pub struct OpenOptions<'a, Lock> {
    /// The path of its file.
    pub path: &'a Path,
    /// The resource for grants from before layout 5, which do not name one: the first resource of
    /// the contract.
    pub former_resource: &'a str,
    /// Keeps other processes away. Dropped after the database is closed.
    pub lock: Lock,
}

/// The connections to one database.
pub(super) struct Connections {
    pub(super) writer: Connection,
    /// Used by the thread that raises the watermark.
    pub(super) keeper: Connection,
    pub(super) readers: Vec<Connection>,
    /// Used for reads that may take minutes.
    pub(super) inspector: Connection,
}

/// The treatment of a database of an earlier layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlierLayout {
    /// It is refused.
    Refuse,
    /// It is migrated.
    Migrate,
    /// It is copied to [`former_path`], then migrated.
    CopyAndMigrate,
}

/// Opens a database of this layout or, as `earlier` says, of an earlier one. Grants from before
/// layout 5 become grants of `former_resource`.
pub(super) fn connect(
    path: &Path,
    former_resource: &str,
    earlier: EarlierLayout,
) -> Result<Connections, DatabaseError> {
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
    watermark::check(path)?;
    let path = path.to_owned();
    // SQLite would create the file readable by everybody. It gives its other files the mode of this
    // one.
    let made = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    made.map_err(|source| DatabaseError::File { path: path.clone(), source })?;
    let failed = |source| DatabaseError::Database { path: path.clone(), source };

    let mut writer = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let found = writer.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found > LAYOUT {
        return Err(DatabaseError::Newer { path, found, known: LAYOUT });
    }
    match earlier {
        EarlierLayout::Refuse if found < LAYOUT => {
            return Err(DatabaseError::Older { path, found, known: LAYOUT });
        }
        // A new file has layout 0.
        EarlierLayout::CopyAndMigrate if (1..LAYOUT).contains(&found) => copy_former(&writer, &path, found)?,
        EarlierLayout::Refuse | EarlierLayout::Migrate | EarlierLayout::CopyAndMigrate => {}
    }
    migrate(&mut writer, found, former_resource).map_err(failed)?;
    let reader = || connection(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed);
    let readers = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
    let keeper = connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    Ok(Connections { writer, keeper, readers, inspector: reader()? })
}

/// Copies a database to [`former_path`], before it is migrated. After a kill the copy is complete
/// or absent. It replaces an earlier copy of the same layout.
fn copy_former(database: &Connection, path: &Path, layout: u32) -> Result<(), DatabaseError> {
    let copy = former_path(path, layout);
    let part = PathBuf::from([copy.as_os_str(), OsStr::new(".part")].into_iter().collect::<OsString>());
    let made = copy_into(database, &part).and_then(|()| {
        fs::rename(&part, &copy)?;
        File::open(copy.parent().unwrap_or(Path::new(".")))?.sync_all()
    });
    made.map_err(|source| {
        let _ = fs::remove_file(&part);
        DatabaseError::Copy { path: path.to_owned(), layout, copy, source }
    })
}

/// Writes the content of a database to a new file that only its owner can read, durably.
fn copy_into(database: &Connection, part: &Path) -> io::Result<()> {
    let _ = fs::remove_file(part);
    let file = File::options().write(true).create_new(true).mode(0o600).open(part)?;
    database.execute("VACUUM INTO ?1", [part.to_string_lossy()]).map_err(io::Error::other)?;
    file.sync_all()
}

/// Returns the path of the copy of a database that was made before it was migrated from `layout`.
pub(super) fn former_path(path: &Path, layout: u32) -> PathBuf {
    let end = format!(".layout-{layout}");
    PathBuf::from([path.as_os_str(), OsStr::new(&end)].into_iter().collect::<OsString>())
}

/// Makes this process the owner of the database, copies the log into it, and raises its watermark.
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

/// Writes the layout number that is already there. This writes a page to the disk without changing
/// anything.
pub(super) fn touch(writer: &Connection) -> Result<(), Fault> {
    Ok(writer.pragma_update(None, "user_version", LAYOUT)?)
}

/// Returns an empty database of the latest layout.
pub(super) fn blank() -> rusqlite::Result<Connection> {
    let mut blank = Connection::open_in_memory()?;
    migrate(&mut blank, 0, "")?;
    Ok(blank)
}

/// Runs the migrations that the database has not had, each in a transaction. A temporary table
/// passes them the values that only the caller knows.
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
