//! What the engine counts: tasks, sends and entries in the ledger since the process began.

use crate::machine::{Entry, Sent};
use crate::store::Advance;
use crate::task::Status;
use toolwarrant_core::counts::Count;

/// What an engine has done since it started.
#[derive(Debug, Default)]
pub struct Driven {
    /// Tasks that were taken on.
    pub accepted: Count,
    /// In the order of [`Status::ALL`].
    ended: [Count; Status::ALL.len()],
    /// In the order of [`SENT`].
    sent: [Count; SENT.len()],
    /// In the order of [`BOOKED`].
    booked: [Count; BOOKED.len()],
}

/// What a send can come to.
const SENT: [&str; 5] = ["not_sent", "ok", "error", "pending", "no_answer"];

/// What can be entered in the ledger.
const BOOKED: [Entry; 3] = [Entry::Charge, Entry::ReverseCharge, Entry::Refund];

impl Driven {
    /// Counts a step that was written down.
    pub fn stepped(&self, step: &Advance) {
        let ended = Status::ALL.iter().zip(&self.ended).filter(|(status, _)| step.task.status() == Some(**status));
        let booked = BOOKED.iter().zip(&self.booked).filter(|(entry, _)| step.entries.contains(entry));
        ended.map(|(_, count)| count).chain(booked.map(|(_, count)| count)).for_each(|count| count.add(1));
    }

    /// Counts a send by what it came to.
    pub fn sent(&self, sent: &Sent) {
        let [not_sent, ok, error, pending, no_answer] = &self.sent;
        let count = match sent {
            Sent::NotSent(_) => not_sent,
            Sent::Ok => ok,
            Sent::Err(_) => error,
            Sent::Pending(_) => pending,
            Sent::NoAnswer(_) => no_answer,
        };
        count.add(1);
    }

    /// Tasks that ended, by their status.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Status::ALL.iter().map(|status| status.as_str()).zip(self.ended.iter().map(Count::get))
    }

    /// Sends, by what they came to.
    pub fn sends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        SENT.into_iter().zip(self.sent.iter().map(Count::get))
    }

    /// Entries in the ledger, by their kind.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        BOOKED.iter().filter_map(|entry| entry.kind()).zip(self.booked.iter().map(Count::get))
    }
}
