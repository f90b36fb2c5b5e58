//! What is wrong with a data folder, and what an operator does about it.
//!
//! Repairs nothing, and works with a running server or without one. What must hold of the database stands in
//! [`Rule`]; here are the words for it, and what lies beside the database. Start at [`examine`].

use crate::context::{Check, OperatorError, open_options};
use crate::data::{self, AUDIT, DataFolder};
use crate::names::Names;
use serde::Serialize;
use serde_json::Value;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::clock::{Clock, Timestamp};
use toolwarrant_core::random::Random;
use toolwarrant_core::vault::Vault;
use toolwarrant_core::{audit, registry};
use toolwarrant_store::sqlite::Sqlite;
use toolwarrant_store::{Rule, Store};

/// Faults of one kind that are shown; the rest are counted.
const SHOWN: usize = 10;

/// How long after its deadline a task may still be in flight: a start looks at each task within a minute.
const GRACE: Duration = Duration::from_mins(2);

/// Longest end of the audit trail that is read for its last line.
const LINE_MAX: u64 = 1 << 20;

/// What is looked at, as it is told: its name, what holds if all is well, and what to do where it does not.
struct Told(&'static str, &'static str, &'static str);

const FILES: Told = Told(
    "files",
    "all in the folder are files and folders that only the owner can reach",
    "take the rights of others away: chmod -R go= on the data folder; put what a link leads to in its place, and remove what \
     is no file",
);
const TRAIL: Told = Told(
    "audit trail",
    "its folder can be written to, and its last line can be read",
    "make room and give the owner the right to write; a line that was cut short stays readable to people",
);
const OPENS: Told =
    Told("database", "it opens", "do as it says; if it is damaged, keep a copy and restore the folder from a backup");
const WRITES: Told = Told(
    "writing",
    "the database can be written to, and is the one in the folder",
    "make room on the disk, and give the owner the right to write; move back a database that was moved away; of one that was \
     removed, copy the open files from /proc/PID/fd before you stop the server",
);
const KEY: Told = Told(
    "master key",
    "it opens the secret of every key",
    "restore the master.key that this data was made with; without it, every application needs another key",
);

/// The rules of a store, in the order in which they are tried: one may break because of those before it.
fn rules(now: Timestamp) -> [(Rule, Told); 8] {
    [
        (
            Rule::Integrity,
            Told(
                "integrity",
                "every page, row and reference of the database is whole",
                "stop the server, keep a copy of the folder, and restore it from a backup; `sqlite3 DATABASE .recover` saves \
                 what can be read",
            ),
        ),
        (
            Rule::Layout,
            Told(
                "layout",
                "tables and indexes are as this program makes them",
                "restore the folder from a backup; nothing but this program may change its database",
            ),
        ),
        (
            Rule::Records,
            Told(
                "records",
                "what is written of a task in several places says the same in all of them",
                "restore the folder from a backup; nothing but this program may change its database",
            ),
        ),
        (
            Rule::Refunds,
            Told(
                "refunds",
                "each task that ended as failed_silent has one refund, and no other task has any",
                "see `task show TASK`; settle it with the application, and report it as a bug",
            ),
        ),
        (
            Rule::Charges,
            Told(
                "charges",
                "each task that was to be sent has one charge, which is taken back exactly if nothing left; no other has any",
                "see `task show TASK`; settle it with the application, and report it as a bug",
            ),
        ),
        (
            Rule::TargetLocks,
            Told(
                "lanes",
                "one task at most is in flight on a target",
                "let them end, then read the target's state: each may have taken the effect of the other for its own; report it \
                 as a bug",
            ),
        ),
        (
            Rule::Secrets,
            Told(
                "secrets",
                "sealed arguments are gone as soon as a task ends",
                "stop the server, set sealed to NULL in the table task where terminal = 1, and report it as a bug",
            ),
        ),
        (
            Rule::Deadlines(now.minus(GRACE)),
            Told(
                "deadlines",
                "no task in flight is long past its deadline",
                "start a server, which ends them; if one runs, its log says what keeps it from that",
            ),
        ),
    ]
}

/// Examines a folder where no server runs.
///
/// # Errors
/// Another process has it.
pub(crate) async fn alone(
    path: &Path,
    names: &Names,
    catalogue: &Catalogue,
    checks: &[Check],
) -> Result<Value, OperatorError> {
    let folder = DataFolder::open(path, names).map_err(|error| OperatorError::Refused(error.to_string()))?;
    let database = folder.database().map_err(|error| error.to_string());
    let store = database.and_then(|path| {
        let opened = Sqlite::open_as_it_is(open_options(&path, &folder, catalogue));
        opened.map_err(|error| error.to_string())
    });
    let store = store.as_ref().map(|store| store as &dyn Store).map_err(Clone::clone);
    let diagnosis = examine(path, names, checks, store, Clock::system().now()).await;
    serde_json::to_value(diagnosis).map_err(|error| OperatorError::Refused(error.to_string()))
}

/// Examines a folder and its store, or says why that cannot be opened. Files are read on a thread that may block.
pub(crate) async fn examine(
    folder: &Path,
    names: &Names,
    checks: &[Check],
    store: Result<&dyn Store, String>,
    now: Timestamp,
) -> Diagnosis {
    let mut report = Report::default();
    let (path, own) = (folder.to_owned(), checks.to_vec());
    let looks = tokio::task::spawn_blocking(move || {
        let own = own.into_iter().map(|Check { name, holds, remedy, look }| (Told(name, holds, remedy), look(&path)));
        [(FILES, files(&path)), (TRAIL, trail(&path.join(AUDIT)))].into_iter().chain(own).collect::<Vec<_>>()
    });
    match looks.await {
        Ok(looks) => looks.into_iter().for_each(|(check, found)| report.enter(&check, found)),
        Err(error) => report.enter(&FILES, Err(error.to_string())),
    }
    match store {
        Ok(store) => {
            for (rule, check) in rules(now) {
                report.enter(&check, store.violations(rule).await.map_err(|error| error.to_string()));
            }
            report.enter(&WRITES, store.touch().await.map(|()| Vec::new()).map_err(|error| error.to_string()));
            report.enter(&KEY, master_key(folder, names, store).await);
        }
        Err(why) => report.enter(&OPENS, Err(why)),
    }
    let Report { checks, faults, remedies } = report;
    Diagnosis { healthy: faults.is_empty(), checks, faults, remedies }
}

/// What a doctor found.
#[derive(Serialize)]
pub(crate) struct Diagnosis {
    healthy: bool,
    checks: Vec<Looked>,
    faults: Vec<Fault>,
    remedies: Vec<Remedy>,
}

#[derive(Serialize)]
struct Looked {
    check: &'static str,
    state: &'static str,
    what_must_hold: &'static str,
}

#[derive(Serialize)]
struct Fault {
    check: &'static str,
    found: String,
}

#[derive(Serialize)]
struct Remedy {
    check: &'static str,
    remedy: &'static str,
}

#[derive(Default)]
struct Report {
    checks: Vec<Looked>,
    faults: Vec<Fault>,
    /// One for each kind of fault.
    remedies: Vec<Remedy>,
}

impl Report {
    /// Enters what a look found, or why one could not look.
    fn enter(&mut self, Told(check, what_must_hold, remedy): &Told, found: Result<Vec<String>, String>) {
        let found = found.unwrap_or_else(|why| vec![why]);
        let state = if found.is_empty() { "ok" } else { "fault" };
        self.checks.push(Looked { check, state, what_must_hold });
        if state == "fault" {
            self.remedies.push(Remedy { check, remedy });
        }
        let more = found.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| format!("and {more} more"));
        self.faults.extend(found.into_iter().take(SHOWN).chain(more).map(|found| Fault { check, found }));
    }
}

