//! One connection to a database, with the settings that durability depends on.

use rusqlite::{Connection, OpenFlags};
use std::ffi::CStr;
use std::path::Path;
use std::time::Duration;

/// While another program, such as an operator's tool, holds a lock on the database.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// More than the program has.
const STATEMENTS: usize = 32;

/// `FULL` makes a commit survive a power cut (on macOS only with `fullfsync`). `secure_delete`
/// overwrites deleted data. `temp_store` keeps temporary data off the disk. Without
/// `trusted_schema`, a manipulated database cannot call functions. The log grows to 32 MB before it
/// is merged, so that pages that change often are written once.
const EVERY: &str = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; \
                     PRAGMA secure_delete = FAST; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; \
                     PRAGMA wal_autocheckpoint = 8000;";

/// Keeps the index of the log in a file, which other programs share.
pub(super) const SHARED: &CStr = c"unix";

/// Keeps the index in memory, which needs no room on the disk. No other program can then use the
/// database.
pub(super) const ALONE: &CStr = c"unix-excl";

/// The connections of a process to one database take the same way.
pub(super) fn connection(path: &Path, access: OpenFlags, way: &CStr) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags_and_vfs(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX, way)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(EVERY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}
