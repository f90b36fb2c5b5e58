//! The state of an open connection. The edge can give up a connection that waits for its client, to
//! make room for another. It never gives up one whose request is running.

use super::quota::Quota;
use super::throttle::AuthThrottle;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use tokio::sync::Notify;
use tokio::time::sleep;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::hangup::Hangup;
use toolwarrant_core::tasks::LongPoll;

/// The client must act: send a head or a body, or read an answer.
const WAITING: u8 = 0;
/// The server must act.
const BUSY: u8 = 1;
const GIVEN_UP: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadWait {
    /// A request is being read, carried out or answered.
    Over,
    /// The wait for its first byte has begun since the last check.
    IdleBegins,
    /// The wait for the rest of its head has begun since the last check.
    HeadBegins,
    Lasts,
}

/// The states from one head to the next: a request is being read or carried out.
const IN_REQUEST: u8 = 0;
const ANSWERED: u8 = 1;
/// All bytes written so far have left. A long answer may have more.
const FLUSHED: u8 = 2;
/// The whole answer has left, and nothing of the next head has come.
const IDLE_BEGINS: u8 = 3;
/// As before, but the last check has noted the time.
const IDLE_LASTS: u8 = 4;
const HEAD_BEGINS: u8 = 5;
/// As before, but the last check has noted the time.
const HEAD_LASTS: u8 = 6;

/// The resources that requests may hold at the same time.
#[derive(Debug)]
pub(super) struct Quotas {
    /// Bytes of bodies of verified callers.
    pub(super) bodies: Arc<Quota>,
    /// Bytes of bodies whose caller is not verified yet.
    pub(super) unverified: Arc<Quota>,
    /// Bytes of answers that have not left yet.
    pub(super) answers: Arc<Quota>,
    /// Delayed answers to wrong credentials.
    pub(super) delayed: Arc<Quota>,
    pub(super) proxied: Arc<Quota>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    /// The address of the client or proxy that opened it.
    pub(super) address: IpAddr,
    pub(super) quotas: Arc<Quotas>,
    /// Its position in the limiter's order.
    pub(super) place: AtomicU64,
    pub(super) hangup: Hangup,
    state: AtomicU8,
    /// Only its own task reads it.
    head: AtomicU8,
    /// A request was answered since the limiter last looked.
    used: AtomicBool,
    /// It ends after the answer to the request in flight.
    last: AtomicBool,
    /// The client may still be sending a body that was refused.
    refused_body: AtomicBool,
    given_up: Notify,
}

impl Connection {
    pub(super) fn new(address: IpAddr, quotas: Arc<Quotas>) -> Self {
        Self {
            address,
            quotas,
            place: AtomicU64::default(),
            hangup: Hangup::default(),
            state: AtomicU8::new(WAITING),
            head: AtomicU8::new(HEAD_BEGINS),
            used: AtomicBool::default(),
            last: AtomicBool::default(),
            refused_body: AtomicBool::default(),
            given_up: Notify::new(),
        }
    }

    pub(super) fn mark_head_received(&self) -> Result<(), GivenUp> {
        self.head.store(IN_REQUEST, Relaxed);
        self.mark_received()
    }

    /// Records that the client has sent its part. Fails if the connection was given up before.
    pub(crate) fn mark_received(&self) -> Result<(), GivenUp> {
        self.state.compare_exchange(WAITING, BUSY, AcqRel, Acquire).map(drop).map_err(|_| GivenUp)
    }

    pub(super) fn await_client(&self) {
        self.state.store(WAITING, Relaxed);
    }

    pub(super) fn answered(&self) -> bool {
        self.used.store(true, Relaxed);
        self.head.store(ANSWERED, Relaxed);
        self.await_client();
        self.last.load(Relaxed)
    }

    pub(super) fn mark_flushed(&self) {
        self.moves(ANSWERED, FLUSHED);
    }

    /// Records a read: hyper reads no head before the last answer has left.
    pub(super) fn reads(&self) {
        self.moves(FLUSHED, IDLE_BEGINS);
    }

    pub(super) fn has_read(&self) {
        self.moves(IDLE_BEGINS, HEAD_BEGINS);
        self.moves(IDLE_LASTS, HEAD_BEGINS);
    }

    fn moves(&self, from: u8, to: u8) {
        if self.head.load(Relaxed) == from {
            self.head.store(to, Relaxed);
        }
    }

