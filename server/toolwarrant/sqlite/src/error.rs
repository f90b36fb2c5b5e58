//! The reasons why a database cannot be used, as texts for the operator.

use std::io;
use std::path::PathBuf;

/// The reason why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its file cannot be created.
    #[error("cannot use {path}: {source}")]
    File {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It has a layout that this program does not know: a newer program wrote it.
    #[error(
        "the database `{path}` has layout {found}, but this program supports at most {known}; \
         start the newer program that wrote it"
    )]
    Newer {
        /// Its path.
        path: PathBuf,
        /// The layout of the database.
        found: u32,
        /// The latest layout that this program knows.
        known: u32,
    },
    /// It has a layout from before the first that this program knows.
    #[error(
        "the database `{path}` has layout {found}, but this program knows none before {known}; start the program that wrote it, \
         or choose a new data folder"
    )]
    Former {
        /// Its path.
        path: PathBuf,
        /// The layout of the database.
        found: u32,
        /// The earliest layout that this program knows.
        known: u32,
    },
    /// It has an older layout, and the caller asked to open it without changes.
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
    /// It lacks data that it once held, or is another database.
    #[error(
        "the database `{path}` may have lost data: {what}. Restore a backup into an empty folder with the command \
         `restore`; or remove `{watermark}`, to accept the loss and continue with the remaining data"
    )]
    Lost {
        /// Its path.
        path: PathBuf,
        /// The file that records the data that it held.
        watermark: PathBuf,
        /// The recorded data, and the part of it that is left.
        what: String,
    },
    /// Its content cannot be used.
    #[error("cannot use the database `{path}`: {why}")]
    Content {
        /// Its path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// No thread can be started.
    #[error("cannot start a thread of the store: {0}")]
    Thread(#[from] io::Error),
    /// SQLite cannot open it.
    #[error("cannot open the database `{path}`: {source}")]
    Database {
        /// Its path.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}
