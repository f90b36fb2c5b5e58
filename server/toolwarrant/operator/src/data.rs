//! The data folder: everything that a service stores on disk. One process uses it at a time.
//!
//! ```text
//! lock            locked by the process that uses the folder, as is the folder itself
//! service         the name of the program that the folder belongs to
//! master.key      opens sealed data and verifies secrets; back it up apart from the rest
//! NAME.db         tasks, ledger, applications, keys
//! NAME.watermark  records how much the database has held, so that a loss is detected
//! replica         the name of the replica; the data is then in a shared store, and not here
//! run             the latest run of that replica
//! seen            the latest beat that it has seen, so that an older copy of the store is noticed
//! audit/          one line for each tool call, one file a day
//! admin.sock      receives operator commands while a server runs
//! restoring/      only if a restore was interrupted
//! ```
//!
//! A service may store further files there. Start at [`DataFolder::open`].

use crate::flags::{DATA, REPLICA as REPLICA_FLAG, STORE};
use crate::names::Names;
pub(crate) use crate::owner::LOCK;
use crate::owner::{OtherUser, refuse_other_user, remedy};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolwarrant_base::random::Random;
use toolwarrant_base::{durable, hex};
use toolwarrant_sqlite::watermark;
use zeroize::Zeroizing;

/// A data folder that this process has locked. The lock ends when the last clone is dropped or the
/// process dies.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    /// The file name of the database.
    database: String,
    /// The lock. Code that uses the folder and may outlive this value clones it.
    pub(crate) lock: Lock,
}

/// The locked files that keep other processes away: the folder itself and the file `lock` in it.
/// The file alone could be removed and created again.
pub(crate) type Lock = Arc<[File; 2]>;

/// Returns true if the folder contains a non-empty database of this service, or a record of one
/// that it has held, or belongs to a replica.
pub(crate) fn has_data(folder: &Path, names: &Names) -> bool {
    let database = folder.join(&names.database);
    folder.join(REPLICA).exists()
        || database.metadata().is_ok_and(|about| about.len() > 0)
        || watermark(&database).exists()
}

/// The file with the name of the program that the folder belongs to.
pub(crate) const SERVICE: &str = "service";

/// The folder in which a restore prepares its files. It exists until all of them are in place.
pub(crate) const RESTORING: &str = "restoring";

/// The file with the name of the replica that the folder belongs to.
pub(crate) const REPLICA: &str = "replica";

/// The file with the latest run of the replica.
pub(crate) const RUN: &str = "run";

/// The file with the latest beat that the replica has seen: a run and a number.
pub(crate) const SEEN: &str = "seen";

/// The file of the master key.
pub(crate) const MASTER_KEY: &str = "master.key";

/// A folder that some file systems have at their root, for the system only.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";

/// Initial capacity for the text of a master key, in bytes. It is large enough that the buffer
/// never grows, which would leave a copy in memory.
const MASTER_KEY_ROOM: usize = 256;

/// The folder of the audit trail.
pub const AUDIT: &str = "audit";

/// The socket for operator commands.
pub(crate) const SOCKET: &str = "admin.sock";

/// The reason why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be created, read or written.
    #[error("cannot use {0}: {1}; {remedy}", remedy = remedy(.0, .1))]
    Io(PathBuf, io::Error),
    /// Another process uses the folder.
    #[error("another {1} uses {0}; stop it first, or use another folder for this one")]
    InUse(PathBuf, String),
    /// The folder belongs to another user.
    #[error(transparent)]
    OtherUser(#[from] OtherUser),
    /// The folder belongs to another service.
    #[error("{path} belongs to {owner}, and this program is {program}; choose another folder with --{flag}", flag = DATA)]
    OtherService {
        /// The folder.
        path: PathBuf,
        /// The program that it belongs to.
        owner: String,
        /// This program.
        program: String,
    },
    /// The file `service` does not name a program.
    #[error(
        "{0} does not name the program that this folder belongs to; write the name there, or remove the file: then the database decides"
    )]
    NoOwner(PathBuf),
    /// The file is not a master key.
    #[error("{0} is not a master key: 64 hexadecimal digits and a line end")]
    MalformedKey(PathBuf),
    /// There is a database, but not the master key that it needs.
    #[error("{0} is missing, and the data in this folder cannot be opened without it; restore it from your copy")]
    MissingKey(PathBuf),
    /// There is a master key, and the database is empty.
    #[error(
        "{0} is empty, but there is a master key; restore a backup into an empty folder, or remove it and its watermark to begin \
         without any application"
    )]
    EmptyDatabase(PathBuf),
    /// The folder of a replica has no master key.
    #[error("{0} is missing; copy it from another replica, or run `store init` for a new store")]
    KeyOfReplica(PathBuf),
    /// The folder belongs to a replica, and the data is not in it.
    #[error("{0} belongs to the replica `{1}`, whose data is in a shared store; name that with --{store}", store = STORE)]
    OfReplica(PathBuf, String),
    /// The folder belongs to another replica.
    #[error("{0} belongs to the replica `{1}`; use that name, or another folder with --{data}", data = DATA)]
    OtherReplica(PathBuf, String),
    /// The folder belongs to no replica, and the command would begin an audit trail there.
    #[error(
        "{0} does not belong to a replica yet, and a command that changes something needs its name; run the command in the folder of a \
         replica, or name one with --{replica}", replica = REPLICA_FLAG
    )]
    Unnamed(PathBuf),
    /// The folder has a database, and the data is to be in a shared store.
    #[error("{0} has a database of its own; choose another folder for a replica with --{data}", data = DATA)]
    HasDatabase(PathBuf),
    /// A restore was interrupted.
    #[error("a restore of {0} was interrupted, and files are missing; run the command `restore` again")]
    HalfRestored(PathBuf),
}

