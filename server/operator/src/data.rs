//! The data folder: what this program keeps on disk, for one process at a time.
//!
//! ```text
//! lock             held by the process that uses the folder
//! master.key       opens everything that is sealed, and makes verifiers; keep it apart from backups of the rest
//! cloudphone.db    tasks, ledger, applications, keys
//! audit/           a line for each tool call, a file a day
//! simulated.jsonl  what was really done on the simulated phones
//! ```

use crate::hex;
use crate::random::Random;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that no other process uses, until the last clone is dropped or the process dies.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    _lock: Arc<File>,
}

/// Whether there is a database in that folder, with anything in it.
#[must_use]
pub fn has_database(folder: &Path) -> bool {
    folder.join(DATABASE).metadata().is_ok_and(|about| about.len() > 0)
}

/// The database's name in the folder.
const DATABASE: &str = "cloudphone.db";

/// The master key's.
const MASTER_KEY: &str = "master.key";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It cannot be made, or read, or written to.
    #[error("cannot use {0}: {1}; --data names another folder")]
    Io(PathBuf, io::Error),
    /// Another process uses it.
    #[error("another cloudphone uses {0}; stop it first, or give this one a folder of its own")]
    Taken(PathBuf),
    /// The master key is not what was written there.
    #[error("{0} is not a master key: 64 hexadecimal digits and a line end")]
    NoKey(PathBuf),
    /// There is something that only a master key opens, and none.
    #[error("{0} is missing, without which nothing in this folder can be opened; restore it from where it was kept")]
    KeyLost(PathBuf),
    /// There is a master key, and nothing in the database that it was made for.
    #[error(
        "{0} is empty, beside a master key; restore it from a backup, or remove it to begin without any application"
    )]
    Emptied(PathBuf),
}

impl DataFolder {
    /// Takes the folder. It is made if it is missing, for its owner alone; one that exists keeps its mode, as mounted volumes
    /// do, and is warned of in the log where others can enter it.
    ///
    /// # Errors
    /// See [`Unusable`].
    pub fn open(path: &Path) -> Result<Self, Unusable> {
        let failed = |error| Unusable::Io(path.to_owned(), error);
        if !path.is_dir() {
            create(path).map_err(failed)?;
        }
        let mode = path.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            tracing::warn!(folder = %path.display(), mode = %format!("{mode:o}"), "others can enter the data folder");
        }
        let name = path.join("lock");
        let lock = private().create(true).truncate(false).open(&name).map_err(|error| Unusable::Io(name, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: Arc::new(lock) }),
            Err(TryLockError::WouldBlock) => Err(Unusable::Taken(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where something in it lies.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The database, which is made if it is missing: SQLite would make it readable by everybody, and gives its other files the
    /// mode of this one.
    ///
    /// # Errors
    /// See [`Unusable`].
    pub fn database(&self) -> Result<PathBuf, Unusable> {
        let path = self.join(DATABASE);
        if path.exists() && !has_database(&self.path) && self.join(MASTER_KEY).exists() {
            return Err(Unusable::Emptied(path));
        }
        let made = private().create(true).truncate(false).open(&path);
        made.map(|_| path.clone()).map_err(|error| Unusable::Io(path, error))
    }

    /// Which file has the database's name at this moment: its device and inode.
    #[must_use]
    pub fn database_file(&self) -> Option<(u64, u64)> {
        self.join(DATABASE).metadata().ok().map(|about| (about.dev(), about.ino()))
    }

    /// The master key. It is made at the first start, before there is anything that needs it.
    ///
    /// # Errors
    /// See [`Unusable`].
    pub fn master_key(&self, random: &Random) -> Result<[u8; 32], Unusable> {
        let path = self.join(MASTER_KEY);
        match read_master_key(&self.path) {
            Err(Unusable::Io(_, error)) if error.kind() == ErrorKind::NotFound => {}
            known => return known,
        }
        if self.join(DATABASE).exists() {
            return Err(Unusable::KeyLost(path));
        }
        let failed = |error| Unusable::Io(path.clone(), error);
        let key: [u8; 32] = random.bytes().map_err(|error| failed(io::Error::other(error)))?;
        // Under another name first: a crash leaves no half of a key.
        let draft = self.join("master.key.new");
        let mut file = private().create(true).truncate(true).open(&draft).map_err(failed)?;
        writeln!(file, "{}", hex::encode(&key)).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&draft, &path).map_err(failed)?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(key)
    }
}

/// The master key that lies in a folder, which may be another process's.
///
/// # Errors
/// See [`Unusable`].
pub fn read_master_key(folder: &Path) -> Result<[u8; 32], Unusable> {
    let path = folder.join(MASTER_KEY);
    let failed = |error| Unusable::Io(path.clone(), error);
    // Before it is opened: a pipe would hold up whoever does that.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(Unusable::NoKey(path));
    }
    let mut file = File::open(&path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        tracing::warn!(file = %path.display(), mode = %format!("{mode:o}"), "others can read the master key");
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|_| Unusable::NoKey(path.clone()))?;
    hex::decode(text.trim_end()).and_then(|key| key.try_into().ok()).ok_or(Unusable::NoKey(path))
}

