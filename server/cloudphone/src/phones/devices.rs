//! The phones that an application sees, individually and in pages, according to its grants.
//! list_devices, get_device and every precondition share these views. Start at [`Phones`].

use super::contract::numbers::PAGE_EXAMINES;
use super::contract::{CATALOGUE, Command, DeviceCapability, DeviceId, DeviceState};
use super::platforms::Platforms;
use super::port::{AtHand, DeviceReading, DeviceSnapshot, Found, Pace, PlatformName, See, Unreachable};
use super::proxy_hosts::ProxyHosts;
use super::reader::Readers;
use super::views::{View, Views};
use std::collections::btree_set::Range;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Clock;
use toolwarrant::contract::{PolicyDef, ToolDef, admits};
use toolwarrant::handler::{Caller, Flag, Granted, Grants, Resource, Run, Unresolved};
use toolwarrant::page::Passes;
use toolwarrant::tasks::WriteCommand;

const RESOURCE: &str = "device";

pub const EXAMINED_MAX: u16 = PAGE_EXAMINES as u16;
const _: () = assert!(EXAMINED_MAX as u32 == PAGE_EXAMINES);

/// A filter may refuse any number of phones.
const FILTERED_CHUNK: u16 = 250;

pub struct Phones {
    pub(super) platforms: Arc<Platforms>,
    pub(super) proxy_hosts: ProxyHosts,
    /// `None` if this server has no page for screens.
    pub(super) screens: Option<ScreenPasses>,
    /// For the page and for agents.
    pub(super) readers: Readers,
    pub(super) clock: Clock,
    views: Arc<Views>,
}

/// The passes for the page of screens.
pub struct ScreenPasses {
    pub passes: Passes,
    pub last: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<DeviceState>,
    pub capability: Option<DeviceCapability>,
}

#[derive(Debug)]
pub struct Page {
    pub count: usize,
    /// The last id that was examined; `None` if this page is the last.
    pub next: Option<DeviceId>,
    /// Platforms that may have more phones, each with its advice.
    pub unread: Vec<(PlatformName, Option<&'static str>)>,
}

struct Walk<'a> {
    filter: Filter,
    limit: usize,
    count: usize,
    left: u16,
    last: Option<DeviceId>,
    examined: Option<DeviceId>,
    behind: Option<DeviceId>,
    see: See<'a>,
}

impl Phones {
    #[must_use]
    pub fn new(platforms: Arc<Platforms>, proxy_hosts: ProxyHosts, clock: Clock) -> Self {
        let (readers, views) = (Readers::new(clock.clone()), Arc::new(Views::new(clock.clone())));
        Self { platforms, proxy_hosts, screens: None, readers, clock, views }
    }

    #[must_use]
    pub fn with_screens(self, screens: ScreenPasses) -> Self {
        Self { screens: Some(screens).filter(|screens| screens.passes.have_page()), ..self }
    }

    #[must_use]
    pub fn views(&self) -> Arc<Views> {
        Arc::clone(&self.views)
    }

    /// Returns a phone as it was at most [`MAX_AGE`](super::views::MAX_AGE) ago, and never older
    /// than a list has shown it. Ignores grants.
    pub async fn find(&self, id: &DeviceId) -> View {
        let Ok(platform) = self.platforms.of(id) else { return Err(Unresolved::NotFound) };
        let listed = match platform.at_hand(id) {
            AtHand::Now(found) => return view(found),
            AtHand::Then(seen, began) => Some((seen, began)),
            AtHand::Nothing => None,
        };
        let found = self.views.get(id, listed, || async { view(platform.read_anew(id).await) }).await;
        found.map_err(|unresolved| match unresolved {
            Unresolved::NotFound if platform.has_left(id) => Unresolved::Left,
            unresolved => unresolved,
        })
    }

