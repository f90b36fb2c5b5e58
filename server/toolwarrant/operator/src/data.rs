//! The data folder: everything that a service stores on disk. One process uses it at a time.
//!
//! ```text
//! lock            locked by the process that uses the folder, as is the folder itself
//! service         the program that the folder belongs to
//! master.key      opens sealed data and verifies secrets; back it up apart from the rest
//! NAME.db         tasks, ledger, applications, keys
//! NAME.watermark  records how much the database has held, to detect a loss
//! replica         the name of the replica; the data is then in a shared store, and not here
//! run             its latest run
//! seen            the latest beat that it has seen: a run and a number
//! audit/          one line for each tool call, one file a day
//! admin.sock      receives operator commands while a server runs
//! stdio.sock      receives the requests of `stdio` while its server runs
//! last-backup     when the last backup of the folder was made
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
use toolwarrant_base::secret_file::SecretFile;
use toolwarrant_base::{durable, hex};
use toolwarrant_sqlite::watermark;
use zeroize::Zeroizing;

/// A data folder that this process has locked. The lock ends when the last clone is dropped or the
/// process dies.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
    database: String,
    /// Code that uses the folder and may outlive this value clones the lock.
    pub(crate) lock: Lock,
}

/// The folder itself and the file `lock` in it. The file alone could be removed and created again.
pub(crate) type Lock = Arc<[File; 2]>;

pub(crate) fn has_data(folder: &Path, names: &Names) -> bool {
    let database = folder.join(&names.database);
    folder.join(REPLICA).exists()
        || database.metadata().is_ok_and(|about| about.len() > 0)
        || watermark(&database).exists()
}

/// Returns true for the folder of a replica that has not run, too.
pub(crate) fn is_begun(folder: &Path, names: &Names) -> bool {
    has_data(folder, names) || folder.join(MASTER_KEY).exists()
}

pub(crate) const SERVICE: &str = "service";

/// The file with the moment of the last complete backup. No act says that: the act of a backup is
/// stored before it begins.
pub(crate) const LAST_BACKUP: &str = "last-backup";

pub(crate) const RESTORING: &str = "restoring";

pub(crate) const REPLICA: &str = "replica";

pub(crate) const RUN: &str = "run";

pub(crate) const SEEN: &str = "seen";

pub(crate) const MASTER_KEY: &str = "master.key";

pub(crate) const LOST_AND_FOUND: &str = "lost+found";

/// In bytes. The buffer never grows, which would leave a copy of the key in memory.
const MASTER_KEY_ROOM: usize = 256;

pub const AUDIT: &str = "audit";

pub(crate) const SOCKET: &str = "admin.sock";

pub const STDIO_SOCKET: &str = "stdio.sock";

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot use {0}: {1}; {remedy}", remedy = remedy(.0, .1))]
    Io(PathBuf, io::Error),
    #[error("another {1} uses {0}; stop it first, or use another folder for this one")]
    InUse(PathBuf, String),
    #[error(transparent)]
    OtherUser(#[from] OtherUser),
    #[error("{path} belongs to {owner}, and this program is {program}; choose another folder with --{flag}", flag = DATA)]
    OtherService { path: PathBuf, owner: String, program: String },
    #[error(
        "{0} does not name the program that this folder belongs to; write the name there, or remove the file: then the database decides"
    )]
    NoOwner(PathBuf),
    #[error("{0} is not a master key: 64 hexadecimal digits and a line end")]
    MalformedKey(PathBuf),
    #[error("{0} is missing, and the data in this folder cannot be opened without it; restore it from your copy")]
    MissingKey(PathBuf),
    #[error(
        "{0} is empty, but there is a master key; restore a backup into an empty folder, or remove it and its watermark to begin \
         without any application"
    )]
    EmptyDatabase(PathBuf),
    #[error("{0} is missing; copy it from another replica, or run `store init` for a new store")]
    KeyOfReplica(PathBuf),
    #[error("{0} belongs to the replica `{1}`, whose data is in a shared store; name that with --{store}", store = STORE)]
    OfReplica(PathBuf, String),
    #[error("{0} belongs to the replica `{1}`; use that name, or another folder with --{data}", data = DATA)]
    OtherReplica(PathBuf, String),
    #[error(
        "{0} does not belong to a replica yet, and a command that changes something needs its name; run the command in the folder of a \
         replica, or name one with --{replica}", replica = REPLICA_FLAG
    )]
    Unnamed(PathBuf),
    #[error("{0} has a database of its own; choose another folder for a replica with --{data}", data = DATA)]
    HasDatabase(PathBuf),
    #[error("a restore of {0} was interrupted, and files are missing; run the command `restore` again")]
    HalfRestored(PathBuf),
}

const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

