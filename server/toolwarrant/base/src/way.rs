//! The way to a file or a folder.

use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};

/// Returns the folders and links on the way to `path`, first `path` itself if it exists. The owner
/// of each can replace `path`.
pub fn walk_to(path: &Path) -> Vec<(PathBuf, Metadata)> {
    let named = absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = named.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_default();
    let all = found.ancestors().chain(named.ancestors().filter(|path| !found.starts_with(path)));
    all.filter_map(|path| Some((path.to_owned(), path.symlink_metadata().ok()?))).collect()
}

/// Returns the part of the way, or `path` itself, that a user other than this one and root can
/// change.
pub fn find_shared(path: &Path) -> Option<PathBuf> {
    let is_ours = |about: &Metadata| [0, geteuid().as_raw()].contains(&about.uid());
    let may_write = |about: &Metadata| !about.is_symlink() && about.mode() & 0o022 != 0;
    // In a folder with the sticky bit, users replace only what is theirs.
    let is_sticky = |about: &Metadata| about.is_dir() && about.mode() & 0o1000 != 0;
    let shared = |(_, about): &(PathBuf, Metadata)| !is_ours(about) || (may_write(about) && !is_sticky(about));
    walk_to(path).into_iter().find(shared).map(|(at, _)| at)
}
