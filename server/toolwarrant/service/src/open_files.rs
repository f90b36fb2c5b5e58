//! The limit on open files of the process: each connection is a file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows, and returns it.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Some systems refuse to set no limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