    /// Shows at most `limit` phones after `after` in the order of their ids. Examines at most
    /// [`EXAMINED_MAX`].
    ///
    /// Without a filter, a page is full unless it is the last. One phone more than `limit` is read,
    /// to learn if a next page exists. Ids of grants without phones are examined and skipped, so a
    /// long run of them makes a page short.
    pub fn page(
        &self,
        grants: &Grants,
        after: Option<&DeviceId>,
        limit: u16,
        filter: Filter,
        see: See<'_>,
    ) -> Result<Page, Unreachable> {
        let (limit, left) = (limit.into(), EXAMINED_MAX);
        let mut walk = Walk { filter, limit, left, count: 0, last: None, examined: None, behind: None, see };
        let next = match grants.of(RESOURCE) {
            None => None,
            Some(granted) => self.walk(granted, after, &mut walk).inspect_err(log)?,
        };
        let count = walk.count;
        let mut unread = self.platforms.list_unread();
        unread.retain(|(name, _)| may_have(grants, name));
        Ok(Page { count, next, unread })
    }

    /// Returns the advice for platforms of which the grants may cover phones.
    pub(super) fn remedies(&self, grants: &Grants) -> impl Iterator<Item = &'static str> {
        let of_grants = self.platforms.iter().filter(|(name, _)| may_have(grants, name));
        of_grants.filter_map(|(_, platform)| platform.remedy())
    }

    fn walk(
        &self,
        granted: &Granted,
        after: Option<&DeviceId>,
        walk: &mut Walk<'_>,
    ) -> Result<Option<DeviceId>, Unreachable> {
        for run in granted.runs(after.map(DeviceId::as_str)) {
            let ended = match run {
                Run::Prefix(prefix) => self.walk_prefix(prefix, granted, after, walk)?,
                Run::Ids(ids) => self.walk_ids(ids, walk)?,
            };
            if !ended {
                return Ok(if walk.behind.is_some() { walk.last.take() } else { walk.examined.take() });
            }
        }
        Ok(None)
    }

    fn walk_prefix(
        &self,
        prefix: &str,
        granted: &Granted,
        after: Option<&DeviceId>,
        walk: &mut Walk<'_>,
    ) -> Result<bool, Unreachable> {
        let mut last = after.filter(|after| after.as_str() >= prefix).cloned();
        if last.is_none() && !prefix.is_empty() {
            // A page begins after an id, so the phone whose id is the prefix comes first.
            if granted.covers(prefix) {
                self.platforms.read(&[prefix], &mut |phones| walk.examine(phones))?;
            }
            last = DeviceId::new(prefix).ok();
        }
        while walk.left > 0 && walk.behind.is_none() {
            let count = walk.chunk().min(walk.left);
            let mut shown = 0;
            self.platforms.page(last.as_ref(), count, &mut |phones| {
                let begins = |phone: &&Arc<DeviceSnapshot>| phone.id.as_str().starts_with(prefix);
                let ours = if prefix.is_empty() { phones } else { &phones[..phones.partition_point(begins)] };
                shown += ours.len();
                match granted.exceptions() {
                    none if none.is_empty() => walk.examine(ours),
                    except => ours.split(|phone| except.contains(phone.id.as_str())).for_each(|run| walk.examine(run)),
                }
                if let Some(phone) = ours.last() {
                    walk.examined = Some(phone.id.clone());
                }
            })?;
            if shown < count.into() && walk.behind.is_none() {
                walk.left -= shown as u16;
                return Ok(true);
            }
            walk.left -= count;
            last.clone_from(&walk.examined);
        }
        Ok(false)
    }

    fn walk_ids(&self, granted: Range<'_, Box<str>>, walk: &mut Walk<'_>) -> Result<bool, Unreachable> {
        let mut later = granted.map(|id| &**id).filter(|id| admits::<DeviceId>(id));
        while walk.left > 0 {
            let count = walk.chunk().min(walk.left);
            let ids: Vec<_> = later.by_ref().take(count.into()).collect();
            self.platforms.read(&ids, &mut |phones| walk.examine(phones))?;
            if walk.behind.is_some() {
                break;
            }
            walk.examined = ids.last().and_then(|id| DeviceId::new(id).ok()).or(walk.examined.take());
            walk.left -= ids.len() as u16;
            if ids.len() < count.into() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Walk<'_> {
    fn chunk(&self) -> u16 {
        match self.filter == Filter::default() {
            true => u16::try_from(self.limit - self.count).unwrap_or(u16::MAX).saturating_add(1),
            false => FILTERED_CHUNK,
        }
    }

    fn examine(&mut self, phones: &[&Arc<DeviceSnapshot>]) {
        if self.behind.is_some() {
            return;
        }
        let (mut run, mut examined) = (0..0, phones.len());
        let admits_all = self.filter == Filter::default();
        for (n, phone) in phones.iter().enumerate() {
            if self.count == self.limit {
                self.behind = Some(phone.id.clone());
                examined = n;
                break;
            }
            if admits_all || self.filter.admits(phone) {
                if run.end < n {
                    (self.see)(&phones[run]);
                    run = n..n;
                }
                run.end = n + 1;
                self.count += 1;
            }
        }
        (self.see)(&phones[run]);
        if let Some(last) = phones[..examined].last() {
            self.last = Some(last.id.clone());
        }
    }
}

impl Resource<DeviceId> for Phones {
    type View = Arc<DeviceSnapshot>;
    type Capability = DeviceCapability;

    async fn resolve(&self, _: &Caller, id: &DeviceId) -> View {
        self.find(id).await
    }

    fn flag(view: &Arc<DeviceSnapshot>, capability: DeviceCapability) -> Flag {
        view.flag(capability).clone()
    }

    fn retry_after_seconds(&self, id: &DeviceId) -> Option<u64> {
        self.platforms.of(id).ok()?.retry_after(id).map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
    }

    fn policy(view: &Arc<DeviceSnapshot>, tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        let requires = tool.target.as_ref().and_then(|target| target.requires);
        let power = requires == Some(DeviceCapability::Power.as_str());
        let pace = if power { view.paces.power } else { view.paces.proxy };
        match pace {
            Some(Pace { settle_seconds, deadline_seconds }) => {
                PolicyDef { settle_seconds, deadline_seconds, ..declared }
            }
            None => declared,
        }
    }
}

/// Returns the policy of a write on this phone, as [`Resource::policy`] gives it to clients.
#[must_use]
pub fn policy_of(phone: &Arc<DeviceSnapshot>, command: &Command) -> Option<PolicyDef> {
    let case = match command {
        Command::SetPower(args) => args.action.as_str(),
        Command::SetProxy(_) | Command::ClearProxy(_) => "",
    };
    let tool = CATALOGUE.tool(command.tool())?;
    let (_, declared) = tool.task.as_ref()?.cases.iter().find(|(value, _)| *value == case)?;
    Some(declared.with_times_of(<Phones as Resource<DeviceId>>::policy(phone, tool, *declared)))
}

impl Filter {
    fn admits(self, phone: &DeviceReading) -> bool {
        let Self { state, capability } = self;
        state.is_none_or(|state| phone.state() == state) && capability.is_none_or(|capability| phone.offers(capability))
    }
}

fn may_have(grants: &Grants, platform: &PlatformName) -> bool {
    grants.of(RESOURCE).is_some_and(|granted| granted.meets(&format!("{platform}-")))
}

fn view(found: Found) -> View {
    match found {
        Ok(phone) => phone.ok_or(Unresolved::NotFound),
        Err(Unreachable(why)) => Err(Unresolved::Unavailable(why)),
    }
}

fn log(error: &Unreachable) {
    tracing::warn!(%error, "phones could not be read");
}

#[cfg(test)]
mod tests;
