//! The owner of a data folder, who also owns every file in it. Start at [`become_owner`].
//!
//! Root becomes the owner before it opens anything, so a link in the folder leads it nowhere that
//! the owner cannot go. Every other user is refused.

use crate::flags::DATA;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use toolwarrant_base::way::walk_to;

pub(crate) const LOCK: &str = "lock";

#[derive(Debug, thiserror::Error)]
#[error("{0}, or choose another folder with --{DATA}")]
pub struct OtherUser(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemUser {
    id: u32,
    group: u32,
}

impl SystemUser {
    pub(crate) fn find(text: &str) -> Option<Self> {
        let known = users().into_iter().find(|(name, user)| name == text || user.id.to_string() == text);
        // The highest number means "no user" to the system.
        let by_number = || text.parse().ok().filter(|id| *id != u32::MAX).map(|id| Self { id, group: id });
        known.map(|(_, user)| user).or_else(by_number)
    }

    fn of(about: &Metadata) -> Self {
        Self { id: about.uid(), group: about.gid() }
    }

    /// Makes this thread, and those that it starts, the user's.
    fn become_it(self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
            let (user, group) = (Uid::from_raw(self.id), Gid::from_raw(self.group));
            set_thread_groups(&[group])?;
            set_thread_res_gid(group, group, group)?;
            Ok(set_thread_res_uid(user, user, user)?)
        }
        #[cfg(not(target_os = "linux"))]
        Err(ErrorKind::Unsupported.into())
    }
}

/// Becomes the owner of `folder` if root runs this program, and returns its name. Must be called
/// before the program starts a thread. A new folder that was asked for will belong to the owner of
/// the folder around it.
pub fn become_owner(folder: &Path, is_asked_for: bool) -> Result<Option<String>, OtherUser> {
    let around = || {
        let there = walk_to(folder).into_iter().next();
        there.filter(|_| is_asked_for).map(|(_, about)| SystemUser::of(&about))
    };
    match owner_of(folder).or_else(around).filter(|_| geteuid().is_root()) {
        Some(owner) if owner.id != 0 => {
            owner.become_it().map_err(|_| other_user(folder, owner.id))?;
            Ok(Some(name_of(owner.id)))
        }
        Some(_) => refuse_replaceable(folder).map(|()| None),
        None => Ok(None),
    }
}

pub(crate) fn refuse_other_user(folder: &Path) -> Result<(), OtherUser> {
    match owner_of(folder) {
        Some(owner) if owner.id != geteuid().as_raw() => Err(other_user(folder, owner.id)),
        _ => refuse_replaceable(folder),
    }
}

/// Refuses a folder for root if a folder, or link, of another user is on the way to it. That user
/// can put a folder with links in its place, and root would write through them.
fn refuse_replaceable(folder: &Path) -> Result<(), OtherUser> {
    let other = walk_to(folder).into_iter().find(|(_, about)| geteuid().is_root() && about.uid() != 0);
    let Some((at, about)) = other else { return Ok(()) };
    let (name, at, shown) = (name_of(about.uid()), at.display(), folder.display());
    Err(OtherUser(format!("root does not use {shown}, because {at} belongs to {name}; run this as that user")))
}

/// Opens nothing through a link. The folder may exist if it belongs to that user.
pub(crate) fn make_folder_for(user: &str, folder: &Path) -> Result<String, String> {
    let user = SystemUser::find(user).ok_or_else(|| format!("this machine has no user {user}; give its number"))?;
    let (name, shown) = (name_of(user.id), folder.display());
    let failed = |error: io::Error| format!("cannot make {shown} for {name}: {error}");
    match folder.symlink_metadata() {
        Ok(about) if about.is_dir() && about.uid() == user.id => {}
        Ok(about) => {
            let owner = name_of(about.uid());
            return Err(format!(
                "{shown} is not a folder of {name}, but belongs to {owner}; remove it, or omit --owner"
            ));
        }
        Err(_) => {
            DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
            let given = fchown(File::from(made), Some(user.id), Some(user.group));
            given.inspect_err(|_| drop(fs::remove_dir(folder))).map_err(failed)?;
        }
    }
    // The threads that print stay root's; they open nothing.
    if geteuid().is_root() {
        user.become_it().map_err(failed)?
    }
    Ok(name)
}

#[must_use]
pub fn remedy(path: &Path, error: &io::Error) -> String {
    let (me, elsewhere) = (geteuid().as_raw(), format!("choose another folder with --{DATA}"));
    match foreign(path, me).filter(|_| error.kind() == ErrorKind::PermissionDenied) {
        Some((file, owner)) => {
            // A folder around it, or one of another user, is not this program's to take.
            let how = match file.starts_with(path) && owner == 0 {
                true => format!("run `chown -R {me} {}` as root", file.display()),
                false => "run this as that user or as root".to_owned(),
            };
            let (file, owner, name) = (file.display(), name_of(owner), name_of(me));
            format!("{file} belongs to {owner}, and this program runs as {name}: {how}, or {elsewhere}")
        }
        None => elsewhere,
    }
}

pub(crate) fn other_owner(about: &Metadata) -> Option<String> {
    (about.uid() != geteuid().as_raw()).then(|| name_of(about.uid()))
}

/// Returns the user who has used the folder first if it is a mounted volume of root.
fn owner_of(folder: &Path) -> Option<SystemUser> {
    let named = [folder.symlink_metadata(), folder.metadata()].into_iter().flatten();
    let user = named.map(|about| SystemUser::of(&about)).find(|user| user.id != 0);
    user.or_else(|| folder.join(LOCK).symlink_metadata().ok().map(|about| SystemUser::of(&about)))
}

fn other_user(folder: &Path, owner: u32) -> OtherUser {
    let user = name_of(geteuid().as_raw());
    let (shown, owner) = (folder.display(), name_of(owner));
    OtherUser(format!("{shown} belongs to {owner}, and this program runs as {user}; run it as the owner or as root"))
}

fn foreign(path: &Path, me: u32) -> Option<(PathBuf, u32)> {
    let about = |path: &Path| path.symlink_metadata().ok().map(|about| (path.to_owned(), about.uid()));
    let (path, owner) = path.ancestors().find_map(about)?;
    let inside =
        || path.read_dir().ok()?.flatten().filter_map(|entry| about(&entry.path())).find(|(_, user)| *user != me);
    if owner == me { inside() } else { Some((path, owner)) }
}

fn name_of(id: u32) -> String {
    user_name(id).map_or_else(|| format!("the user {id}"), |name| format!("the user {name} ({id})"))
}

pub(crate) fn user_name(id: u32) -> Option<String> {
    users().into_iter().find(|(_, user)| user.id == id).map(|(name, _)| name)
}

fn users() -> Vec<(String, SystemUser)> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |line: &str| {
        let mut fields = line.split(':');
        let (name, id, group) = (fields.next()?, fields.nth(1)?, fields.next()?);
        Some((name.to_owned(), SystemUser { id: id.parse().ok()?, group: group.parse().ok()? }))
    };
    text.lines().filter_map(user).collect()
}
