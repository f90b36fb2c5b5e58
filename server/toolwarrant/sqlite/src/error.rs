//! The reasons why a database cannot be used, as texts for the operator.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("cannot use {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error(
        "the database `{path}` has layout {found}, but this program supports at most {known}; \
         start the newer program that wrote it"
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error(
        "the database `{path}` has layout {found}, but this program knows none before {known}; start the program that wrote it, \
         or choose a new data folder"
    )]
    Former { path: PathBuf, found: u32, known: u32 },
    /// The caller asked to open it without changes.
    #[error(
        "the database `{path}` has layout {found}, which is older than this program's {known}; \
         the next start of a server brings it up to date"
    )]
    Older { path: PathBuf, found: u32, known: u32 },
    #[error(
        "the database `{path}` may have lost data: {what}. Restore a backup into an empty folder with the command \
         `restore`; or remove `{watermark}`, to accept the loss and continue with the remaining data"
    )]
    Lost {
        path: PathBuf,
        /// The file that records the data that it held.
        watermark: PathBuf,
        what: String,
    },
    #[error("cannot use the database `{path}`: {why}")]
    Content { path: PathBuf, why: String },
    #[error("cannot start a thread of the store: {0}")]
    Thread(#[from] io::Error),
    #[error("cannot open the database `{path}`: {source}")]
    Database { path: PathBuf, source: rusqlite::Error },
}