/// Time that a start waits for the folder, and the interval between its attempts.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

impl DataFolder {
    /// Locks the folder, waiting for up to 2 s, and records that it belongs to this service.
    ///
    /// A missing folder is created with access for its owner only. An existing folder keeps its
    /// mode, since it may be a mounted volume; the log warns if other users can enter it.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub fn open(path: &Path, names: &Names) -> Result<Self, FolderError> {
        let begun = Instant::now();
        let folder = loop {
            match Self::lock_to_restore(path, names) {
                // A running command ends soon.
                Err(FolderError::InUse(..)) if begun.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_INTERVAL),
                locked => break locked?,
            }
        };
        if folder.join(RESTORING).exists() {
            return Err(FolderError::HalfRestored(path.to_owned()));
        }
        if !folder.join(SERVICE).exists() {
            folder.write(SERVICE, names.program).map_err(|error| FolderError::Io(folder.join(SERVICE), error))?;
        }
        Ok(folder)
    }

    /// Locks the folder for a restore.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub(crate) fn lock_to_restore(path: &Path, names: &Names) -> Result<Self, FolderError> {
        let failed = |error| FolderError::Io(path.to_owned(), error);
        if !path.is_dir() {
            refuse_other_user(path)?;
            create(path).map_err(failed)?;
        }
        refuse_other_user(path)?;
        let mode = path.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            tracing::warn!(folder = %path.display(), mode = %format!("{mode:o}"), "other users can enter the data folder");
        }
        refuse_foreign(path, names)?;
        let name = path.join(LOCK);
        let lock = private().create(true).truncate(false).open(&name).map_err(|error| FolderError::Io(name, error))?;
        let lock = [File::open(path).map_err(failed)?, lock];
        for file in &lock {
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(FolderError::InUse(path.to_owned(), names.program.to_owned()));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Ok(Self { path: path.to_owned(), database: names.database.clone(), lock: Arc::new(lock) })
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in the folder.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the path of the database, which need not exist yet.
    ///
    /// # Errors
    /// See [`FolderError::EmptyDatabase`].
    pub(crate) fn database(&self) -> Result<PathBuf, FolderError> {
        if let Some(replica) = read_replica(&self.path)? {
            return Err(FolderError::OfReplica(self.path.clone(), replica));
        }
        let path = self.join(&self.database);
        let empty = path.metadata().is_ok_and(|about| about.len() == 0);
        if empty && self.join(MASTER_KEY).exists() { Err(FolderError::EmptyDatabase(path)) } else { Ok(path) }
    }

    /// Refuses a folder with a database.
    ///
    /// # Errors
    /// [`FolderError::HasDatabase`].
    pub(crate) fn refuse_database(&self) -> Result<(), FolderError> {
        let has_one = self.join(&self.database).exists();
        if has_one { Err(FolderError::HasDatabase(self.path.clone())) } else { Ok(()) }
    }

    /// Returns the master key. The first start creates it, before anything is sealed.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub(crate) fn master_key(&self, random: &Random) -> Result<Zeroizing<[u8; 32]>, FolderError> {
        let path = self.join(MASTER_KEY);
        match read_master_key(&self.path) {
            Err(FolderError::Io(_, error)) if error.kind() == ErrorKind::NotFound => {}
            read => return read,
        }
        let database = self.join(&self.database);
        if database.exists() || watermark(&database).exists() {
            return Err(FolderError::MissingKey(path));
        }
        let key = random.bytes().map_err(|error| FolderError::Io(path, io::Error::other(error)))?;
        let key = Zeroizing::new(key);
        self.put_master_key(&key)?;
        Ok(key)
    }

    /// Writes the master key.
    pub(crate) fn put_master_key(&self, key: &[u8; 32]) -> Result<(), FolderError> {
        let text = Zeroizing::new(hex::encode(key));
        self.write(MASTER_KEY, &text).map_err(|error| FolderError::Io(self.join(MASTER_KEY), error))
    }

    /// Writes a file of one line durably. After a crash the file is complete or absent.
    pub(crate) fn write(&self, name: &str, line: &str) -> io::Result<()> {
        durable::replace(&self.join(name), |file| writeln!(file, "{line}")).map(drop)
    }
}

