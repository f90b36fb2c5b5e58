//! Several platforms as one fleet: which platform a phone belongs to, and pages across all of them in the order of ids.
//!
//! An id is the name of its platform, `-`, and the platform's own id. Names have no `-`, so an id leads to one platform, and the ids of a
//! platform stand together. A platform that fails takes nothing from the others. Start at [`Platforms`].

use super::roster::PlatformName;
use super::{Control, Exits, Session, SessionError, Snapshot, Unreachable, Upstream};
use crate::phones::contract::{Command, DeviceId, SessionMode, SetProxyArgs};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use toolwarrant::{BoxFuture, Facts, Sent, TaskId, Timestamp, Words};

/// The platforms of a fleet. The ids of each begin with its name.
pub struct Platforms(BTreeMap<PlatformName, Member>);

struct Member {
    control: Arc<dyn Control>,
    /// Whether its last list failed.
    failed: AtomicBool,
}

impl Platforms {
    /// Makes one fleet of platforms.
    #[must_use]
    pub fn of(members: impl IntoIterator<Item = (PlatformName, Arc<dyn Control>)>) -> Self {
        let member = |(name, control)| (name, Member { control, failed: AtomicBool::new(false) });
        Self(members.into_iter().map(member).collect())
    }

    /// The platform of a phone, if it is configured.
    fn owner(&self, id: &DeviceId) -> Option<&dyn Control> {
        Some(&*self.0.get(owner_of(id)?)?.control)
    }
}

/// The name of the platform that a phone belongs to.
fn owner_of(id: &DeviceId) -> Option<&str> {
    Some(id.as_str().split_once('-')?.0)
}

/// Checks whether all ids of a platform come before `id`, or are it.
fn is_before(name: &PlatformName, id: &DeviceId) -> bool {
    match id.as_str().strip_prefix(name.as_str()) {
        // `.` follows `-`.
        Some(rest) => rest >= ".",
        None => id.as_str() > name.as_str(),
    }
}

/// The platform of a phone, if it is not configured any more.
fn gone(id: &DeviceId) -> Unreachable {
    Unreachable(format!("the platform of {id} is not configured").into())
}

impl Upstream for Platforms {
    fn page<'a>(
        &'a self,
        after: Option<&'a DeviceId>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Arc<Snapshot>>, Unreachable>> {
        Box::pin(async move {
            let mut phones = Vec::new();
            for (name, member) in self.0.iter().filter(|(name, _)| after.is_none_or(|id| !is_before(name, id))) {
                let left = limit - u16::try_from(phones.len()).unwrap_or(limit);
                if left == 0 {
                    break;
                }
                let page = member.control.page(after, left).await;
                member.failed.store(page.is_err(), Relaxed);
                match page {
                    Ok(page) => phones.extend(page),
                    Err(error) => tracing::warn!(platform = name.as_str(), %error, "its phones could not be listed"),
                }
            }
            Ok(phones)
        })
    }

    fn read<'a>(&'a self, ids: &'a [DeviceId]) -> BoxFuture<'a, Result<Vec<Option<Arc<Snapshot>>>, Unreachable>> {
        Box::pin(async move {
            let mut phones = Vec::with_capacity(ids.len());
            for ids in ids.chunk_by(|a, b| owner_of(a) == owner_of(b)) {
                let member = owner_of(&ids[0]).and_then(|name| self.0.get(name));
                let read = match member {
                    Some(member) => {
                        let read = member.control.read(ids).await;
                        member.failed.store(read.is_err(), Relaxed);
                        read.unwrap_or_else(|error| {
                            tracing::warn!(%error, "phones could not be read");
                            vec![None; ids.len()]
                        })
                    }
                    None => vec![None; ids.len()],
                };
                phones.extend(read);
            }
            Ok(phones)
        })
    }

    fn read_anew<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Result<Option<Arc<Snapshot>>, Unreachable>> {
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

    fn inexpressible(&self, args: &SetProxyArgs) -> Option<Words> {
        self.owner(&args.device_id)?.inexpressible(args)
    }

    fn session<'a>(&'a self, id: &'a DeviceId, mode: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        match self.owner(id) {
            Some(owner) => owner.session(id, mode),
            None => Box::pin(async { Err(gone(id).into()) }),
        }
    }
}

impl Control for Platforms {
    fn facts(&self, id: &DeviceId, command: &Command) -> Facts {
        let gone = || Facts { gone: Some("its platform is not configured any more"), ..Facts::default() };
        self.owner(id).map_or_else(gone, |owner| owner.facts(id, command))
    }

    fn send<'a>(&'a self, request: TaskId, command: &'a Command, not_after: Timestamp) -> BoxFuture<'a, Sent> {
        let id = command.device();
        match self.owner(id) {
            Some(owner) => owner.send(request, command, not_after),
            None => Box::pin(async { Sent::NotSent(gone(id).0) }),
        }
    }

    fn look_up<'a>(
        &'a self,
        id: &'a DeviceId,
        request: TaskId,
        operation: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>> {
        match self.owner(id) {
            Some(owner) => owner.look_up(id, request, operation),
            None => Box::pin(async { Err(gone(id)) }),
        }
    }

    fn exits<'a>(
        &'a self,
        id: &'a DeviceId,
        proxy: Option<&'a SetProxyArgs>,
    ) -> BoxFuture<'a, Result<Exits, Unreachable>> {
        match self.owner(id) {
            Some(owner) => owner.exits(id, proxy),
            None => Box::pin(async { Err(gone(id)) }),
        }
    }

    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Result<String, Unreachable>> {
        match self.owner(id) {
            Some(owner) => owner.boot_id(id),
            None => Box::pin(async { Err(gone(id)) }),
        }
    }
}

impl fmt::Debug for Platforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
