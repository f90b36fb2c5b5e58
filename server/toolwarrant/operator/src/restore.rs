//! The command `restore`: fills a data folder from a backup, while no server uses the folder. Start
//! at [`run`].
//!
//! The content is prepared in a folder inside the data folder and then moved into place, the
//! database last. An interrupted restore leaves that inner folder, which prevents a start.

use crate::answers::{KeyAnswer, RestoreAnswer, RestoredApplication};
use crate::archive::{ArchiveReader, FORMAT, Manifest};
use crate::backup::holds;
use crate::data::{
    AUDIT, DataFolder, LOCK, LOST_AND_FOUND, MASTER_KEY, RESTORING, SERVICE, create, private, read_key_file,
    read_master_key,
};
use crate::error::OperatorError;
use crate::flags::DATA;
use crate::names::Names;
use crate::open_error::OpenError;
use crate::owner::{make_folder_for, remedy};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::durable;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::act::{Act, Changes, Operator, Origin};
use toolwarrant_core::registry::opens_any;
use toolwarrant_core::store::ApplicationRow;
use toolwarrant_sqlite::{FIRST_LAYOUT, LAYOUT, RestoredData, restore};

/// Leaves the folder as empty as before after an error.
pub(crate) fn run(
    path: &Path,
    names: &Names,
    file: &Path,
    (master_key, owner): (Option<PathBuf>, Option<String>),
    operator: Operator,
) -> Result<RestoreAnswer, OperatorError> {
    let refused = |why: String| OperatorError::refusal(format!("cannot restore {}: {why}", file.display()));
    let unreadable = |error: io::Error| match error.kind() {
        ErrorKind::PermissionDenied => format!("{error}; {}", remedy(file, &error)),
        _ => error.to_string(),
    };
    let archive = ArchiveReader::open(file).map_err(|error| refused(unreadable(error)))?;
    judge(&archive.manifest, names).map_err(refused)?;
    let as_of = archive.manifest.made_at;

    let given = master_key.is_some();
    let key = match master_key {
        Some(file) => read_key_file(file),
        None => read_master_key(path),
    };
    let key = key
        .map_err(|error| refused(format!("{error}; a restore needs the master key, which is not part of a backup")))?;
    // Root has read the files that only it may be able to read.
    let owner = owner.map(|name| make_folder_for(&name, path)).transpose().map_err(refused)?;
    let folder = DataFolder::lock_to_restore(path, names).map_err(OpenError::from)?;
    refuse_content(&folder)?;

    let staging = folder.join(RESTORING);
    let failed = |error: io::Error| refused(format!("{}: {error}", staging.display()));
    create(&staging).map_err(failed)?;
    let origin = Origin { operator, command: "restore".to_owned() };
    let prepared = prepare(&staging, archive, names, &key, origin);
    let (data, made_at) = prepared.inspect_err(|_| {
        let _ = fs::remove_dir_all(&staging);
    })?;
    if given {
        folder.put_master_key(&key).map_err(OpenError::from)?;
    }
    folder.write(SERVICE, names.program).map_err(failed)?;
    put_in_place(&folder, &staging, names).map_err(failed)?;
    Ok(answer(data, &folder, owner, names, (as_of, made_at)))
}

fn judge(manifest: &Manifest, names: &Names) -> Result<(), String> {
    let Manifest { backup, service, version, layout, made_at: _ } = manifest;
    if service != names.program {
        return Err(format!("it is a backup of {service}, and this program is {}", names.program));
    }
    let is_newer = *backup > FORMAT || *layout > LAYOUT;
    if is_newer || *backup != FORMAT || *layout < FIRST_LAYOUT {
        let age = if is_newer { "newer" } else { "older" };
        return Err(format!("it was made by {service} {version}, which is {age}; restore it with that program"));
    }
    Ok(())
}

