//! Files with secrets, and the one rule about who may read them.

use rustix::fs::{StatVfsMountFlags, fstatvfs};
use rustix::process::{getegid, geteuid, getgroups};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

#[derive(Debug)]
pub struct SecretFile {
    pub file: File,
    /// Other users can use the file, and this user cannot change that.
    pub warning: Option<String>,
}

impl SecretFile {
    /// Opens a file of this user or root that no other user can use. One that this user cannot
    /// change is taken with a warning: on a read-only file system, or root's and readable for a
    /// group. Mounted secrets are such files. Root also takes a file that only its owner can use.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (file, judged) = Self::judge(path)?;
        Ok(Self { file, warning: judged.map_err(io::Error::other)? })
    }

    /// Opens also a file that others can use. Its warning has the remedy.
    pub fn open_anyway(path: &Path) -> io::Result<Self> {
        let (file, judged) = Self::judge(path)?;
        Ok(Self { file, warning: judged.unwrap_or_else(Some) })
    }

    fn judge(path: &Path) -> io::Result<(File, Result<Option<String>, String>)> {
        // Opening a pipe would block.
        let about = path.metadata()?;
        if !about.is_file() {
            let kind = if about.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
            return Err(io::Error::new(kind, "it is not a file"));
        }
        let file = File::open(path)?;
        let is_read_only = fstatvfs(&file)?.f_flag.contains(StatVfsMountFlags::RDONLY);
        let groups = getgroups()?.into_iter().chain([getegid()]).map(rustix::fs::Gid::as_raw).collect();
        let reader = Reader { user: geteuid().as_raw(), groups };
        let judged = reader.judge(&file.metadata()?.into(), is_read_only, path);
        Ok((file, judged))
    }
}

struct Reader {
    user: u32,
    groups: Vec<u32>,
}

struct Users {
    owner: u32,
    group: u32,
    mode: u32,
}

impl From<Metadata> for Users {
    fn from(about: Metadata) -> Self {
        Self { owner: about.uid(), group: about.gid(), mode: about.permissions().mode() & 0o777 }
    }
}

impl Reader {
    /// Returns a warning, or an error if this user can change the file.
    fn judge(&self, users: &Users, is_read_only: bool, path: &Path) -> Result<Option<String>, String> {
        let (Self { user, groups }, Users { owner, group, mode }) = (self, users);
        if (owner == user || *owner == 0) && mode & 0o077 == 0 {
            return Ok(None);
        }
        let whose = if owner == user { String::new() } else { format!("it belongs to the user {owner}, and ") };
        let found = format!("other users can access it: {whose}its mode is {mode:04o}");
        let is_lent = *owner == 0 && *user != 0 && mode & 0o037 == 0 && groups.contains(group);
        let is_given = *user == 0 && *owner != 0 && mode & 0o077 == 0;
        if is_read_only || is_lent || is_given {
            return Ok(Some(found));
        }
        let path = path.display();
        let remedy = match owner == user {
            true => format!("run `chmod 600 {path}`"),
            false => format!("run `chown {user} {path}` and `chmod 600 {path}` as root"),
        };
        Err(format!("{found}; {remedy}; if that has no effect, move the file to a file system that keeps modes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_use_is_refused_unless_this_user_cannot_change_that() {
        let (taken, warned, own, given) = (None, Some(""), Some("`chmod 600 key`"), Some("`chown 7 key`"));
        let (root, on_disk, mounted) = (0, false, true);
        for (user, owner, group, mode, is_read_only, expected) in [
            (7, 7, 7, 0o600, on_disk, taken),
            (7, root, 9, 0o400, on_disk, taken),
            (7, 7, 7, 0o640, on_disk, own),
            (7, 7, 7, 0o602, on_disk, own),
            // Of a file system that keeps no modes.
            (7, 7, 7, 0o777, on_disk, Some("has no effect, move the file")),
            (7, root, root, 0o777, on_disk, Some("has no effect, move the file")),
            // Of Kubernetes for the group of the pod, and of the group ssl-cert.
            (7, root, 8, 0o440, on_disk, warned),
            (7, root, 7, 0o640, on_disk, warned),
            (7, root, 8, 0o660, on_disk, given),
            (7, root, 9, 0o440, on_disk, given),
            (7, root, 8, 0o444, on_disk, given),
            (7, 6, 8, 0o440, on_disk, given),
            (7, 6, 6, 0o600, on_disk, given),
            (root, root, root, 0o440, on_disk, own),
            // Of a user of the host, for root in a container.
            (root, 6, 6, 0o600, on_disk, warned),
            (root, 6, 6, 0o640, on_disk, Some("`chown 0 key`")),
            // Of Docker, and of a user of the host.
            (7, root, root, 0o444, mounted, warned),
            (root, root, root, 0o444, mounted, warned),
            (7, 6, 6, 0o664, mounted, warned),
            (7, 7, 7, 0o600, mounted, taken),
        ] {
            let reader = Reader { user, groups: vec![8, user] };
            let judged = reader.judge(&Users { owner, group, mode }, is_read_only, Path::new("key"));
            let place = format!("{user} {owner}:{group} {mode:o} {is_read_only}: {judged:?}");
            match expected {
                None => assert_eq!(judged, Ok(None), "{place}"),
                Some("") => assert!(matches!(judged, Ok(Some(_))), "{place}"),
                Some(remedy) => {
                    let refused = judged.expect_err(&place);
                    assert!(refused.contains(remedy) && refused.contains(&format!("{mode:04o}")), "{place}");
                }
            }
        }
    }
}
