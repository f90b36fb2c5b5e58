//! Counters of the engine since the process started.

use crate::machine::{Entry, Sent};
use crate::store::Advance;
use crate::task::TaskStatus;
use toolwarrant_core::counts::Count;

#[derive(Debug, Default)]
pub struct EngineCounts {
    pub accepted: Count,
    /// In the order of [`TaskStatus::ENDS`].
    ended: [Count; TaskStatus::ENDS.len()],
    /// In the order of [`SENT`].
    sent: [Count; SENT.len()],
    /// In the order of [`BOOKED`].
    booked: [Count; BOOKED.len()],
    /// Refunds on a target that had another one within a day.
    pub repeated_refunds: Count,
}

const SENT: [&str; 6] = ["not_sent", "refused", "ok", "error", "pending", "no_answer"];

const BOOKED: [Entry; 3] = [Entry::Charge, Entry::ReverseCharge, Entry::Refund];

impl EngineCounts {
    pub fn count_step(&self, step: &Advance) {
        let ended = TaskStatus::ENDS.iter().zip(&self.ended).filter(|(status, _)| step.task.status() == Some(**status));
        let booked = BOOKED.iter().zip(&self.booked).filter(|(entry, _)| step.entries.contains(entry));
        ended.map(|(_, count)| count).chain(booked.map(|(_, count)| count)).for_each(|count| count.add(1));
    }

    pub fn count_send(&self, sent: &Sent) {
        let [not_sent, refused, ok, error, pending, no_answer] = &self.sent;
        let count = match sent {
            Sent::NotSent(_) => not_sent,
            Sent::Refused(_) => refused,
            Sent::Ok => ok,
            Sent::Err(_) => error,
            Sent::Pending(_) => pending,
            Sent::NoAnswer(_) | Sent::Unsure(_) => no_answer,
        };
        count.add(1);
    }

    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TaskStatus::ENDS.iter().map(|status| status.as_str()).zip(self.ended.iter().map(Count::get))
    }

    pub fn sends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        SENT.into_iter().zip(self.sent.iter().map(Count::get))
    }

    pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        BOOKED.iter().filter_map(|entry| entry.kind()).zip(self.booked.iter().map(Count::get))
    }
}
