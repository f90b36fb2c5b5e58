//! A folder that is opened once. A user who can change its content, or the way to it, cannot lead a
//! name in it elsewhere: no link is followed, and no file is replaced.

use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub struct OpenFolder(File);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const NEW_FILE: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);

impl OpenFolder {
    /// # Errors
    /// The last part of `path` is a link, among others.
    pub fn open(path: &Path) -> io::Result<Self> {
        // With a separator at its end, a path leads through a link.
        let path: &Path = &path.components().collect::<std::path::PathBuf>();
        Ok(Self(File::from(rustix::fs::open(path, FOLDER, Mode::empty())?)))
    }

    /// Makes a new folder in this one.
    pub fn make(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?;
        Ok(Self(File::from(openat(&self.0, name, FOLDER, Mode::empty())?)))
    }

    /// Makes a new file.
    pub fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        Ok(File::from(openat(&self.0, name, NEW_FILE, mode)?))
    }

    /// Gives a file in it another name, which must be free, durably.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let (here, flags) = (&self.0, AtFlags::empty());
        match linkat(here, from, here, to, flags) {
            Ok(()) => unlinkat(here, from, flags)?,
            // Some file systems have no hard links.
            Err(error) if error != Errno::EXIST && statat(here, to, AtFlags::SYMLINK_NOFOLLOW).is_err() => {
                renameat(here, from, here, to)?;
            }
            Err(error) => return Err(error.into()),
        }
        here.sync_all()
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }
}
