//! The platforms of a fleet.
//!
//! An id is the name of its platform, `-`, and the platform's own id. Names do not contain `-`, so
//! the ids of a platform are contiguous. Of several platforms, one that fails does not affect the
//! others. Start at [`Platforms`].

use super::contract::DeviceId;
use super::port::{DeviceSnapshot, Platform, PlatformName, See, Unreachable};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Default)]
pub struct Platforms(BTreeMap<PlatformName, Member>);

struct Member {
    platform: Arc<dyn Platform>,
    failed: AtomicBool,
}

impl Platforms {
    #[must_use]
    pub fn with(mut self, name: PlatformName, platform: Arc<dyn Platform>) -> Self {
        self.0.insert(name, Member { platform, failed: AtomicBool::new(false) });
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&PlatformName, &dyn Platform)> {
        self.0.iter().map(|(name, member)| (name, &*member.platform))
    }

    pub fn of(&self, id: &DeviceId) -> Result<&dyn Platform, Unreachable> {
        let member = owner_of(id.as_str()).and_then(|name| self.0.get(name));
        let not_configured = || Unreachable(format!("the platform of {id} is not configured").into());
        member.map(|member| &*member.platform).ok_or_else(not_configured)
    }

    /// Shows phones of all platforms, in the order of their ids. Fails if the only platform cannot
    /// be reached. Of several, those are in [`Self::list_unread`].
    pub fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        let mut left = limit;
        for (name, member) in self.0.iter().filter(|(name, _)| after.is_none_or(|id| !is_before(name, id))) {
            if left == 0 {
                break;
            }
            let page = member.platform.page(after, left, &mut |phones| {
                left = left.saturating_sub(u16::try_from(phones.len()).unwrap_or(u16::MAX));
                see(phones);
            });
            self.note(name, member, page)?;
        }
        Ok(())
    }

    pub fn list_page(&self, after: Option<&DeviceId>, limit: u16) -> Result<Vec<Arc<DeviceSnapshot>>, Unreachable> {
        let mut listed = Vec::new();
        self.page(after, limit, &mut |phones| listed.extend(phones.iter().copied().cloned()))?;
        Ok(listed)
    }

    /// Shows the phones that exist among these ids, in the order of `ids`.
    pub fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        for ids in ids.chunk_by(|a, b| owner_of(a) == owner_of(b)) {
            if let Some((name, member)) = owner_of(ids[0]).and_then(|name| self.0.get_key_value(name)) {
                self.note(name, member, member.platform.read(ids, see))?;
            }
        }
        Ok(())
    }

    /// Returns the platforms that may have more phones, each with its advice.
    #[must_use]
    pub fn list_unread(&self) -> Vec<(PlatformName, Option<&'static str>)> {
        let unread = self.0.iter().filter(|(_, member)| member.failed.load(Relaxed) || member.platform.is_unread());
        unread.map(|(name, member)| (name.clone(), member.platform.remedy())).collect()
    }

    /// Writes only a change, because pages on all threads read it. Logs errors of one of several
    /// platforms.
    fn note(&self, name: &PlatformName, member: &Member, listed: Result<(), Unreachable>) -> Result<(), Unreachable> {
        if member.failed.load(Relaxed) != listed.is_err() {
            member.failed.store(listed.is_err(), Relaxed);
        }
        match listed {
            Err(error) if self.0.len() > 1 => {
                tracing::warn!(platform = name.as_str(), %error, "its phones could not be listed");
                Ok(())
            }
            listed => listed,
        }
    }
}

fn owner_of(id: &str) -> Option<&str> {
    Some(id.split_once('-')?.0)
}

/// Returns true if all ids of a platform come before `id`, or equal it.
fn is_before(name: &PlatformName, id: &DeviceId) -> bool {
    match id.as_str().strip_prefix(name.as_str()) {
        // `.` follows `-`.
        Some(rest) => rest >= ".",
        None => id.as_str() > name.as_str(),
    }
}

#[cfg(test)]
mod tests;
