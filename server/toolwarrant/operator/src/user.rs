//! The user who operates: as the machine knows it, and as the client describes it.

use rustix::process::{geteuid, getuid};
use std::fs;
use toolwarrant_core::act::{Channel, Claims, Operator, Role};

/// The number that stands for no user.
const NOBODY: u32 = u32::MAX;

/// Returns the operator of this process, which works on the data folder itself.
#[must_use]
pub fn local_operator(channel: Channel, claims: Claims) -> Operator {
    operator(Role::Owner, geteuid().as_raw(), channel, claims)
}

/// Returns an operator of this machine.
pub(crate) fn operator(role: Role, uid: u32, channel: Channel, claims: Claims) -> Operator {
    let name = crate::owner::user_name(uid).unwrap_or_else(|| uid.to_string());
    Operator { role, name, uid, channel, claims: claims.limit() }
}

/// Returns the statements of this process about its user. Nothing checks them later.
pub(crate) fn claims(name: Option<String>, reason: Option<String>) -> Claims {
    let sudo_user = std::env::var("SUDO_USER").ok().filter(|user| !user.is_empty());
    let login_uid = fs::read_to_string("/proc/self/loginuid").ok().and_then(|text| text.trim().parse().ok());
    let login_uid = login_uid.filter(|uid| *uid != NOBODY && *uid != getuid().as_raw());
    Claims { sudo_user, login_uid, name, reason }.limit()
}

/// Finds a group of this machine by its name or number.
pub(crate) fn find_group(text: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let known = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (name == text).then(|| id.parse().ok())?
    });
    known.or_else(|| text.parse().ok().filter(|id| *id != NOBODY))
}