/// Refuses a folder that belongs to another service. A folder that does not exist belongs to no
/// service.
///
/// # Errors
/// [`FolderError::OtherService`], or the folder cannot be read.
pub(crate) fn refuse_foreign(path: &Path, names: &Names) -> Result<(), FolderError> {
    if path.is_dir()
        && let Some(owner) = owner(path, names)?.filter(|owner| *owner != names.program)
    {
        return Err(FolderError::OtherService { path: path.to_owned(), owner, program: names.program.to_owned() });
    }
    Ok(())
}

/// Returns the program that the folder belongs to. A folder without the file `service` belongs to
/// the program that its database is named after.
fn owner(folder: &Path, names: &Names) -> Result<Option<String>, FolderError> {
    let file = folder.join(SERVICE);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    // Opening a pipe would block.
    if file.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(FolderError::NoOwner(file));
    }
    match std::fs::read(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(FolderError::Io(file, error)),
        Ok(bytes) => {
            let name = String::from_utf8(bytes).ok().map(|name| name.trim_end().to_owned());
            return name.filter(|name| is_name(name)).map(Some).ok_or(FolderError::NoOwner(file));
        }
    }
    if folder.join(&names.database).exists() {
        return Ok(None);
    }
    let files = folder.read_dir().and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let files = files.map_err(|error| FolderError::Io(folder.to_owned(), error))?;
    let database = files.iter().map(std::fs::DirEntry::path).find(|path| path.extension() == Some(OsStr::new("db")));
    Ok(database.and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned())))
}

/// Returns the name of the replica that a folder belongs to, if it belongs to one.
pub(crate) fn read_replica(folder: &Path) -> Result<Option<String>, FolderError> {
    let path = folder.join(REPLICA);
    match std::fs::read_to_string(&path) {
        Ok(name) => Ok(Some(name.trim_end().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FolderError::Io(path, error)),
    }
}

/// Returns the numbers in a file; none if there is no such file.
pub(crate) fn read_numbers(folder: &Path, name: &str) -> Result<Vec<u64>, FolderError> {
    let path = folder.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.split_whitespace().filter_map(|number| number.parse().ok()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(FolderError::Io(path, error)),
    }
}

/// Returns the master key of a folder, which another process may have locked.
///
/// # Errors
/// See [`FolderError`].
pub(crate) fn read_master_key(folder: &Path) -> Result<Zeroizing<[u8; 32]>, FolderError> {
    read_key_file(folder.join(MASTER_KEY))
}

/// Returns the master key in a file.
///
/// # Errors
/// See [`FolderError`].
pub(crate) fn read_key_file(path: PathBuf) -> Result<Zeroizing<[u8; 32]>, FolderError> {
    let failed = |error| FolderError::Io(path.clone(), error);
    // This check comes first because opening a pipe would block.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(FolderError::MalformedKey(path));
    }
    let mut file = File::open(&path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        tracing::warn!(file = %path.display(), mode = %format!("{mode:o}"), "other users can read the master key");
    }
    let mut text = Zeroizing::new(String::with_capacity(MASTER_KEY_ROOM));
    file.read_to_string(&mut text).map_err(|_| FolderError::MalformedKey(path.clone()))?;
    let key = hex::decode(text.trim_end()).map(Zeroizing::new);
    key.and_then(|key| Some(Zeroizing::new(key.as_slice().try_into().ok()?))).ok_or(FolderError::MalformedKey(path))
}