/// Everything in a folder, with what is known of it; the folder itself included. Of links, only that to a master key is followed,
/// which may well be kept elsewhere.
///
/// # Errors
/// It cannot be read.
pub fn everything(folder: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let mut found = Vec::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let follows = path == folder || path == folder.join(MASTER_KEY);
        let about = if follows { path.metadata() } else { path.symlink_metadata() };
        let about = match about {
            // A log of the database or an old file may go while this looks.
            Err(error) if error.kind() == ErrorKind::NotFound && path != folder => continue,
            about => about?,
        };
        if about.is_dir() {
            for entry in path.read_dir()? {
                paths.push(entry?.path());
            }
        }
        found.push((path, about));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// Makes a folder that its owner alone can enter, for good: its name is on the disk as well.
fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    File::open(path.join(".."))?.sync_all()
}

/// To write, for the owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_made_for_its_owner_and_taken_by_one_at_a_time() {
        let root = TempDir::new().unwrap();
        let path = root.path().join("a/b");
        let folder = DataFolder::open(&path).unwrap();
        assert_eq!((mode(&path), mode(&folder.join("lock"))), (0o700, 0o600));
        assert!(matches!(DataFolder::open(&path), Err(Unusable::Taken(_))));
        drop(folder);
        drop(DataFolder::open(&path).unwrap());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        DataFolder::open(&path).unwrap();
        assert_eq!(mode(&path), 0o750, "what exists keeps its mode");
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(DataFolder::open(&file), Err(Unusable::Io(path, _)) if path == file));
    }

    #[test]
    fn a_master_key_is_made_once_and_never_in_place_of_a_lost_one() {
        let root = TempDir::new().unwrap();
        let folder = DataFolder::open(&root.path().join("data")).unwrap();
        let key = folder.master_key(&Random::System).unwrap();
        assert_ne!(key, [0; 32]);
        assert_eq!(folder.master_key(&Random::System).unwrap(), key);
        assert_eq!(mode(&folder.join("master.key")), 0o600);
        for broken in ["", "ab", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            std::fs::write(folder.join("master.key"), broken).unwrap();
            assert!(matches!(folder.master_key(&Random::System), Err(Unusable::NoKey(_))), "{broken}");
        }
        std::fs::remove_file(folder.join("master.key")).unwrap();
        std::fs::write(folder.join("cloudphone.db"), "").unwrap();
        assert!(matches!(folder.master_key(&Random::System), Err(Unusable::KeyLost(_))));
    }
    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        // Not even by who may do anything elsewhere.
        let refused = DataFolder::open(Path::new("/sys")).unwrap_err().to_string();
        let named = refused.starts_with("cannot use /sys/lock: ") && refused.ends_with("--data names another folder");
        assert!(named, "{refused}");
    }

    #[test]
    fn a_database_is_made_for_its_owner_and_never_in_place_of_an_emptied_one() {
        let root = TempDir::new().unwrap();
        let folder = DataFolder::open(&root.path().join("data")).unwrap();
        folder.master_key(&Random::System).unwrap();
        let path = folder.database().unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(matches!(folder.database(), Err(Unusable::Emptied(emptied)) if emptied == path));
        std::fs::write(&path, "something").unwrap();
        assert_eq!(folder.database().unwrap(), path);
    }
}
