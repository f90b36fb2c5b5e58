//! The command `backup`: one file with the whole data folder except the master key. Start at
//! [`take`].
//!
//! The database is copied first. Files that only grow are copied after it, so they contain
//! everything that the database refers to, and maybe a little more: those events did happen.

use crate::answers::{ActMade, BackupAnswer};
use crate::archive::{ArchiveWriter, FORMAT, Manifest, is_plain};
use crate::context::OperatorContext;
use crate::data::{
    AUDIT, LAST_BACKUP, LOCK, MASTER_KEY, RESTORING, SERVICE, SOCKET, STDIO_SOCKET, everything, private,
};
use crate::error::OperatorError;
use crate::names::Names;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::Random;
use toolwarrant_base::{durable, hex};
use toolwarrant_sqlite::LAYOUT;

const NOTE: &str =
    "the master key is not in it: keep a copy of master.key apart, for without it nothing in a backup can be opened";

/// Refuses a `file` that exists or is in the data folder. A failed backup leaves no file.
/// `act_id` is the act of the backup, or the reason why it is not stored.
pub(crate) async fn take(
    context: &OperatorContext,
    file: PathBuf,
    act_id: Result<String, OperatorError>,
) -> Result<BackupAnswer, OperatorError> {
    let folder = context.folder.clone();
    let to = file.clone();
    let place = off_the_runtime(move || Place::of(to, &folder)).await?;
    // The store opens its database itself: SQLite loses its locks when other code in this process
    // opens and closes that file.
    context.store.copy_to(place.database.0.clone()).await?;
    let (names, folder, made_at) = (Arc::clone(&context.program.names), context.folder.clone(), context.clock.now());
    let done = off_the_runtime(move || write(place, &names, &folder, made_at)).await?;
    Ok(match act_id {
        Ok(act_id) => BackupAnswer { made: Some(ActMade { act_id, note: None }), ..done },
        Err(error) => BackupAnswer { note: format!("{NOTE}; the act of this backup is not stored: {error}"), ..done },
    })
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OperatorError> + Send + 'static,
) -> Result<T, OperatorError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(OperatorError::refusal(error.to_string())))
}

struct Place {
    file: PathBuf,
    draft: Draft,
    database: Draft,
}

/// The file stays open, because another user of its folder can put a link in its place.
struct Draft(PathBuf, File);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Place {
    fn of(file: PathBuf, folder: &Path) -> Result<Self, OperatorError> {
        let failed = |error: io::Error| OperatorError::refusal(format!("cannot write {}: {error}", file.display()));
        let (Some(name), Some(parent)) = (file.file_name(), file.parent()) else {
            return Err(OperatorError::refusal(format!("{} is not a file name", file.display())));
        };
        if file.symlink_metadata().is_ok() {
            return Err(OperatorError::refusal(format!(
                "{} exists; a backup does not overwrite files",
                file.display()
            )));
        }
        let parent = parent.canonicalize().map_err(failed)?;
        if folder.canonicalize().is_ok_and(|folder| parent.starts_with(folder)) {
            let why = "is in the data folder; a backup belongs elsewhere, best on another disk";
            return Err(OperatorError::refusal(format!("{} {why}", file.display())));
        }
        let tag = hex::encode(&Random::System.bytes::<4>().map_err(|error| failed(io::Error::other(error)))?);
        let draft = |end: &str| -> Result<Draft, OperatorError> {
            let path = parent.join(format!("{}.{tag}.{end}", name.to_string_lossy()));
            let file = private().read(true).create_new(true).open(&path).map_err(failed)?;
            Ok(Draft(path, file))
        };
        Ok(Self { draft: draft("new")?, database: draft("db.new")?, file: parent.join(name) })
    }
}

