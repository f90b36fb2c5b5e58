//! The small files of a service. They are in the data folder or, if the data is in a PostgreSQL, in
//! the store, so that they outlive the machine.
//!
//! A service opens its files while it is made, and writes them later. Only the process that leads
//! writes files in a store. Start at [`ServiceFiles::open`].

use crate::store::{StoreError, Stored};
use std::collections::HashMap;
use std::fmt::{self, Debug, Display};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use toolwarrant_base::durable;

/// Stores files.
pub trait FileStore: Debug + Send + Sync + 'static {
    /// Returns the name and the content of each file.
    fn files(&self) -> Stored<'_, HashMap<String, Vec<u8>>>;

    /// Stores a file in place of an earlier one of that name. Refuses to do that while another
    /// process leads.
    fn put_file(&self, name: String, content: Vec<u8>) -> Stored<'_, ()>;
}

/// Longest part of a [`LineFile`] in a store, in bytes. Each line writes its part again.
const PART: usize = 16 * 1024;

/// The place of the files of a service.
#[derive(Clone, Debug)]
pub struct ServiceFiles(FilesPlace);

#[derive(Clone, Debug)]
enum FilesPlace {
    Folder(PathBuf),
    Store {
        store: Arc<dyn FileStore>,
        /// The files at the start.
        found: Arc<HashMap<String, Vec<u8>>>,
    },
}

/// A file that is replaced as a whole. After a crash it has its old or its new content.
#[derive(Clone, Debug)]
pub struct ServiceFile {
    place: FilePlace,
    /// The damaged content that was found, until it is stored under another name.
    damaged: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum FilePlace {
    Folder(PathBuf),
    Store(Arc<dyn FileStore>, String),
}

/// A file that grows by lines. Each entry starts a new line, so that an entry that a crash has
/// truncated does not spoil the next one.
#[derive(Debug)]
pub struct LineFile(LinesPlace);

#[derive(Debug)]
enum LinesPlace {
    Folder(Arc<File>),
    Store {
        store: Arc<dyn FileStore>,
        name: String,
        /// The number of the last part, and its content.
        last: (usize, String),
    },
}

impl ServiceFiles {
    /// Files in a folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self(FilesPlace::Folder(folder.to_owned()))
    }

    /// Reads the files in a store.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn in_store(store: Arc<dyn FileStore>) -> Result<Self, StoreError> {
        let found = Arc::new(store.files().await?);
        Ok(Self(FilesPlace::Store { store, found }))
    }

    /// Opens a file that is replaced as a whole. Returns it with its content at the start of this
    /// process; `None` if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(&self, name: &str) -> io::Result<(ServiceFile, Option<Vec<u8>>)> {
        let (place, content) = match &self.0 {
            FilesPlace::Folder(folder) => {
                let path = folder.join(name);
                let content = read(&path)?;
                (FilePlace::Folder(path), content)
            }
            FilesPlace::Store { store, found } => {
                (FilePlace::Store(Arc::clone(store), name.to_owned()), found.get(name).cloned())
            }
        };
        Ok((ServiceFile { place, damaged: None }, content))
    }

    /// Opens a file that grows by lines. Returns it with its content at the start of this process.
    ///
    /// # Errors
    /// The file cannot be read or, if there is none, cannot be created.
    pub fn open_lines(&self, name: &str) -> io::Result<(LineFile, String)> {
        match &self.0 {
            FilesPlace::Folder(folder) => {
                let path = folder.join(name);
                let open = || {
                    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
                    let mut text = String::new();
                    (&file).read_to_string(&mut text)?;
                    Ok((LineFile(LinesPlace::Folder(Arc::new(file))), text))
                };
                open().map_err(|error: Error| describe(&path, &error))
            }
            FilesPlace::Store { store, found } => {
                let parts = (0..).map_while(|number| found.get(&part_name(name, number)));
                let parts: Vec<_> = parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
                let last = (parts.len().saturating_sub(1), parts.last().cloned().unwrap_or_default());
                let (store, name) = (Arc::clone(store), name.to_owned());
                Ok((LineFile(LinesPlace::Store { store, name, last }), parts.concat()))
            }
        }
    }
}

impl ServiceFile {
    /// Keeps the damaged content of this file under another name, which ends with `.damaged`: in a
    /// folder at once, and in a store before the file is replaced.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn set_aside(&mut self, content: Vec<u8>) -> io::Result<()> {
        match &self.place {
            FilePlace::Folder(path) => {
                fs::rename(path, path.with_added_extension("damaged")).map_err(|error| describe(path, &error))?;
            }
            FilePlace::Store(..) => self.damaged = Some(content),
        }
        Ok(())
    }

    /// Replaces the content durably. The file is readable only by its owner.
    ///
    /// # Errors
    /// The file cannot be written. In a folder it is unchanged; in a store that is unknown.
    pub async fn replace(&mut self, content: Vec<u8>) -> io::Result<()> {
        match &self.place {
            FilePlace::Folder(path) => {
                let path = path.clone();
                spawn_blocking(move || durable::replace(&path, |file| file.write_all(&content)).map(drop)).await?
            }
            FilePlace::Store(store, name) => {
                if let Some(damaged) = &self.damaged {
                    store.put_file(format!("{name}.damaged"), damaged.clone()).await.map_err(Error::other)?;
                    self.damaged = None;
                }
                store.put_file(name.clone(), content).await.map_err(Error::other)
            }
        }
    }

    /// Returns true if the file is in a store, so that the next process can be on another machine.
    #[must_use]
    pub fn is_in_store(&self) -> bool {
        matches!(self.place, FilePlace::Store(..))
    }
}

impl Display for ServiceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            FilePlace::Folder(path) => Display::fmt(&path.display(), f),
            FilePlace::Store(_, name) => write!(f, "{name} in the store"),
        }
    }
}

impl LineFile {
    /// Adds a line durably.
    ///
    /// # Errors
    /// The file cannot be written. It may have the line.
    pub async fn append(&mut self, line: &str) -> io::Result<()> {
        let entry = format!("\n{line}");
        match &mut self.0 {
            LinesPlace::Folder(file) => {
                let file = Arc::clone(file);
                let write = move || {
                    (&*file).write_all(entry.as_bytes())?;
                    file.sync_data()
                };
                spawn_blocking(write).await?
            }
            LinesPlace::Store { store, name, last: (number, part) } => {
                let (number_now, part_now) = match part.len() + entry.len() > PART {
                    true => (*number + 1, entry),
                    false => (*number, format!("{part}{entry}")),
                };
                let put = store.put_file(part_name(name, number_now), part_now.clone().into_bytes());
                put.await.map_err(Error::other)?;
                (*number, *part) = (number_now, part_now);
                Ok(())
            }
        }
    }
}

/// Returns the content of a file, if there is one.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Reading from a pipe would wait for a writer.
    let read = path.metadata().and_then(|about| match about.is_file() {
        true => fs::read(path),
        false => Err(Error::new(ErrorKind::InvalidInput, "is not a file")),
    });
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| describe(path, &error)),
    }
}

fn part_name(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}.{number}") }
}

fn describe(path: &Path, error: &Error) -> Error {
    Error::new(error.kind(), format!("`{}` {error}", path.display()))
}
