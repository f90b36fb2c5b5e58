//! Several platforms as one fleet: finds the platform of a phone, and pages across all platforms in
//! the order of ids.
//!
//! An id is the name of its platform, `-`, and the platform's own id. Names do not contain `-`, so
//! an id leads to one platform, and the ids of a platform are contiguous. A platform that fails
//! does not affect the others. Start at [`Platforms`].

use crate::phones::contract::{Command, DeviceId, SessionMode, SetProxyArgs};
use crate::phones::port::{
    AtHand, Control, Exits, Found, PhoneStart, PlatformName, See, Session, SessionError, Unreachable, Upstream,
};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant::BoxFuture;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};
use toolwarrant::text::Words;

/// The platforms of a fleet. The ids of each begin with its name.
pub struct Platforms(BTreeMap<PlatformName, Member>);

struct Member {
    control: Arc<dyn Control>,
    /// True if its last list failed.
    failed: AtomicBool,
}

impl Platforms {
    /// Makes one fleet of platforms.
    #[must_use]
    pub fn of(members: impl IntoIterator<Item = (PlatformName, Arc<dyn Control>)>) -> Self {
        let member = |(name, control)| (name, Member { control, failed: AtomicBool::new(false) });
        Self(members.into_iter().map(member).collect())
    }

    /// Returns the platform of a phone, if it is configured.
    fn owner(&self, id: &DeviceId) -> Option<&dyn Control> {
        Some(&*self.0.get(owner_of(id.as_str())?)?.control)
    }
}

impl Member {
    /// Stores the outcome of a list. Writes only if it changes, because pages on all threads read
    /// it.
    fn note(&self, name: &PlatformName, listed: Result<(), Unreachable>) {
        if self.failed.load(Relaxed) != listed.is_err() {
            self.failed.store(listed.is_err(), Relaxed);
        }
        if let Err(error) = listed {
            tracing::warn!(platform = name.as_str(), %error, "its phones could not be listed");
        }
    }
}

/// Returns the name of the platform of a phone.
fn owner_of(id: &str) -> Option<&str> {
    Some(id.split_once('-')?.0)
}

/// Returns true if all ids of a platform come before `id`, or are equal to it.
fn is_before(name: &PlatformName, id: &DeviceId) -> bool {
    match id.as_str().strip_prefix(name.as_str()) {
        // `.` follows `-`.
        Some(rest) => rest >= ".",
        None => id.as_str() > name.as_str(),
    }
}

/// Returns the error for a phone whose platform is no longer configured.
fn not_configured(id: &DeviceId) -> Unreachable {
    Unreachable(format!("the platform of {id} is not configured").into())
}

/// Returns the answer for such a phone.
fn refuse<'a, T: Send + 'a, E: From<Unreachable> + Send + 'a>(id: &DeviceId) -> BoxFuture<'a, Result<T, E>> {
    Box::pin(ready(Err(not_configured(id).into())))
}

impl Upstream for Platforms {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        let mut left = limit;
        for (name, member) in self.0.iter().filter(|(name, _)| after.is_none_or(|id| !is_before(name, id))) {
            if left == 0 {
                break;
            }
            let page = member.control.page(after, left, &mut |phones| {
                left = left.saturating_sub(u16::try_from(phones.len()).unwrap_or(u16::MAX));
                see(phones);
            });
            member.note(name, page);
        }
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        for ids in ids.chunk_by(|a, b| owner_of(a) == owner_of(b)) {
            if let Some((name, member)) = owner_of(ids[0]).and_then(|name| self.0.get_key_value(name)) {
                member.note(name, member.control.read(ids, see));
            }
        }
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        self.owner(id).map_or(AtHand::Now(Ok(None)), |owner| owner.at_hand(id))
    }

    fn read_anew<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Found> {
        match self.owner(id) {
            Some(owner) => owner.read_anew(id),
            None => Box::pin(async { Ok(None) }),
        }
    }

    fn unread(&self) -> Vec<PlatformName> {
        let unread = |(name, Member { control, failed }): (&PlatformName, &Member)| match failed.load(Relaxed) {
            true => vec![name.clone()],
            false => control.unread(),
        };
        self.0.iter().flat_map(unread).collect()
    }

    fn retry_after(&self, id: &DeviceId) -> Option<Duration> {
        self.owner(id)?.retry_after(id)
    }

    fn inexpressible(&self, args: &SetProxyArgs) -> Option<Words> {
        self.owner(&args.device_id)?.inexpressible(args)
    }

    fn session<'a>(&'a self, id: &'a DeviceId, mode: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        self.owner(id).map_or_else(|| refuse(id), |owner| owner.session(id, mode))
    }
}

impl Control for Platforms {
    fn facts(&self, id: &DeviceId, command: &Command) -> Facts {
        let gone = || Facts { gone: Some("its platform is not configured any more"), ..Facts::default() };
        self.owner(id).map_or_else(gone, |owner| owner.facts(id, command))
    }

    fn send<'a>(&'a self, request: TaskId, command: &'a Command, leave: Leave) -> BoxFuture<'a, Sent> {
        let id = command.device();
        match self.owner(id) {
            Some(owner) => owner.send(request, command, leave),
            None => Box::pin(async { Sent::NotSent(not_configured(id).0) }),
        }
    }

    fn look_up<'a>(
        &'a self,
        id: &'a DeviceId,
        request: TaskId,
        operation: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>> {
        self.owner(id).map_or_else(|| refuse(id), |owner| owner.look_up(id, request, operation))
    }

    fn exits<'a>(
        &'a self,
        id: &'a DeviceId,
        proxy: Option<&'a SetProxyArgs>,
    ) -> BoxFuture<'a, Result<Exits, Unreachable>> {
        self.owner(id).map_or_else(|| refuse(id), |owner| owner.exits(id, proxy))
    }

    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Result<PhoneStart, Unreachable>> {
        self.owner(id).map_or_else(|| refuse(id), |owner| owner.boot_id(id))
    }

    fn note_restart<'a>(&'a self, id: &'a DeviceId, on: &'a str) -> BoxFuture<'a, Result<(), Unreachable>> {
        self.owner(id).map_or_else(|| refuse(id), |owner| owner.note_restart(id, on))
    }
}

#[cfg(test)]
mod tests;
