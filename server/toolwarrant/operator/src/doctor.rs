//! The doctor: finds faults in a data folder, and tells the operator how to correct them. It
//! repairs nothing. Start at [`examine`].
//!
//! The store checks the rules about the database, see [`IntegrityRule`]. This file owns their
//! descriptions, and the checks of everything else.

mod acts;
mod commands;
mod found;
mod server;

use crate::answers::{CheckRow, Diagnosis, FaultRow, RemedyRow, RetentionRow, UnexaminedRow};
use crate::context::{Check, ProgramIdentity};
use crate::data::{self, AUDIT, DataFolder, LOST_AND_FOUND, MASTER_KEY};
use crate::error::OperatorError;
use crate::flags::{KEEP_BYTES, KEEP_DAYS};
use crate::names::Names;
use crate::open_error::OpenError;
use crate::own::Explanation;
use crate::owner::other_owner;
use found::{Found, unreadable};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_audit as audit;
use toolwarrant_audit::retention;
use toolwarrant_audit::verify::{Fault as ChainFault, Scope, verify};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_base::secret_file::SecretFile;
use toolwarrant_base::text::Remark;
use toolwarrant_common::TASKS_KEPT_DAYS;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::registry;
use toolwarrant_core::store::StoreError;
use toolwarrant_postgres::Postgres;
use toolwarrant_sqlite::Sqlite;
use toolwarrant_store::{Figure, IntegrityRule, Store};

const FAULTS_SHOWN: usize = 10;

/// After a start, the engine looks at every task within a minute.
const DEADLINE_GRACE: Duration = Duration::from_mins(2);

pub(crate) const LOOKED_BACK: Duration = Duration::from_hours(1);

