//! Files that are replaced as a whole: after a crash, a file has its new content or its old one,
//! never a part.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces a file with what `write` writes, synced. Only its owner can read it.
///
/// The next replacement removes a draft `PATH.new` that a crash has left, and so never writes
/// through a link of that name.
///
/// # Errors
/// The file is unchanged, unless only the folder cannot be synced.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let draft = path.with_added_extension("new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&draft)?;
    write(&mut file)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    sync_folder(path.parent().unwrap_or(path))?;
    Ok(file)
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_replaced_whole_or_stays_as_it_was() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("list.json");
        replace(&path, |file| file.write_all(b"a longer text")).unwrap();
        let broken = |file: &mut File| file.write_all(b"half").and(Err(io::Error::other("the disk is full")));
        assert!(replace(&path, broken).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"a longer text");
        replace(&path, |file| file.write_all(b"text")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