/// Replaces nothing, but removes the remains of an interrupted restore.
fn refuse_content(folder: &DataFolder) -> Result<(), OperatorError> {
    let path = folder.path();
    let failed = |error: io::Error| OperatorError::refusal(format!("cannot use {}: {error}", path.display()));
    let content = path.read_dir().and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    let interrupted = folder.join(RESTORING).exists();
    for entry in content {
        let name = entry.file_name();
        if [LOCK, SERVICE, MASTER_KEY, LOST_AND_FOUND].iter().any(|empty| name == **empty) {
            continue;
        }
        if !interrupted {
            let path = path.display();
            let what = "a restore needs a folder that is empty or contains only the master key";
            let how =
                format!("move {path} elsewhere and run this command again, or choose another folder with --{DATA}");
            return Err(OperatorError::refusal(format!("{path} contains {}; {what}: {how}", name.display())));
        }
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        // The folder that marks an interrupted restore is removed last.
        if name != *RESTORING {
            let removed = if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
            removed.map_err(failed)?;
        }
    }
    if interrupted { fs::remove_dir_all(folder.join(RESTORING)).map_err(failed) } else { Ok(()) }
}

fn prepare(
    staging: &Path,
    archive: ArchiveReader,
    names: &Names,
    key: &[u8; 32],
    origin: Origin,
) -> Result<(RestoredData, Timestamp), OperatorError> {
    let failed = |error: io::Error| {
        OperatorError::refusal(match error.kind() {
            ErrorKind::InvalidData => format!("the backup cannot be used: {error}"),
            _ => format!("cannot write to {}: {error}", staging.display()),
        })
    };
    let layout = archive.manifest.layout;
    let unpacked = archive.files(|name, _, bytes| {
        let path = staging.join(name);
        if name.as_os_str() != &*names.database && !holds(name, names) {
            let why = format!("it contains {}, which no backup of {} contains", name.display(), names.program);
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
            create(parent)?;
        }
        let mut file = private().create_new(true).open(&path)?;
        io::copy(bytes, &mut file)?;
        file.sync_all()
    });
    unpacked.map_err(failed)?;
    create(&staging.join(AUDIT)).map_err(failed)?;
    let database = staging.join(&names.database);
    if !database.exists() {
        return Err(OperatorError::refusal(format!("there is no {} in the backup", names.database)));
    }
    if layout_of(&database).map_err(failed)? != Some(layout) {
        let why = format!("the {} in the backup is empty, or not the one that the backup describes", names.database);
        return Err(OperatorError::refusal(why));
    }
    let now = Clock::system().wall();
    let act = Act::new(origin, None, Changes::default(), now, &Random::System);
    let act = act.map_err(|error| OperatorError::unavailable(error.to_string()))?;
    let data = restore(&database, now, &act).map_err(OpenError::from)?;
    let keyring = KeyRing::new(&names.salt, key, Random::System);
    if !opens_any(&keyring, &data.keys) {
        return Err(OperatorError::refusal("the master key is not the one of this backup: it opens no key of it"));
    }
    Ok((data, now))
}

fn layout_of(database: &Path) -> io::Result<Option<u32>> {
    let mut header = Vec::new();
    File::open(database)?.take(64).read_to_end(&mut header)?;
    let layout = header.last_chunk().copied().map(u32::from_be_bytes);
    Ok(layout.filter(|_| header.len() == 64 && header.starts_with(b"SQLite format 3\0")))
}

fn put_in_place(folder: &DataFolder, staging: &Path, names: &Names) -> io::Result<()> {
    let mut entries = staging.read_dir()?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name() == *names.database);
    for entry in entries {
        fs::rename(entry.path(), folder.path().join(entry.file_name()))?;
    }
    durable::sync_folder(folder.path())?;
    fs::remove_dir(staging)?;
    durable::sync_folder(folder.path())
}

