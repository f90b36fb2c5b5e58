//! The part of an account's limits that this replica has, if several share the account.
//!
//! The replicas that may act divide the calls at a time and per second, in the order of their
//! epochs. A part becomes smaller at once, and larger after the longest lease and a second: until
//! then another replica may not have heard of the change, or its calls may still count. So the
//! calls of all replicas stay within the limits. Only a call that runs for longer than a lease can
//! overlap with the calls of a replica that came meanwhile.

use super::call::GuardLimits;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::sharing::{Cluster, Membership};

/// The parts of one account that this replica has had.
#[derive(Debug)]
pub(super) struct Parts {
    member: Arc<Membership>,
    platform: String,
    full: GuardLimits,
    /// `None` before the first beat.
    latest: Option<Rank>,
    /// Earlier ranks, each with the time until which it limits this replica.
    earlier: VecDeque<(Rank, Timestamp)>,
    /// True after the log was told that this replica has no part.
    has_warned: bool,
}

/// The place of this replica among those that may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rank {
    /// The number of replicas before it.
    before: u32,
    /// The number of all replicas; 0 if this replica may not call.
    all: u32,
}

/// The time for which a start counts.
const SECOND: Duration = Duration::from_secs(1);

impl Parts {
    pub(super) fn new(member: Arc<Membership>, platform: String, limits: GuardLimits) -> Self {
        let full = limits.at_least_one();
        Self { member, platform, full, latest: None, earlier: VecDeque::new(), has_warned: false }
    }

    /// Returns the limits of this replica at `now`. They are 0 while its lease does not stand.
    pub(super) fn limits(&mut self, now: Timestamp) -> GuardLimits {
        // In this order: the present replicas are known before the lease stands.
        let may_act = self.member.lease().stands();
        if may_act {
            self.learn(now);
            self.warn_if_lacking();
        }
        let ranks = || self.latest.iter().chain(self.earlier.iter().map(|(rank, _)| rank));
        let part = |limit| if may_act { ranks().map(|rank| rank.part(limit)).min().unwrap_or(0) } else { 0 };
        GuardLimits { concurrent: part(self.full.concurrent), per_second: part(self.full.per_second), ..self.full }
    }

    /// Returns the setting of which this replica has no part, because it is less than the number of
    /// replicas.
    pub(super) fn find_lacking(&self) -> Option<&'static str> {
        let rank = self.latest?;
        let lacks = |limit| rank.part(limit) == 0;
        match (lacks(self.full.concurrent), lacks(self.full.per_second)) {
            (true, _) => Some("concurrent"),
            (_, true) => Some("requests-per-second"),
            _ => None,
        }
    }

    fn learn(&mut self, now: Timestamp) {
        let rank = {
            let (present, own) = (self.member.present(), self.member.epoch());
            let present = present.borrow();
            let count = |before: bool| present.iter().filter(|epoch| !before || **epoch < own).count();
            Rank { before: u32::try_from(count(true)).unwrap_or(0), all: u32::try_from(count(false)).unwrap_or(0) }
        };
        self.earlier.retain(|(_, until)| now < *until);
        if self.latest == Some(rank) {
            return;
        }
        // A process that is not alone at its start waits until the others have heard of it.
        let earlier = self.latest.replace(rank).or((rank.all > 1).then_some(Rank { before: 0, all: 0 }));
        self.earlier.extend(earlier.map(|earlier| (earlier, now.plus(self.member.longest_lease() + SECOND))));
    }

    /// Warns once if this replica has no part. Until the earlier ranks are over, runs that have
    /// ended may count.
    fn warn_if_lacking(&mut self) {
        if let (Some(setting), false) = (self.find_lacking(), self.has_warned || !self.earlier.is_empty()) {
            self.has_warned = true;
            let (platform, replicas) = (&*self.platform, self.latest.map(|rank| rank.all));
            tracing::warn!(
                platform,
                setting,
                replicas,
                "this replica does not call a platform: its limit is less than the number of replicas"
            );
        }
    }
}

impl Rank {
    /// Returns the part of a limit. The parts of all ranks add up to it. A part is never larger if
    /// there are more replicas, or more before this one.
    fn part(self, limit: u32) -> u32 {
        match self.all {
            0 => 0,
            all => limit.saturating_sub(self.before).div_ceil(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_limit_and_never_grow_with_more_replicas() {
        for limit in 0..40 {
            for all in 1..9 {
                let part = |before, all| Rank { before, all }.part(limit);
                assert_eq!((0..all).map(|before| part(before, all)).sum::<u32>(), limit);
                for before in 0..all {
                    assert!(part(before, all + 1) <= part(before, all));
                    assert!(part(before + 1, all + 1) <= part(before, all));
                }
            }
        }
    }
}