    pub(super) fn head_wait(&self) -> HeadWait {
        match self.head.load(Relaxed) {
            IDLE_BEGINS => {
                self.head.store(IDLE_LASTS, Relaxed);
                HeadWait::IdleBegins
            }
            HEAD_BEGINS => {
                self.head.store(HEAD_LASTS, Relaxed);
                HeadWait::HeadBegins
            }
            IDLE_LASTS | HEAD_LASTS => HeadWait::Lasts,
            _ => HeadWait::Over,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state.load(Relaxed) == WAITING
    }

    pub(super) fn was_used(&self) -> bool {
        self.used.swap(false, Relaxed)
    }

    /// Returns true if it waited for its client.
    pub(super) fn give_up(&self) -> bool {
        let waited = self.state.compare_exchange(WAITING, GIVEN_UP, AcqRel, Acquire).is_ok();
        if waited {
            self.given_up.notify_one();
        }
        waited
    }

    /// Ends the connection after the answer.
    pub(super) fn refuse_body(&self) {
        self.refused_body.store(true, Relaxed);
        self.last.store(true, Relaxed);
    }

    pub(super) fn has_refused_body(&self) -> bool {
        self.refused_body.load(Relaxed)
    }

    pub(crate) async fn wait_until_closed(&self) {
        self.given_up.notified().await;
    }
}

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the connection was given up to make room")]
pub(crate) struct GivenUp;

#[derive(Debug, Clone)]
pub struct Peer {
    /// Also behind a trusted proxy.
    pub(super) address: IpAddr,
    /// True if this address has more requests in flight than its limit.
    pub(super) crowded: bool,
    pub(super) connection: Arc<Connection>,
}

impl Peer {
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    pub(crate) fn end_after_answer(&self) {
        self.connection.last.store(true, Relaxed);
    }
}

/// Counts a failed authentication, and returns once it may be answered. At the limit of delayed
/// answers, an answer is sent at once, and its connection ends.
pub(crate) async fn slow_down(throttle: &AuthThrottle, peer: Option<&Peer>, now: Timestamp) {
    let Some(Peer { address, connection, .. }) = peer else { return };
    let Some(delay) = throttle.record_failure(*address, now) else { return };
    match connection.quotas.delayed.take(*address, 1) {
        Some(_share) => sleep(delay).await,
        None => connection.last.store(true, Relaxed),
    }
}

pub(crate) fn patience(peer: Option<&Peer>) -> LongPoll<'_> {
    peer.map_or(LongPoll::Allowed, |peer| LongPoll::Until(&peer.connection.hangup))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::{ConnectionLimiter, Limits};
    use std::time::Duration;
    use tokio::task::JoinSet;
    use tokio::time::{Instant, advance};

    #[tokio::test(start_paused = true)]
    async fn few_answers_to_wrong_credentials_are_delayed_and_beyond_these_the_connection_ends() {
        let limiter = ConnectionLimiter::new(Limits { delayed: 12, delayed_per_address: 8, ..Limits::default() });
        let throttle = Arc::new(AuthThrottle::default());
        let fail = |address: [u8; 4]| {
            let permit = limiter.acquire(address.into()).expect("a permit");
            let (connection, throttle) = (Arc::clone(&permit.connection), Arc::clone(&throttle));
            let peer = Peer { address: address.into(), crowded: false, connection };
            async move {
                let begin = Instant::now();
                slow_down(&throttle, Some(&peer), Timestamp(0)).await;
                let ends = permit.connection.last.load(Relaxed);
                (begin.elapsed() >= Duration::from_secs(1), ends)
            }
        };
        let (one, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        for _ in 0..60 {
            assert_eq!((fail(one).await, fail(other).await), ((false, false), (false, false)));
        }
        let mut failing = JoinSet::new();
        for address in [one, other] {
            (0..10).for_each(|_| drop(failing.spawn(fail(address))));
        }
        let ended = failing.join_all().await;
        let [delayed, closed] =
            [(true, false), (false, true)].map(|end| ended.iter().filter(|own| **own == end).count());
        assert_eq!((delayed, closed), (8 + 4, 2 + 6));
        advance(Duration::from_secs(1)).await;
        assert_eq!(fail(one).await, (true, false), "what was delayed makes room");
    }
}
