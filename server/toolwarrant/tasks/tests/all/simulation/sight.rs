//! The facts of one wheel: how its upstream handles lost answers, its speed, and what readings of
//! it can prove at which time. In a direction that readings do not prove, they can be wrong.

use super::START;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_tasks::machine::{Facts, Provability};
use toolwarrant_tasks::task::Verdict;

const DARK: &str = "it has no window";

#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) dedupes: bool,
    pub(super) looks_up: bool,
    pub(super) slow: bool,
    /// In percent.
    pub(super) lost_operations: u64,
    shows: Provability,
    /// The time of the first question about `shows`. The answer is known `known_after` later.
    asked_at: Option<Timestamp>,
    known_after: Duration,
    /// The answer before that time.
    said_before: Provability,
    /// From then on, the wheel cannot be read.
    dark_at: Option<Timestamp>,
    /// From then on, there is no upstream.
    gone_at: Option<Timestamp>,
}

impl Sight {
    pub(super) fn clear(dedupes: bool, looks_up: bool) -> Self {
        let (shows, said_before, asked_at, known_after) = (Provability::Both, Provability::Both, None, Duration::ZERO);
        let (slow, lost_operations, dark_at, gone_at) = (false, 0, None, None);
        Self { dedupes, looks_up, slow, lost_operations, shows, asked_at, known_after, said_before, dark_at, gone_at }
    }

    pub(super) fn new(random: &mut SplitMix) -> Self {
        let (both, presence, absence, nothing) =
            (Provability::Both, Provability::Presence, Provability::Absence, Provability::Nothing(DARK));
        // The true directions, and the claims that are allowed before they are known: never more
        // than the truth.
        let (shows, less) = [
            (both, [both, presence, absence, nothing]),
            (both, [presence, absence, nothing, nothing]),
            (presence, [presence, presence, nothing, nothing]),
            (absence, [absence, absence, nothing, nothing]),
            (nothing, [nothing; 4]),
        ][random.below(5) as usize];
        let known_after = [0, 0, 5_000, 60_000][random.below(4) as usize];
        let known_after = Duration::from_millis(random.below(known_after + 1));
        let mut sometime = || START.plus(Duration::from_millis(random.below(90_000)));
        let moments = [sometime(), sometime()];
        let mut rarely = |at| (random.below(5) == 0).then_some(at);
        let (dark_at, gone_at) = (rarely(moments[0]), rarely(moments[1]));
        Self {
            dedupes: random.below(100) < 30,
            looks_up: random.below(100) < 30,
            slow: random.below(3) == 0,
            lost_operations: [0, 90][random.below(2) as usize],
            shows,
            asked_at: None,
            known_after,
            said_before: less[random.below(4) as usize],
            dark_at,
            gone_at,
        }
    }

    pub(super) fn with_first_ask(self, asked_at: Option<Timestamp>) -> Self {
        Self { asked_at, ..self }
    }

    pub(super) fn settle(&self) -> Duration {
        Duration::from_secs(if self.slow { 60 } else { 6 })
    }

    pub(super) fn works_for(&self) -> Duration {
        Duration::from_secs(if self.slow { 120 } else { 20 })
    }

    pub(super) fn reads_for(&self) -> Duration {
        Duration::from_millis(if self.slow { 25_000 } else { 1_500 })
    }

    pub(super) fn pace(&self, policy: PolicyDef) -> PolicyDef {
        let deadline_seconds = if self.slow { 240 } else { 40 };
        PolicyDef { settle_seconds: self.settle().as_secs() as u32, deadline_seconds, ..policy }
    }

    pub(super) fn facts(&self, now: Timestamp) -> Facts {
        let Self { dedupes, looks_up, .. } = *self;
        Facts {
            dedupes,
            looks_up,
            provability: self.provability(now),
            gone: self.is_gone(now).then_some("its mill was removed"),
        }
    }

    pub(super) fn provability(&self, now: Timestamp) -> Provability {
        match self {
            _ if self.is_dark(now) => Provability::Nothing("its window was bricked up"),
            _ if self.asked_at.is_some_and(|at| now >= at.plus(self.known_after)) => self.shows,
            _ => self.said_before,
        }
    }

    pub(super) fn throughout(&self, from: Timestamp, to: Timestamp) -> Option<Provability> {
        let changes = self.is_dark(to) || self.is_gone(to) || self.provability(from) != self.provability(to);
        (!changes).then(|| self.provability(to))
    }

    pub(super) fn is_blind(&self) -> bool {
        matches!(self.shows, Provability::Nothing(_))
    }

    pub(super) fn gone_at(&self) -> Option<Timestamp> {
        self.gone_at
    }

    pub(super) fn is_gone(&self, now: Timestamp) -> bool {
        self.gone_at.is_some_and(|at| now >= at)
    }

    pub(super) fn is_dark(&self, now: Timestamp) -> bool {
        self.dark_at.is_some_and(|at| now >= at)
    }

    pub(super) fn verdict(&self, present: bool, lies: impl FnOnce() -> bool) -> Verdict {
        let truth = if present { Verdict::Present } else { Verdict::Absent };
        let lie = if present { Verdict::Absent } else { Verdict::Present };
        match (self.shows, present) {
            (Provability::Both, _) | (Provability::Presence, false) | (Provability::Absence, true) => truth,
            (Provability::Presence, true) | (Provability::Absence, false) | (Provability::Nothing(_), _) => {
                if lies() {
                    lie
                } else {
                    truth
                }
            }
        }
    }
}
