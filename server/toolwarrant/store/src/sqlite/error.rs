//! Why a database cannot be used, in words for the operator.

use std::io;
use std::path::PathBuf;

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
        "the database `{path}` has layout {found}, which is older than this program's {known}; \
         the next start of a server brings it up to date"
    )]
    Older {
        /// Its path.
        path: PathBuf,
        /// The layout of the database.
        found: u32,
        /// The layout of this program.
        known: u32,
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