fn answer(
    data: RestoredData,
    folder: &DataFolder,
    owner: Option<String>,
    names: &Names,
    (as_of, now): (Timestamp, Timestamp),
) -> RestoreAnswer {
    let RestoredData { applications, mut keys, ended } = data;
    keys.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    let name = |id: &str| applications.iter().find(|row| row.id == id).map_or("", |row| &*row.name);
    let keys: Vec<_> = keys.iter().map(|key| KeyAnswer::from_backup(key, name(&key.application), now)).collect();
    let program = names.program;
    let next_step = format!(
        "all keys are off. First revoke the keys that must not return with `{program} key revoke KEY`, above all those that were revoked \
         since the backup; then turn on the others with `{program} key confirm KEY...`, or `{program} key confirm --all`"
    );
    let line = |ApplicationRow { name, id, permissions, .. }| RestoredApplication { name, id, permissions };
    let applications = applications.into_iter().map(line).collect();
    let restored = folder.path().to_owned();
    RestoreAnswer { restored, owner, as_of, ended_as_timeout: ended, applications, keys, next_step }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::ArchiveWriter;
    use std::io::Write;
    use toolwarrant_core::act::{Channel, Claims, Role};

    #[test]
    fn a_backup_of_another_service_or_of_an_unknown_layout_is_refused_by_name() {
        let names = Names::of("shop", "1.0.0");
        let judged = |backup, service: &str, layout| {
            let (service, version) = (service.to_owned(), "9.9.9".to_owned());
            judge(&Manifest { backup, service, version, layout, made_at: Timestamp(0) }, &names)
                .err()
                .unwrap_or_default()
        };
        assert_eq!(judged(FORMAT, "shop", LAYOUT), "");
        assert_eq!(judged(FORMAT, "other", LAYOUT), "it is a backup of other, and this program is shop");
        for (format, layout, age) in
            [(FORMAT, LAYOUT + 1, "newer"), (FORMAT + 1, LAYOUT, "newer"), (FORMAT, FIRST_LAYOUT - 1, "older")]
        {
            let refusal = format!("it was made by shop 9.9.9, which is {age}; restore it with that program");
            assert_eq!(judged(format, "shop", layout), refusal);
        }
    }

    #[test]
    fn a_database_and_files_that_no_backup_contains_are_refused_and_the_folder_stays_as_it_was() {
        let names = Names::of("shop", "1.0.0");
        let home = tempfile::tempdir().unwrap();
        let (file, data) = (home.path().join("backup.tar"), home.path().join("data"));
        create(&data).unwrap();
        private().create_new(true).open(data.join(MASTER_KEY)).unwrap().write_all(&[b'a'; 64]).unwrap();
        let (service, version) = ("shop".to_owned(), "1.0.0".to_owned());
        let manifest = Manifest { backup: FORMAT, service, version, layout: LAYOUT, made_at: Timestamp(0) };
        let other = "is empty, or not the one that the backup describes";
        let cases: [(&str, &[u8], &str); 11] = [
            ("shop.db", b"", other),
            ("shop.db", &[0; 4096], other),
            ("shop.db", b"SQLite format 3\0", other),
            ("shop.db-wal", b"x", "it contains shop.db-wal, which no backup of shop contains"),
            ("shop.watermark", b"{}", "it contains shop.watermark"),
            ("master.key", b"ab", "it contains master.key"),
            ("admin.sock", b"", "it contains admin.sock"),
            ("restoring/x", b"", "it contains restoring/x"),
            ("other.db", b"", "it contains other.db"),
            ("audit/x.sqlite3", b"", "it contains audit/x.sqlite3"),
            // A file of the service is one that a backup can contain.
            ("mine.jsonl", b"{}", "there is no shop.db in the backup"),
        ];
        for (entry, content, expected) in cases {
            let mut archive = ArchiveWriter::begin(File::create(&file).unwrap(), &manifest).unwrap();
            archive.add(Path::new(entry), content.len() as u64, content).unwrap();
            archive.finish().unwrap();
            let (name, claims) = ("ada".to_owned(), Claims::default());
            let ada = Operator { role: Role::Owner, name, uid: 7, channel: Channel::Offline, claims };
            let refused = run(&data, &names, &file, (None, None), ada).err().map(|why| why.to_string());
            assert!(refused.as_ref().is_some_and(|why| why.contains(expected)), "{entry}: {refused:?}");
            let mut left: Vec<_> = data.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, [LOCK, MASTER_KEY], "{entry}");
        }
    }
}
