//! The part of a budget that this replica holds, if several share it.
//!
//! Requests are admitted out of the allowance while it suffices. Otherwise they wait, and a worker
//! exchanges the log with the store: it reads the log ([`Share::propose`]), puts it with a larger
//! allowance, and gives the result to the requests that wait ([`Share::confirm`]). It often is not
//! known whether a put has landed. So before a put this replica keeps within what the log counts
//! without it and with it, and a later put overwrites the whole record of this replica.
//!
//! This module knows no store. Start at [`Share::spend`].

use super::charge::{HeadCharge, RetryAfter, Shortage};
use super::shared_log::{Allowance, COUNTED, LONG, Record, SHORT, SharedLog, WANTED};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use toolwarrant_base::clock::Timestamp;

/// Time before the end of an allowance when it is no longer used: longer than a thread waits
/// between reading the clock and admitting a request.
const GUARD: Duration = Duration::from_millis(100);

/// Time after a refusal or a failure until requests cause the next exchange. So an application
/// beyond its budget costs a few reads a second.
const PACE: Duration = Duration::from_millis(250);

/// Time after a failed exchange until the rest of an allowance is given back.
const PAUSE: Duration = Duration::from_secs(1);

/// The state of one budget on this replica.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// The requests that this replica has admitted, and the allowance that it uses.
    own: Record,
    /// The records of the others.
    others: SharedLog,
    waiting: Vec<Waiter>,
    /// The time of the last refusal or failure.
    refused_at: Timestamp,
    proposal: Option<Proposal>,
    /// The allowance is renewed if less than this is left, or at this time.
    renew_below: u32,
    renew_at: Timestamp,
    is_renewal_due: bool,
    /// The time of the next exchange, if the store may count more for this replica than it has
    /// admitted.
    settle_at: Option<Timestamp>,
    worker: Option<AbortHandle>,
    wake: Arc<Notify>,
}

/// The answer to requests that wait; closed if there is none.
pub(crate) type Answer = oneshot::Receiver<Result<HeadCharge, RetryAfter>>;

/// Requests that wait for an allowance, all or none.
#[derive(Debug)]
struct Waiter {
    requests: u32,
    answer: oneshot::Sender<Result<HeadCharge, RetryAfter>>,
}

/// An allowance on its way to the store.
#[derive(Debug)]
struct Proposal {
    allowance: Allowance,
    /// The requests that were left when it was made.
    left: u32,
    /// The number of waiters that it was made for.
    waiters: usize,
}

/// The next act of the worker of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerStep {
    /// Exchange the log with the store.
    Exchange,
    /// Wait until this moment, or until it is woken.
    Wait(Timestamp),
    /// End.
    End,
}

impl Share {
    /// Admits `n` requests out of the allowance, or none. Wakes the worker if it is half spent.
    pub(super) fn spend(&mut self, now: Timestamp, n: u32) -> Result<HeadCharge, Shortage> {
        // A proposal for requests that wait may include the rest of the allowance.
        let is_promised = self.proposal.as_ref().is_some_and(|proposal| proposal.waiters > 0);
        if is_promised || !self.is_enough(n, now) {
            return Err(Shortage::Unknown);
        }
        let charge = self.admit(n, now);
        if self.own.left < self.renew_below || now >= self.renew_at {
            // Once more if nothing is left, so that the allowance does not count until its end.
            (self.renew_below, self.renew_at) = (u32::from(self.own.left > 0), self.own.until);
            self.is_renewal_due = true;
            self.wake.notify_one();
        }
        Ok(charge)
    }

    /// Takes back a request. It is free again with the next exchange.
    pub(super) fn give_back(&mut self, HeadCharge(tick): HeadCharge) {
        self.own.give_back(tick, 1);
    }

    /// Lets requests wait for an allowance. Starts a worker if none runs.
    pub(crate) fn wait(&mut self, requests: u32, start: impl FnOnce() -> AbortHandle) -> Answer {
        let (answer, receiver) = oneshot::channel();
        self.waiting.push(Waiter { requests, answer });
        self.wake.notify_one();
        if self.worker.as_ref().is_none_or(AbortHandle::is_finished) {
            self.worker = Some(start());
        }
        receiver
    }

    /// Returns the signal that wakes the worker.
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Returns what the worker does next. If the replica is `closing`, the allowance is given back.
    pub(crate) fn next_step(&mut self, now: Timestamp, closing: bool) -> WorkerStep {
        if closing {
            self.waiting.clear();
            self.is_renewal_due = false;
            self.own.until = self.own.until.min(now);
            self.settle_at = self.settle_at.map(|_| now);
        }
        self.waiting.retain(|waiter| !waiter.answer.is_closed());
        let paced = self.refused_at.plus(PACE);
        match self.settle_at {
            _ if self.is_renewal_due || !self.waiting.is_empty() && now >= paced => WorkerStep::Exchange,
            _ if !self.waiting.is_empty() => WorkerStep::Wait(paced),
            // An allowance that could not be given back is over by itself.
            Some(at) if now < self.own.until.plus(LONG + COUNTED) => {
                if now < at {
                    WorkerStep::Wait(at)
                } else {
                    WorkerStep::Exchange
                }
            }
            _ => {
                (self.settle_at, self.worker) = (None, None);
                WorkerStep::End
            }
        }
    }