fn write(place: Place, names: &Names, folder: &Path, made_at: Timestamp) -> Result<BackupAnswer, OperatorError> {
    let Place { file, draft, database } = place;
    let failed = |error: io::Error| OperatorError::refusal(format!("cannot write {}: {error}", file.display()));
    let (mut files, mut left_out) = (vec![PathBuf::from(&names.database)], Vec::new());
    for (path, about) in everything(folder).map_err(failed)? {
        let Ok(name) = path.strip_prefix(folder) else { continue };
        if about.is_dir() || is_own(name, names) {
            continue;
        }
        if about.is_file() && holds(name, names) {
            files.push(name.to_owned());
        } else {
            left_out.push(name.display().to_string());
        }
    }
    files[1..].sort_by_key(|name| !name.starts_with(AUDIT));

    let archive = draft.1.try_clone().map_err(failed)?;
    let (service, version) = (names.program.to_owned(), names.version.to_owned());
    let manifest = Manifest { backup: FORMAT, service, version, layout: LAYOUT, made_at };
    let mut archive = ArchiveWriter::begin(archive, &manifest).map_err(failed)?;
    let mut shown = Vec::new();
    for name in files {
        let is_database = name.as_os_str() == &*names.database;
        let from = if is_database { database.1.try_clone() } else { File::open(folder.join(&name)) };
        let mut from = match from {
            Err(error) if error.kind() == ErrorKind::NotFound && !is_database => continue,
            opened => opened.map_err(failed)?,
        };
        let length = match name.extension().and_then(OsStr::to_str) {
            Some("jsonl") => whole_lines(&mut from),
            _ => from.metadata().map(|about| about.len()),
        };
        archive.add(&name, length.map_err(failed)?, from).map_err(failed)?;
        shown.push(name.display().to_string());
    }
    archive.finish().map_err(failed)?;
    publish(&draft.0, &file).map_err(failed)?;
    let bytes = draft.1.metadata().map_err(failed)?.len();
    if let Err(error) = durable::replace(&folder.join(LAST_BACKUP), |last| writeln!(last, "{made_at}")) {
        tracing::warn!(%error, "the moment of this backup is not stored, so the metrics show an older one or none");
    }
    Ok(BackupAnswer { backup: file, bytes, made_at, files: shown, left_out, note: NOTE.to_owned(), made: None })
}

/// Excludes databases: opening and closing one would release the locks of the code in this process
/// that has it open.
pub(crate) fn holds(name: &Path, names: &Names) -> bool {
    is_plain(name) && !is_own(name, names) && !is_database(name)
}

fn is_own(name: &Path, names: &Names) -> bool {
    let first = name.components().next().map(|first| first.as_os_str().to_string_lossy());
    let first = first.as_deref().unwrap_or_default();
    let stem = names.database.strip_suffix(".db").unwrap_or(&names.database);
    let own = [LOCK, SERVICE, MASTER_KEY, SOCKET, STDIO_SOCKET, RESTORING, LAST_BACKUP];
    own.contains(&first)
        || first.starts_with(&names.database)
        || first.starts_with(&format!("{stem}.watermark"))
        || own.iter().any(|own| first == format!("{own}.new"))
}

fn is_database(name: &Path) -> bool {
    let name = name.to_string_lossy();
    [".db", ".sqlite", ".sqlite3", "-wal", "-shm", "-journal"].iter().any(|end| name.ends_with(end))
}

/// Cuts a line that is still being written, and rewinds the file.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let (mut end, mut part) = (file.metadata()?.len(), Vec::new());
    while end > 0 {
        let begin = end.saturating_sub(1 << 16);
        part.clear();
        file.seek(SeekFrom::Start(begin))?;
        Read::by_ref(file).take(end - begin).read_to_end(&mut part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            end = begin + at as u64 + 1;
            break;
        }
        end = begin;
    }
    file.rewind()?;
    Ok(end)
}

fn publish(draft: &Path, file: &Path) -> io::Result<()> {
    match fs::hard_link(draft, file) {
        // Some file systems have no hard links.
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !file.exists() => fs::rename(draft, file)?,
        linked => linked?,
    }
    durable::sync_folder(file.parent().unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_follows_no_link_that_another_user_puts_in_the_place_of_a_draft() {
        let home = tempfile::tempdir().unwrap();
        let [data, other] = ["data", "other"].map(|name| home.path().join(name));
        fs::create_dir(&data).unwrap();
        fs::write(&other, "root's").unwrap();
        let place = Place::of(home.path().join("one.tar"), &data).unwrap();
        for Draft(path, _) in [&place.draft, &place.database] {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink(&other, path).unwrap();
        }
        assert!(write(place, &Names::of("shop", "1.0.0"), &data, Timestamp(0)).unwrap().bytes > 0);
        assert_eq!(fs::read_to_string(&other).unwrap(), "root's");
    }

    #[test]
    fn a_file_of_lines_is_copied_up_to_its_last_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let long = "x".repeat(200_000);
        for (text, expected) in [
            (String::new(), 0),
            ("no end".to_owned(), 0),
            ("one\ntwo".to_owned(), 4),
            ("one\ntwo\n".to_owned(), 8),
            (format!("one\n{long}"), 4),
            (long.clone(), 0),
            (format!("{long}\nhalf"), 200_001),
        ] {
            fs::write(&path, &text).unwrap();
            let mut file = File::open(&path).unwrap();
            assert_eq!(whole_lines(&mut file).unwrap(), expected, "{} bytes", text.len());
            assert_eq!(file.stream_position().unwrap(), 0);
        }
    }
}
