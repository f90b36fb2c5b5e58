//! The way to a file or a folder.

use std::fs::Metadata;
use std::path::{Path, PathBuf, absolute};

/// Returns the folders and links on the way to `path`, first `path` itself if it exists. The owner
/// of each can replace `path`.
pub fn walk_to(path: &Path) -> Vec<(PathBuf, Metadata)> {
    let named = absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = named.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_default();
    let all = found.ancestors().chain(named.ancestors().filter(|path| !found.starts_with(path)));
    all.filter_map(|path| Some((path.to_owned(), path.symlink_metadata().ok()?))).collect()
}