/// Returns the metadata of the folder and of everything in it. A link to the master key is
/// followed, because the key may be stored elsewhere. Other links are not followed.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn everything(folder: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let mut found = Vec::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let follows = path == folder || path == folder.join(MASTER_KEY);
        let about = if follows { path.metadata() } else { path.symlink_metadata() };
        let about = match about {
            // A log of the database or an old file may disappear meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound && path != folder => continue,
            about => about?,
        };
        if about.is_dir() && path != folder.join(LOST_AND_FOUND) {
            for entry in path.read_dir()? {
                paths.push(entry?.path());
            }
        }
        found.push((path, about));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// Creates a folder that only its owner can enter, and syncs its parent.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    durable::sync_folder(&path.join(".."))
}

/// Returns options to write a file that only its owner can read.
pub(crate) fn private() -> OpenOptions {
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
    fn a_folder_is_created_for_its_owner_and_used_by_one_process_at_a_time() {
        let root = TempDir::new().unwrap();
        let path = root.path().join("a/b");
        let folder = DataFolder::open(&path, &names()).unwrap();
        assert_eq!((mode(&path), mode(&folder.join("lock"))), (0o700, 0o600));
        assert!(matches!(DataFolder::open(&path, &names()), Err(FolderError::InUse(..))));
        // If the lock file is removed, the next process creates another file, which is not the
        // locked one.
        std::fs::remove_file(folder.join("lock")).unwrap();
        assert!(matches!(DataFolder::open(&path, &names()), Err(FolderError::InUse(..))));
        drop(folder);
        drop(DataFolder::open(&path, &names()).unwrap());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        DataFolder::open(&path, &names()).unwrap();
        assert_eq!(mode(&path), 0o750, "an existing folder keeps its mode");
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(DataFolder::open(&file, &names()), Err(FolderError::Io(path, _)) if path == file));
    }

    #[test]
    fn a_master_key_is_created_once_and_never_to_replace_a_lost_one() {
        let root = TempDir::new().unwrap();
        let folder = DataFolder::open(&root.path().join("data"), &names()).unwrap();
        let key = folder.master_key(&Random::System).unwrap();
        assert_ne!(*key, [0; 32]);
        assert_eq!(folder.master_key(&Random::System).unwrap(), key);
        assert_eq!(mode(&folder.join("master.key")), 0o600);
        for broken in ["", "ab", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            std::fs::write(folder.join("master.key"), broken).unwrap();
            assert!(matches!(folder.master_key(&Random::System), Err(FolderError::MalformedKey(_))), "{broken}");
        }
        std::fs::remove_file(folder.join("master.key")).unwrap();
        std::fs::write(folder.join("shop.db"), "").unwrap();
        assert!(matches!(folder.master_key(&Random::System), Err(FolderError::MissingKey(_))));
    }

    #[test]
    fn a_folder_of_another_service_is_refused_by_its_name() {
        let root = TempDir::new().unwrap();
        let other = Names::of("other", "1.0.0");
        let refused = |path: &Path| DataFolder::open(path, &other).unwrap_err().to_string();

        let path = root.path().join("named");
        drop(DataFolder::open(&path, &names()).unwrap());
        assert_eq!(std::fs::read_to_string(path.join("service")).unwrap(), "shop\n");
        assert!(refused(&path).contains("belongs to shop, and this program is other"), "{}", refused(&path));
        DataFolder::open(&path, &names()).unwrap();

        // A folder of a version that did not write the file `service`.
        let path = root.path().join("unnamed");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("shop.db"), "x").unwrap();
        assert!(refused(&path).contains("belongs to shop"), "{}", refused(&path));
        DataFolder::open(&path, &names()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        // No user can write there, not even root.
        let refused = DataFolder::open(Path::new("/sys"), &names()).unwrap_err().to_string();
        let named =
            refused.starts_with("cannot use /sys/lock: ") && refused.ends_with("choose another folder with --data");
        assert!(named, "{refused}");
    }

    #[test]
    fn an_empty_database_is_never_used_as_a_new_one() {
        let root = TempDir::new().unwrap();
        let folder = DataFolder::open(&root.path().join("data"), &names()).unwrap();
        folder.master_key(&Random::System).unwrap();
        let path = folder.database().unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(matches!(folder.database(), Err(FolderError::EmptyDatabase(emptied)) if emptied == path));
        std::fs::write(&path, "something").unwrap();
        assert_eq!(folder.database().unwrap(), path);
    }
}
