//! The user who operates, as the machine knows it and as the client describes it.

use rustix::process::{geteuid, getuid};
use std::fs;
use toolwarrant_core::act::{Channel, Claims, Operator, Role};

const NOBODY: u32 = u32::MAX;

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

fn groups() -> Vec<(String, u32)> {
    let text = fs::read_to_string("/etc/group").unwrap_or_default();
    let group = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
    };
    text.lines().filter_map(group).collect()
}