impl DataFolder {
    /// Locks the folder, waiting for up to 2 s, and records that it belongs to this service.
    ///
    /// A missing folder is created with access for its owner only. An existing folder keeps its
    /// mode, since it may be a mounted volume.
    ///
    /// # Errors
    /// Another process, user or service uses the folder, a restore of it was interrupted, or a file
    /// cannot be used.
    pub fn open(path: &Path, names: &Names) -> Result<Self, FolderError> {
        let begun = Instant::now();
        let folder = loop {
            match Self::lock_to_restore(path, names) {
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

    /// Waits until no other process uses the folder, and locks it as [`Self::open`] does.
    ///
    /// # Errors
    /// As for [`Self::open`], without the use by another process.
    pub fn wait(path: &Path, names: &Names) -> Result<Self, FolderError> {
        loop {
            match Self::open(path, names) {
                Err(FolderError::InUse(..)) => File::open(path).and_then(|folder| folder.lock()),
                opened => return opened,
            }
            .map_err(|error| FolderError::Io(path.to_owned(), error))?;
        }
    }

    /// Accepts an interrupted restore, and does not record the service.
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

    /// Refuses an empty database next to a master key, and the folder of a replica.
    pub(crate) fn database(&self) -> Result<PathBuf, FolderError> {
        if let Some(replica) = read_replica(&self.path)? {
            return Err(FolderError::OfReplica(self.path.clone(), replica));
        }
        let path = self.join(&self.database);
        let empty = path.metadata().is_ok_and(|about| about.len() == 0);
        if empty && self.join(MASTER_KEY).exists() { Err(FolderError::EmptyDatabase(path)) } else { Ok(path) }
    }

    pub(crate) fn refuse_database(&self) -> Result<(), FolderError> {
        let has_one = self.join(&self.database).exists();
        if has_one { Err(FolderError::HasDatabase(self.path.clone())) } else { Ok(()) }
    }

    /// Creates the key at the first start, before anything is sealed.
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

    pub(crate) fn put_master_key(&self, key: &[u8; 32]) -> Result<(), FolderError> {
        let text = Zeroizing::new(hex::encode(key));
        self.write(MASTER_KEY, &text).map_err(|error| FolderError::Io(self.join(MASTER_KEY), error))
    }

    /// Leaves a complete file or none after a crash.
    pub(crate) fn write(&self, name: &str, line: &str) -> io::Result<()> {
        durable::replace(&self.join(name), |file| writeln!(file, "{line}")).map(drop)
    }
}

pub(crate) fn refuse_foreign(path: &Path, names: &Names) -> Result<(), FolderError> {
    if path.is_dir()
        && let Some(owner) = owner(path, names)?.filter(|owner| *owner != names.program)
    {
        return Err(FolderError::OtherService { path: path.to_owned(), owner, program: names.program.to_owned() });
    }
    Ok(())
}

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

pub(crate) fn read_replica(folder: &Path) -> Result<Option<String>, FolderError> {
    Ok(read_text(folder.join(REPLICA))?.map(|name| name.trim_end().to_owned()))
}

pub(crate) fn read_numbers(folder: &Path, name: &str) -> Result<Vec<u64>, FolderError> {
    let text = read_text(folder.join(name))?.unwrap_or_default();
    Ok(text.split_whitespace().filter_map(|number| number.parse().ok()).collect())
}

/// Returns `None` if there is no such file.
fn read_text(path: PathBuf) -> Result<Option<String>, FolderError> {
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| FolderError::Io(path, error)),
    }
}

pub(crate) fn read_master_key(folder: &Path) -> Result<Zeroizing<[u8; 32]>, FolderError> {
    read_key_file(folder.join(MASTER_KEY))
}

pub(crate) fn read_key_file(path: PathBuf) -> Result<Zeroizing<[u8; 32]>, FolderError> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::IsADirectory | ErrorKind::InvalidInput => FolderError::MalformedKey(path.clone()),
        _ => FolderError::Io(path.clone(), error),
    };
    let SecretFile { mut file, warning } = SecretFile::open_anyway(&path).map_err(failed)?;
    if let Some(warning) = warning {
        tracing::warn!(file = %path.display(), "{warning}");
    }
    let mut text = Zeroizing::new(String::with_capacity(MASTER_KEY_ROOM));
    file.read_to_string(&mut text).map_err(|_| FolderError::MalformedKey(path.clone()))?;
    let key = hex::decode(text.trim_end()).map(Zeroizing::new);
    key.and_then(|key| Some(Zeroizing::new(key.as_slice().try_into().ok()?))).ok_or(FolderError::MalformedKey(path))
}

/// Follows a link to the master key, which may be stored elsewhere, and no other link.
pub(crate) fn everything(folder: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let mut found = Vec::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let follows = path == folder || path == folder.join(MASTER_KEY);
        let about = if follows { path.metadata() } else { path.symlink_metadata() };
        let about = match about {
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

pub(crate) fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    durable::sync_folder(&path.join(".."))
}

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
        std::fs::remove_file(folder.join("lock")).unwrap();
        assert!(matches!(DataFolder::open(&path, &names()), Err(FolderError::InUse(..))));
        let (waiting, waits) = (path.clone(), names());
        let waiting = std::thread::spawn(move || DataFolder::wait(&waiting, &waits));
        drop(folder);
        drop(waiting.join().unwrap().unwrap());
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
        for garbage in [&b""[..], b"two words", b"\xff\xfe"] {
            std::fs::write(path.join("service"), garbage).unwrap();
            assert!(refused(&path).contains("/service does not name the program"), "{}", refused(&path));
        }
        std::fs::remove_file(path.join("service")).unwrap();
        DataFolder::open(&path, &names()).unwrap();

        // An earlier version did not write the file `service`.
        let path = root.path().join("unnamed");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("shop.db"), "x").unwrap();
        assert!(refused(&path).contains("belongs to shop"), "{}", refused(&path));
        DataFolder::open(&path, &names()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
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