/// The name of a check, the condition that holds in a healthy folder, and the remedy.
pub(crate) struct Description(&'static str, &'static str, &'static str);

const FILES: Description = Description(
    "files",
    "the folder contains only files and folders of one user, which only this user can access",
    "give what belongs to another user to the user of the service with `chown`; remove the access of other users with \
     `chmod -R go=` on the data folder, or move it to a file system that keeps modes; replace each link by its target; remove everything that is neither a file nor a folder",
);
const TRAIL: Description = Description(
    "audit trail",
    "its folder can be written to",
    "free disk space, and give the owner the right to write",
);
const CHAIN: Description = Description(
    "audit chain",
    "the newest lines of the audit trail match their seals, and its end is not missing",
    "run `audit verify`, which reads all of it; keep a copy of the audit folder, and find out who else can write there",
);
const ACTS: Description = Description(
    "acts",
    "each act of an operator in the database has its line in the audit trail, and each such line has its act",
    "keep a copy of the folder, and find out who else can write there; only this program writes acts and their lines",
);
const OPENS: Description = Description(
    "database",
    "it opens",
    "do what the message says; if the database is damaged, keep a copy and restore the folder from a backup",
);
const ANSWERS: Description = Description(
    "server",
    "a PostgreSQL that accepts writes answers",
    "wait if it fails over; otherwise start it, and its synchronous standby, without which it does not answer. Then run `doctor` \
     again, because nothing in the store was examined",
);
const WRITES: Description = Description(
    "writing",
    "the database can be written to, and is the one in the folder",
    "free disk space, give the owner the right to write, and end another program that locks the database; if it was moved, move it \
     back; if it was removed, take a `backup` before you stop the server",
);
const NAMES: Description = Description(
    "names",
    "every application has a name without invisible characters that is not the id of another application",
    "rename it with `app rename ID NAME`; its id, its keys and its permissions stay the same",
);
const CONTENT: Description = Description(
    "content",
    "applications, keys and the clock can be read, and each permission of an application exists",
    "revoke a permission that does not exist with `app revoke`; for a row that cannot be read, stop the server, keep a copy of the \
     folder, and restore it from a backup",
);
const KEY: Description = Description(
    "master key",
    "it opens the secrets of every key",
    "restore the master.key that this data was created with; without it, every application needs a new key. If it is the right one, \
     what it does not open was changed or is damaged, and is refused: find out who else can write to the database, revoke that key, \
     and give its application a new one",
);
const COMMANDS: Description = Description(
    "commands",
    "this contract can read the command of every task in flight",
    "run the program that accepted these tasks until they have ended; this program sends nothing more for them, and what no probe \
     can show without the command ends without a refund",
);

const FOREIGN: Description = Description(
    "foreign objects",
    "the database contains nothing that another program created",
    "leave it if you know the program that needs it; otherwise stop the server, keep a copy, and run the statement in `sqlite3`",
);
pub(crate) const UPSTREAM: Description = Description(
    "upstream",
    "each call of the last hour reached its upstream",
    "do what the reason says; the log has one such call a minute, and all at the level debug",
);
const NOT_EXAMINED: &str = "nothing is known of it. Correct what the reason says, such as the lock of a session, which ends with \
     `SELECT pg_terminate_backend(PROCESS)` or `ROLLBACK PREPARED`; then run `doctor` again";

/// Returns the rules in order: a broken rule can break later ones.
fn rules(now: Timestamp) -> [(IntegrityRule, &'static str, &'static str, &'static str); 8] {
    [
        (
            IntegrityRule::Integrity,
            "integrity",
            "every page, row and reference of the database is whole",
            "stop the server, keep a copy of the folder, and restore it from a backup; `sqlite3 DATABASE .recover` saves \
                 what can be read",
        ),
        (
            IntegrityRule::Layout,
            "layout",
            "tables and indexes are as this program creates them",
            "restore the folder from a backup; only this program may change its database",
        ),
        (
            IntegrityRule::Records,
            "records",
            "the records of a task agree with each other",
            "restore the folder from a backup; only this program may change its database",
        ),
        (
            IntegrityRule::Refunds,
            "refunds",
            "each task that ended as failed_silent has one refund, and no other task has any",
            "read `task show TASK`; settle it with the owner of the application, and report a bug",
        ),
        (
            IntegrityRule::Charges,
            "charges",
            "each task that was to be sent has one charge, which is reversed exactly if nothing was sent; no other task has any",
            "read `task show TASK`; settle it with the owner of the application, and report a bug",
        ),
        (
            IntegrityRule::TargetLocks,
            "target locks",
            "at most one task is in flight on a target",
            "let the tasks end, then read the state of the target, because each task may have measured the effect of the \
                 other; report a bug",
        ),
        (
            IntegrityRule::Secrets,
            "secrets",
            "the sealed arguments of a task are deleted when it ends",
            "stop the server, set sealed to NULL in the table task where terminal = 1, and report a bug",
        ),
        (
            IntegrityRule::Deadlines(now.minus(DEADLINE_GRACE)),
            "deadlines",
            "no task in flight is long past its deadline",
            "start a server, which ends these tasks; if one runs, read in its log why it does not",
        ),
    ]
}

pub(crate) async fn examine_offline(path: &Path, program: &ProgramIdentity) -> Result<Diagnosis, OperatorError> {
    let folder = DataFolder::open(path, &program.names).map_err(OpenError::from)?;
    let database = folder.database().map_err(|error| error.to_string());
    let store = database.and_then(|path| {
        let opened = Sqlite::open_as_it_is(&path, Arc::clone(&folder.lock));
        opened.map_err(|error| OpenError::from(error).to_string())
    });
    let store = store.as_ref().map(|store| (store as &dyn Store, None)).map_err(Clone::clone);
    Ok(examine(path, program, store, Clock::system().now()).await)
}

/// Takes the store twice if it is a PostgreSQL that replicas share.
pub(crate) async fn examine(
    folder: &Path,
    ProgramIdentity { names, catalogue, checks }: &ProgramIdentity,
    store: Result<(&dyn Store, Option<&Postgres>), Explanation>,
    now: Timestamp,
) -> Diagnosis {
    let mut diagnosis = Diagnosis { healthy: true, ..Diagnosis::default() };
    let (path, added) = (folder.to_owned(), checks.to_vec());
    let outcomes = tokio::task::spawn_blocking(move || {
        let added = added.into_iter();
        let added = added.map(|Check { name, holds, remedy, look }| (Description(name, holds, remedy), look(&path)));
        [(FILES, files(&path)), (TRAIL, trail(&path.join(AUDIT)))].into_iter().chain(added).collect::<Vec<_>>()
    });
    match outcomes.await {
        Ok(outcomes) => {
            outcomes.into_iter().for_each(|(check, found)| diagnosis.add(&check, found.map_err(StoreError::Corrupt)));
        }
        Err(error) => diagnosis.add(&FILES, Err(unreadable(error))),
    }
    match store {
        Ok((store, shared)) => {
            // Without an answer, each check would report a fault with a remedy that does harm.
            let mut on_files = diagnosis.clone();
            let locks = async || match shared {
                Some(shared) => shared.find_locks().await.unwrap_or_default(),
                None => Vec::new(),
            };
            let silence = async || find_silence(store, shared).await;
            if let Some(why) = silence().await {
                on_files.add(&ANSWERS, Err(StoreError::Corrupt(why)));
                return on_files;
            }
            let examined = async |found: Found| match found {
                Err(StoreError::Unavailable(why)) => {
                    Err(StoreError::Unavailable([vec![why], locks().await].concat().join("; ")))
                }
                found => found,
            };
            for (rule, name, holds, remedy) in rules(now) {
                let remedy = shared.and_then(|_| server::remedy(rule)).unwrap_or(remedy);
                let found = store.violations(rule).await;
                diagnosis.add(&Description(name, holds, remedy), examined(found).await);
            }
            let foreign = store.violations(IntegrityRule::Foreign).await;
            diagnosis.warn(&FOREIGN, examined(foreign).await);
            diagnosis.add(&WRITES, store.touch().await.map(|()| Vec::new()).map_err(unreadable));
            diagnosis.add(&CONTENT, examined(content(catalogue, store).await).await);
            diagnosis.add(&NAMES, examined(application_names(store).await).await);
            diagnosis.add(&KEY, examined(master_key(folder, names, store).await).await);
            let unreadable = commands::find_unreadable(folder, names, catalogue, store).await;
            diagnosis.add(&COMMANDS, examined(unreadable).await);
            diagnosis.add(&CHAIN, examined(chain(folder, names, store).await).await);
            diagnosis.add(&ACTS, examined(acts::find_unmatched(folder, store).await).await);
            if let Some(shared) = shared {
                let look = async |check| examined(shared.examine(check).await).await;
                for (check, name, holds, remedy) in server::FAULTS {
                    diagnosis.add(&Description(name, holds, remedy), look(check).await);
                }
                for (check, name, holds, remedy) in server::WARNINGS {
                    diagnosis.warn(&Description(name, holds, remedy), look(check).await);
                }
            }
            if let Some(why) = silence().await {
                on_files.add(&ANSWERS, Err(StoreError::Corrupt(why)));
                return on_files;
            }
            diagnosis.kept = what_is_kept(folder, store).await;
        }
        Err(why) => diagnosis.add(&OPENS, Err(StoreError::Corrupt(why))),
    }
    diagnosis
}

/// Returns why no check would have an answer.
async fn find_silence(store: &dyn Store, shared: Option<&Postgres>) -> Option<Explanation> {
    let shared = shared?;
    if let Ok(Some(why)) = shared.find_missing_standby().await {
        return Some(why);
    }
    match store.latest_time().await {
        Err(StoreError::Unavailable(why)) if shared.find_locks().await.unwrap_or_default().is_empty() => Some(why),
        _ => None,
    }
}

impl Diagnosis {
    fn add(&mut self, check: &Description, found: Found) {
        let found = self.list("fault", check, found);
        self.healthy &= found.is_empty();
        self.faults.extend(found);
    }

    pub(crate) fn warn(&mut self, check: &Description, found: Found) {
        let found = self.list("warning", check, found);
        self.warnings.extend(found);
    }

    fn list(&mut self, severity: &'static str, check: &Description, found: Found) -> Vec<FaultRow> {
        let &Description(check, holds, remedy) = check;
        let (found, state, remedy) = match found {
            Ok(found) if found.is_empty() => (found, "ok", None),
            Ok(found) => (found, severity, Some(remedy)),
            Err(StoreError::Corrupt(why) | StoreError::Conflict(why)) => (vec![why], severity, Some(remedy)),
            Err(StoreError::Unavailable(why) | StoreError::Unanswered(why)) => {
                self.healthy = false;
                self.not_examined.push(UnexaminedRow { check, why });
                (Vec::new(), "not examined", Some(NOT_EXAMINED))
            }
        };
        self.checks.push(CheckRow { check, state, what_must_hold: holds });
        self.remedies.extend(remedy.map(|remedy| RemedyRow { check, remedy }));
        let more = found.len().saturating_sub(FAULTS_SHOWN);
        let more = (more > 0).then(|| format!("and {more} more"));
        let fault = |found: String| FaultRow { check, found };
        found.into_iter().take(FAULTS_SHOWN).chain(more).map(fault).collect()
    }
}

fn files(folder: &Path) -> Result<Vec<String>, Explanation> {
    let wrong = |about: &Metadata| match (about.file_type(), about.permissions().mode() & 0o777) {
        (kind, _) if kind.is_symlink() => Some("is a link, whose target may be elsewhere".to_owned()),
        (kind, _) if !(kind.is_file() || kind.is_dir() || kind.is_socket()) => {
            Some("is neither a file nor a folder".to_owned())
        }
        (_, mode) if mode & 0o077 != 0 => Some(format!("has mode {mode:o}")),
        _ => None,
    };
    // A mounted volume, and the folder of its file system, may be root's.
    let may_be_roots = |path: &Path| path == folder || path == folder.join(LOST_AND_FOUND);
    let foreign = |path: &Path, about: &Metadata| {
        let owner = other_owner(about).filter(|_| about.uid() != 0 || !may_be_roots(path));
        owner.map(|owner| format!("belongs to {owner}, and the folder to another user"))
    };
    let all = data::everything(folder).map_err(|error| error.to_string())?;
    let key = folder.join(MASTER_KEY);
    let exposed = SecretFile::open(&key).err().filter(|error| error.kind() != ErrorKind::NotFound);
    let exposed = exposed.map(|error| format!("{}: {error}", key.display()));
    let faults = all.iter().filter(|(path, _)| *path != key).flat_map(|(path, about)| {
        let found = [wrong(about), foreign(path, about)].into_iter().flatten();
        found.map(|what| format!("{} {what}", path.display()))
    });
    Ok(faults.chain(exposed).collect())
}

async fn content(catalogue: &Catalogue, store: &dyn Store) -> Found {
    let clock = match store.latest_time().await {
        Err(StoreError::Corrupt(why)) => Some(why),
        read => read.map(|_| None)?,
    };
    let (applications, _) = store.directory().await?;
    Ok(clock.into_iter().chain(registry::unknown_permissions(&applications, catalogue)).collect())
}

async fn application_names(store: &dyn Store) -> Found {
    let (applications, _) = store.directory().await?;
    let wrong = applications.iter().filter(|row| !registry::may_name_application(&row.name));
    Ok(wrong.map(|row| format!("{} is named {:?}", row.id, Remark::clean(&row.name).as_str())).collect())
}

async fn master_key(folder: &Path, names: &Names, store: &dyn Store) -> Found {
    let key = data::read_master_key(folder).map_err(unreadable)?;
    let keyring = KeyRing::new(&names.salt, &key, Random::System);
    let (_, keys) = store.directory().await?;
    let closed = keys.iter().filter(|key| registry::open_secrets(&keyring, key).is_err());
    Ok(closed.map(|key| format!("it does not open the secrets of {} of {}", key.id, key.application)).collect())
}

async fn chain(folder: &Path, names: &Names, store: &dyn Store) -> Found {
    let key = data::read_master_key(folder).map_err(unreadable)?;
    let key = KeyRing::new(&names.salt, &key, Random::System).chain_key();
    let (trail, mut faults) = (folder.join(AUDIT), Vec::new());
    // A running server may begin a file meanwhile. A real fault is found again.
    for _ in 0..2 {
        let (trail, key) = (trail.clone(), key.clone());
        let anchor = store.audit_anchor().await?;
        let verify = move || verify(&trail, &key, anchor.as_ref(), Scope::Newest(acts::VERIFIED));
        let found = tokio::task::spawn_blocking(verify).await.map_err(unreadable)?;
        faults = found.map_err(unreadable)?.faults;
        if faults.is_empty() {
            break;
        }
    }
    Ok(faults
        .into_iter()
        .map(|ChainFault { file, lines: (first, _), what }| match file.is_empty() {
            true => what,
            false => format!("{file} {first}: {what}"),
        })
        .collect())
}

async fn what_is_kept(folder: &Path, store: &dyn Store) -> Vec<RetentionRow> {
    let trail = folder.join(AUDIT);
    let found = tokio::task::spawn_blocking(move || retention::figures(&trail)).await;
    let found = found.ok().and_then(Result::ok).unwrap_or_default();
    let mib = found.bytes >> 20;
    let audit = RetentionRow {
        what: "audit trail",
        amount: if mib == 0 { "under 1 MiB".to_owned() } else { format!("{mib} MiB") },
        oldest: found.oldest.parse().ok(),
        kept: format!(
            "{} days and {} MiB, unless the server has other values of --{KEEP_DAYS} and --{KEEP_BYTES}",
            retention::DAYS,
            retention::BYTES >> 20
        ),
    };
    let rows = store.figures().await.unwrap_or_default().into_iter().map(|Figure { what, rows, oldest }| {
        let kept = match what {
            "ledger" | "acts" => "forever",
            "deduplication keys" => "until they expire",
            _ => &format!("{TASKS_KEPT_DAYS} days after the end"),
        };
        RetentionRow { what, amount: format!("{rows} rows"), oldest, kept: kept.to_owned() }
    });
    std::iter::once(audit).chain(rows).collect()
}

fn trail(folder: &Path) -> Result<Vec<String>, Explanation> {
    // The first line makes the folder. A folder that was removed is a fault of the chain.
    let written = if folder.exists() { audit::try_to_write(folder) } else { Ok(()) };
    written.map(|()| Vec::new()).map_err(|error| format!("{}: {error}", folder.display()))
}
