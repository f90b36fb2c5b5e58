//! The order of calls, and the platform's limits and pauses.
//!
//! The windows slide and are exact. The network can still deliver calls closer together. The
//! platform then refuses some and asks for a pause.

use super::call::{Class, GuardLimits};
use std::collections::VecDeque;
use std::time::Duration;
use toolwarrant::Timestamp;

#[derive(Debug)]
pub(super) struct Line {
    limits: GuardLimits,
    next: u64,
    urgent: VecDeque<u64>,
    background: VecDeque<u64>,
    /// Urgent starts in a row while the background waited.
    passed_over: u32,
    pub(super) running: u32,
    running_background: u32,
    starts: VecDeque<Timestamp>,
    paused_until: Timestamp,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn<T> {
    Now(T),
    At(Timestamp),
    AfterOthers,
}

/// One start in this many goes to the background, because urgent calls need a current list, too.
pub(super) const SHARE: u32 = 8;

const WAITING_MAX: usize = 256;

const PAUSE: Duration = Duration::from_secs(5);

pub(super) const PAUSE_MAX: Duration = Duration::from_mins(5);

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

impl Line {
    pub(super) fn new(limits: GuardLimits) -> Self {
        Self {
            limits: limits.at_least_one(),
            next: 0,
            urgent: VecDeque::new(),
            background: VecDeque::new(),
            passed_over: 0,
            running: 0,
            running_background: 0,
            starts: VecDeque::new(),
            paused_until: Timestamp(0),
        }
    }

    pub(super) fn join(&mut self, class: Class) -> Option<u64> {
        let number = self.next;
        let queue = self.queue(class);
        if queue.len() >= WAITING_MAX {
            return None;
        }
        queue.push_back(number);
        self.next += 1;
        Some(number)
    }

    pub(super) fn leave(&mut self, number: u64, class: Class) {
        self.queue(class).retain(|other| *other != number);
    }

    pub(super) fn turn(&self, number: u64, class: Class, now: Timestamp) -> Turn<()> {
        let Self { limits, urgent, background, passed_over, running, paused_until, .. } = self;
        let is_background = class == Class::Background;
        let background_first = !background.is_empty() && *passed_over >= SHARE - 1 && self.has_room_for_background();
        let is_next = match (is_background, urgent.front()) {
            (true, Some(_)) => background_first && background.front() == Some(&number),
            (true, None) => background.front() == Some(&number),
            (false, first) => !background_first && first == Some(&number),
        };
        let has_room = *running < limits.concurrent && (!is_background || self.has_room_for_background());
        if !is_next || !has_room {
            return Turn::AfterOthers;
        }
        let second = self.free_at(limits.per_second, SECOND);
        let minute = self.free_at(limits.per_minute, MINUTE);
        let free = second.max(minute).max(*paused_until);
        if free > now { Turn::At(free) } else { Turn::Now(()) }
    }

    /// Counts a start. The call keeps its place until [`Self::leave`].
    pub(super) fn start(&mut self, class: Class, now: Timestamp) {
        self.running += 1;
        if class == Class::Background {
            self.running_background += 1;
            self.passed_over = 0;
        } else if !self.background.is_empty() {
            self.passed_over += 1;
        }
        while self.starts.front().is_some_and(|start| start.plus(MINUTE) <= now) {
            self.starts.pop_front();
        }
        self.starts.push_back(now);
    }

    pub(super) fn end(&mut self, class: Class) {
        self.running -= 1;
        if class == Class::Background {
            self.running_background -= 1;
        }
    }

    pub(super) fn pause(&mut self, pause: Option<Duration>, now: Timestamp) {
        let pause = pause.unwrap_or(PAUSE).clamp(SECOND, PAUSE_MAX);
        self.paused_until = self.paused_until.max(now.plus(pause));
    }

    pub(super) fn pause_end(&self) -> Option<Timestamp> {
        Some(self.paused_until).filter(|until| until.0 > 0)
    }

    pub(super) fn queue_length(&self) -> usize {
        self.urgent.len() + self.background.len()
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.urgent.len() >= WAITING_MAX
    }

    fn has_room_for_background(&self) -> bool {
        self.running_background < (self.limits.concurrent / 2).max(1)
    }

    fn free_at(&self, most: u32, span: Duration) -> Timestamp {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let oldest = self.starts.len().checked_sub(most).and_then(|at| self.starts.get(at));
        oldest.map_or(Timestamp(0), |start| start.plus(span))
    }

    fn queue(&mut self, class: Class) -> &mut VecDeque<u64> {
        match class {
            Class::Background => &mut self.background,
            Class::Write | Class::Read => &mut self.urgent,
        }
    }
}
