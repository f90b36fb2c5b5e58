//! The data folder: what a service keeps on disk, for one process at a time.
//!
//! ```text
//! lock        held by the process that uses the folder
//! service     the name of the program whose folder it is
//! master.key  opens everything that is sealed, and makes verifiers; keep it apart from backups of the rest
//! NAME.db     tasks, ledger, applications, keys
//! audit/      a line for each tool call, a file a day
//! admin.sock  takes an operator's commands while a server runs
//! ```
//!
//! What a service keeps there beside these is its own.

use crate::names::Names;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolwarrant_core::hex;
use toolwarrant_core::random::Random;

/// A folder that no other process uses, until the last clone is dropped or the process dies.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    /// The name of the database in it.
    database: String,
    lock: Arc<File>,
}

/// Whether a service has its database in that folder, with anything in it.
#[must_use]
pub fn has_database(folder: &Path, names: &Names) -> bool {
    folder.join(&names.database).metadata().is_ok_and(|about| about.len() > 0)
}

/// Says whose folder it is.
const SERVICE: &str = "service";

/// The master key.
const MASTER_KEY: &str = "master.key";

/// The folder of the audit trail.
pub const AUDIT: &str = "audit";

/// The socket for operators.
pub(crate) const SOCKET: &str = "admin.sock";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It cannot be made, or read, or written to.
    #[error("cannot use {0}: {1}; --data names another folder")]
    Io(PathBuf, io::Error),
    /// Another process uses it.
    #[error("another {1} uses {0}; stop it first, or give this one a folder of its own")]
    Taken(PathBuf, String),
    /// It is another service's.
    #[error("{path} is a folder of {owner}, and this is {program}; --data names another folder")]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: String,
        /// Who wants it.
        program: String,
    },
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
    /// Takes the folder for a service, whose it is from then on. It is made if it is missing, for its owner alone; one that exists
    /// keeps its mode, as mounted volumes do, and is warned of in the log where others can enter it.
    ///
    /// # Errors
    /// See [`Unusable`].
    pub fn open(path: &Path, names: &Names) -> Result<Self, Unusable> {
        let failed = |error| Unusable::Io(path.to_owned(), error);
        if !path.is_dir() {
            create(path).map_err(failed)?;
        }
        let mode = path.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            tracing::warn!(folder = %path.display(), mode = %format!("{mode:o}"), "others can enter the data folder");
        }
        if let Some(owner) = owner(path, names).map_err(failed)?.filter(|owner| *owner != names.program) {
            return Err(Unusable::Foreign { path: path.to_owned(), owner, program: names.program.to_owned() });
        }
        let name = path.join("lock");
        let lock = private().create(true).truncate(false).open(&name).map_err(|error| Unusable::Io(name, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Unusable::Taken(path.to_owned(), names.program.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let folder = Self { path: path.to_owned(), database: names.database.clone(), lock: Arc::new(lock) };
        if !folder.join(SERVICE).exists() {
            folder.write(SERVICE, names.program).map_err(|error| Unusable::Io(folder.join(SERVICE), error))?;
        }
        Ok(folder)
    }

    /// What keeps other processes away, for who must outlive this value.
    #[must_use]
    pub fn lock(&self) -> Arc<File> {
        Arc::clone(&self.lock)
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

    /// Where the database lies, or is to lie.
    ///
    /// # Errors
    /// [`Unusable::Emptied`].
    pub fn database(&self) -> Result<PathBuf, Unusable> {
        let path = self.join(&self.database);
        let empty = path.metadata().is_ok_and(|about| about.len() == 0);
        if empty && self.join(MASTER_KEY).exists() { Err(Unusable::Emptied(path)) } else { Ok(path) }
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
        if self.join(&self.database).exists() {
            return Err(Unusable::KeyLost(path));
        }
        let failed = |error| Unusable::Io(path.clone(), error);
        let key: [u8; 32] = random.bytes().map_err(|error| failed(io::Error::other(error)))?;
        self.write(MASTER_KEY, &hex::encode(&key)).map_err(failed)?;
        Ok(key)
    }

    /// Writes a file of one line, for good: a crash leaves the whole of it or nothing.
    fn write(&self, name: &str, line: &str) -> io::Result<()> {
        let draft = self.join(&format!("{name}.new"));
        let mut file = private().create(true).truncate(true).open(&draft)?;
        writeln!(file, "{line}").and_then(|()| file.sync_all())?;
        std::fs::rename(&draft, self.join(name))?;
        File::open(&self.path).and_then(|folder| folder.sync_all())
    }
}

/// Whose folder it is: by its own word or, where it has none, by the database that lies in it.
fn owner(folder: &Path, names: &Names) -> io::Result<Option<String>> {
    match std::fs::read_to_string(folder.join(SERVICE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        said => return said.map(|name| Some(name.trim_end().to_owned())),
    }
    if folder.join(&names.database).exists() {
        return Ok(None);
    }
    let files = folder.read_dir()?.collect::<io::Result<Vec<_>>>()?;
    let database = files.iter().map(std::fs::DirEntry::path).find(|path| path.extension() == Some(OsStr::new("db")));
    Ok(database.and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned())))
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

    fn names() -> Names {
        Names::of("shop", "1.0.0")
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_made_for_its_owner_and_taken_by_one_at_a_time() {
        let root = TempDir::new().unwrap();
        let path = root.path().join("a/b");
        let folder = DataFolder::open(&path, &names()).unwrap();
        assert_eq!((mode(&path), mode(&folder.join("lock"))), (0o700, 0o600));
        assert!(matches!(DataFolder::open(&path, &names()), Err(Unusable::Taken(..))));
        drop(folder);
        drop(DataFolder::open(&path, &names()).unwrap());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        DataFolder::open(&path, &names()).unwrap();
        assert_eq!(mode(&path), 0o750, "what exists keeps its mode");
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(DataFolder::open(&file, &names()), Err(Unusable::Io(path, _)) if path == file));
    }

    #[test]
    fn a_master_key_is_made_once_and_never_in_place_of_a_lost_one() {
        let root = TempDir::new().unwrap();
        let folder = DataFolder::open(&root.path().join("data"), &names()).unwrap();
        let key = folder.master_key(&Random::System).unwrap();
        assert_ne!(key, [0; 32]);
        assert_eq!(folder.master_key(&Random::System).unwrap(), key);
        assert_eq!(mode(&folder.join("master.key")), 0o600);
        for broken in ["", "ab", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            std::fs::write(folder.join("master.key"), broken).unwrap();
            assert!(matches!(folder.master_key(&Random::System), Err(Unusable::NoKey(_))), "{broken}");
        }
        std::fs::remove_file(folder.join("master.key")).unwrap();
        std::fs::write(folder.join("shop.db"), "").unwrap();
        assert!(matches!(folder.master_key(&Random::System), Err(Unusable::KeyLost(_))));
    }

    #[test]
    fn a_folder_of_another_service_is_refused_by_its_name() {
        let root = TempDir::new().unwrap();
        let other = Names::of("other", "1.0.0");
        let refused = |path: &Path| DataFolder::open(path, &other).unwrap_err().to_string();

        let path = root.path().join("named");
        drop(DataFolder::open(&path, &names()).unwrap());
        assert_eq!(std::fs::read_to_string(path.join("service")).unwrap(), "shop\n");
        assert!(refused(&path).contains("is a folder of shop, and this is other"), "{}", refused(&path));
        DataFolder::open(&path, &names()).unwrap();

        // One from before folders said whose they are.
        let path = root.path().join("unnamed");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("shop.db"), "x").unwrap();
        assert!(refused(&path).contains("is a folder of shop"), "{}", refused(&path));
        DataFolder::open(&path, &names()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        // Not even by who may do anything elsewhere.
        let refused = DataFolder::open(Path::new("/sys"), &names()).unwrap_err().to_string();
        let named = refused.starts_with("cannot use /sys/lock: ") && refused.ends_with("--data names another folder");
        assert!(named, "{refused}");
    }

    #[test]
    fn a_database_is_never_made_in_place_of_an_emptied_one() {
        let root = TempDir::new().unwrap();
        let folder = DataFolder::open(&root.path().join("data"), &names()).unwrap();
        folder.master_key(&Random::System).unwrap();
        let path = folder.database().unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(matches!(folder.database(), Err(Unusable::Emptied(emptied)) if emptied == path));
        std::fs::write(&path, "something").unwrap();
        assert_eq!(folder.database().unwrap(), path);
    }
}
