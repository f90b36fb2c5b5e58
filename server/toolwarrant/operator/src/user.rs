//! The user who operates, as the machine knows it and as the client describes it.

use rustix::process::{geteuid, getuid};
use std::fs;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;
use toolwarrant_core::act::{Channel, Claims, Operator, Role};

const NOBODY: u32 = u32::MAX;

const GROUPS_TIMEOUT: Duration = Duration::from_secs(5);

#[must_use]
pub fn local_operator(channel: Channel, claims: Claims) -> Operator {
    operator(Role::Owner, geteuid().as_raw(), channel, claims)
}

pub(crate) fn operator(role: Role, uid: u32, channel: Channel, claims: Claims) -> Operator {
    let name = crate::owner::user_name(uid).unwrap_or_else(|| uid.to_string());
    Operator { role, name, uid, channel, claims: claims.limit() }
}

pub(crate) fn claims(name: Option<String>, reason: Option<String>) -> Claims {
    let sudo_user = std::env::var("SUDO_USER").ok().filter(|user| !user.is_empty());
    let login_uid = fs::read_to_string("/proc/self/loginuid").ok().and_then(|text| text.trim().parse().ok());
    let login_uid = login_uid.filter(|uid| *uid != NOBODY && *uid != getuid().as_raw());
    Claims { sudo_user, login_uid, name, reason }.limit()
}

pub(crate) fn find_group(text: &str) -> Option<u32> {
    let known = groups().into_iter().find(|(name, _)| name == text).map(|(_, id)| id);
    known.or_else(|| text.parse().ok().filter(|id| *id != NOBODY))
}

pub(crate) fn group_name(id: u32) -> String {
    groups().into_iter().find(|(_, known)| *known == id).map_or_else(|| id.to_string(), |(name, _)| name)
}

/// Returns the groups that the machine gives the user at a login. Asks the program `id`, because a
/// directory of users can take long.
pub(crate) async fn groups_of(uid: u32) -> Vec<u32> {
    let name = crate::owner::user_name(uid).unwrap_or_else(|| uid.to_string());
    let mut id = Command::new("id");
    id.args(["-G", "--", &name]).stdin(Stdio::null()).kill_on_drop(true);
    let Ok(Ok(found)) = timeout(GROUPS_TIMEOUT, id.output()).await else { return Vec::new() };
    let text = String::from_utf8(found.stdout).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn groups() -> Vec<(String, u32)> {
    let text = fs::read_to_string("/etc/group").unwrap_or_default();
    let group = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
    };
    text.lines().filter_map(group).collect()
}