    /// Decides about the requests that wait, with the log as it is in the store. Returns the log to
    /// put if anything changes; otherwise the requests have their answers.
    pub(crate) fn propose(&mut self, holder: u64, log: SharedLog, limit: u32, now: Timestamp) -> Option<Vec<u8>> {
        (self.own.holder, self.others) = (holder, log.without(holder));
        self.proposal = None;
        let is_renewal = std::mem::take(&mut self.is_renewal_due);
        if now >= self.own.until {
            self.own.left = 0;
        }
        let asked: Vec<_> = self.waiting.iter().map(|waiter| waiter.requests).collect();
        let granted = match asked.is_empty() && !is_renewal {
            true => None,
            false => self.others.grant(&self.own, limit, &asked, now),
        };
        let is_refusal = granted.is_none() && !asked.is_empty();
        let is_short = self.others.is_short(&self.own, limit, now);
        let is_news = is_refusal && is_short && now >= self.own.wants.plus(WANTED / 2);
        if is_refusal {
            self.refused_at = now;
        }
        if is_news {
            self.own.wants = now;
        } else if !is_short {
            self.own.wants = Timestamp::default();
        }
        let gives_back = asked.is_empty() && self.own.left == 0 && self.settle_at.is_some();
        if granted.is_none() && !is_news && !gives_back {
            self.answer(limit, now, asked.len());
            self.settle_at = self.settle_at.map(|at| at.max(self.own.until));
            return None;
        }
        let left = self.own.left;
        let unchanged = Allowance { requests: left, until: if left > 0 { self.own.until } else { now } };
        let allowance = granted.unwrap_or(unchanged);
        self.own.until = self.own.until.min(allowance.until);
        self.proposal = Some(Proposal { allowance, left, waiters: asked.len() });
        Some(self.others.encode(&self.own, allowance, now))
    }

    /// Uses the allowance of the proposal, which is in the store.
    pub(crate) fn confirm(&mut self, limit: u32, now: Timestamp) {
        let Some(Proposal { allowance, left, waiters }) = self.proposal.take() else { return };
        let Allowance { requests, until } = allowance;
        let spent = left - self.own.left;
        (self.own.left, self.own.until) = (requests.saturating_sub(spent), until);
        self.answer(limit, now, waiters);
        let is_long = until > now.plus(SHORT);
        self.is_renewal_due = false;
        self.renew_below = if is_long { self.own.left.div_ceil(2) } else { 0 };
        self.renew_at = if is_long { until.minus(LONG / 2) } else { until };
        self.settle_at = match self.own.left {
            // A short allowance that is spent counts for hardly longer than its requests.
            0 => (requests > 0 && is_long).then_some(now),
            _ => Some(until),
        };
    }

    /// Gives up an exchange. It is not known what the store has now. Requests wait for the next one
    /// until their deadline.
    pub(crate) fn fail(&mut self, now: Timestamp) {
        let is_known = self.proposal.take().is_none() && self.settle_at.is_none();
        self.settle_at = (!is_known).then_some(now.plus(PAUSE));
        (self.refused_at, self.is_renewal_due) = (now, false);
    }

    /// Admits the requests that wait, as far as the allowance suffices, and refuses the first
    /// `waiters` of the others.
    fn answer(&mut self, limit: u32, now: Timestamp, waiters: usize) {
        let mut retry = (0, RetryAfter { seconds: 0 });
        for (at, Waiter { requests, answer }) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            if self.is_enough(requests, now) {
                let charge = self.admit(requests, now);
                if answer.send(Ok(charge)).is_err() {
                    self.own.give_back(charge.0, requests);
                    self.own.left += requests;
                }
            } else if at >= waiters {
                self.waiting.push(Waiter { requests, answer });
            } else if requests > self.own.left {
                if retry.0 != requests {
                    let free_at = self.others.free_at(&self.own, limit, requests, now);
                    retry = (requests, RetryAfter { seconds: free_at.seconds_from(now).max(1) });
                }
                // Nobody waits if this fails.
                let _ = answer.send(Err(retry.1));
            }
            // Otherwise the allowance has ended on its way, and there is no answer.
        }
    }

    fn is_enough(&self, n: u32, now: Timestamp) -> bool {
        n == 0 || n <= self.own.left && now.plus(GUARD) < self.own.until
    }

    fn admit(&mut self, n: u32, now: Timestamp) -> HeadCharge {
        self.own.left -= n;
        HeadCharge(self.own.add(now, n))
    }
}