fn files(folder: &Path) -> Result<Vec<String>, String> {
    let wrong = |about: &Metadata| match (about.file_type(), about.permissions().mode() & 0o777) {
        (kind, _) if kind.is_symlink() => Some("is a link to what may lie elsewhere".to_owned()),
        (kind, _) if !(kind.is_file() || kind.is_dir() || kind.is_socket()) => {
            Some("is no file and no folder".to_owned())
        }
        (_, mode) if mode & 0o077 != 0 => Some(format!("has mode {mode:o}")),
        _ => None,
    };
    let all = data::everything(folder).map_err(|error| error.to_string())?;
    Ok(all.iter().filter_map(|(path, about)| Some(format!("{} {}", path.display(), wrong(about)?))).collect())
}

async fn master_key(folder: &Path, names: &Names, store: &dyn Store) -> Result<Vec<String>, String> {
    let key = data::read_master_key(folder).map_err(|error| error.to_string())?;
    let vault = Vault::new(&names.salt, &key, Random::System);
    let (_, keys) = store.directory().await.map_err(|error| error.to_string())?;
    let closed = keys.iter().filter(|key| registry::open_secrets(&vault, key).is_err());
    Ok(closed.map(|key| format!("it does not open the secrets of {}", key.id)).collect())
}

fn trail(folder: &Path) -> Result<Vec<String>, String> {
    let last = audit::try_to_write(folder).and_then(|()| last_line(folder));
    let last = last.map_err(|error| format!("{}: {error}", folder.display()))?;
    let sound = |line: &Vec<u8>| serde_json::from_slice::<Value>(line).is_ok();
    Ok(last.filter(|line| !sound(line)).map(|_| "its last line is no JSON".to_owned()).into_iter().collect())
}

/// The last line of a trail, if it has any. What follows it may still be on its way to the file.
fn last_line(folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(path) = audit::days(folder)?.pop() else { return Ok(None) };
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LINE_MAX)))?;
    let mut end = Vec::new();
    file.take(LINE_MAX).read_to_end(&mut end)?;
    let ended = end.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |at| &end[..at]);
    Ok(ended.rsplit(|byte| *byte == b'\n').next().map(<[u8]>::to_vec).filter(|line| !line.is_empty()))
}
