//! Limits the number of open connections, in total and by address.
//!
//! At the total limit, the limiter gives up a connection that waits for its client, so that idle
//! clients cannot keep others out. It takes the oldest of an address that has the average or
//! more. It spares connections that have answered a request since the last look, if it can.
//! Start at `ConnectionLimiter::admit`.

use super::connection::{Connection, Quotas};
use super::limits::Limits;
use super::proxies::TrustedProxies;
use super::quota::{Quota, Share};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use toolwarrant_base::ignore_poison;
use toolwarrant_core::counts::Count;

/// Connections that were given up and have not ended yet. They are beyond the total limit for a
/// moment.
const LEAVING_MAX: usize = 32;

/// Time in which those end, unless the machine is overloaded.
const LEAVING_TIME: Duration = Duration::from_millis(100);

/// Number of connections that it checks to make room for one.
const LOOKS: usize = 64;

pub struct ConnectionLimiter {
    pub(crate) limits: Limits,
    pub(super) proxies: TrustedProxies,
    quotas: Arc<Quotas>,
    by_address: Arc<Quota>,
    open: Mutex<OpenConnections>,
    left: Notify,
    /// Closed without an answer because a limit was reached.
    pub refused: Count,
}

#[derive(Default)]
struct OpenConnections {
    /// By position: the order in which they are checked to make room.
    places: BTreeMap<u64, Arc<Connection>>,
    next: u64,
    /// Given up, and not ended yet.
    leaving: usize,
}

/// Dropping it returns the right to the limiter.
pub(crate) struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    pub(crate) connection: Arc<Connection>,
    pub(super) by_proxy: bool,
    _share: Option<Share>,
}

impl ConnectionLimiter {
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Self::behind(TrustedProxies::default(), limits)
    }

    /// Connections that `proxies` open do not count for an address.
    #[must_use]
    pub fn behind(proxies: TrustedProxies, limits: Limits) -> Arc<Self> {
        let each = limits.connections_per_address;
        let quotas = Quotas {
            bodies: Quota::new(limits.bodies_bytes, limits.bodies_bytes_per_address),
            unverified: Quota::fair(limits.unverified_bytes, limits.unverified_bytes_per_address),
            answers: Quota::fair(limits.answers_bytes, limits.answers_bytes_per_address),
            delayed: Quota::new(limits.delayed, limits.delayed_per_address),
            proxied: Quota::new(usize::MAX, each),
        };
        let by_address = Quota::new(usize::MAX, each);
        let (quotas, open) = (Arc::new(quotas), Mutex::default());
        Arc::new(Self { limits, proxies, quotas, by_address, open, left: Notify::new(), refused: Count::default() })
    }

    pub fn connections(&self) -> usize {
        let open = self.open();
        open.places.len() + open.leaving
    }

    #[cfg(test)]
    pub(super) fn body_bytes(&self) -> usize {
        self.quotas.bodies.total() + self.quotas.unverified.total()
    }

    /// Waits a moment for connections that were given up.
    pub(crate) async fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        if self.open().leaving >= LEAVING_MAX {
            let left = async {
                while self.open().leaving >= LEAVING_MAX {
                    self.left.notified().await;
                }
            };
            let _ = timeout(LEAVING_TIME, left).await;
        }
        self.acquire(address)
    }

    pub(super) fn acquire(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let by_proxy = self.proxies.contains(address);
        let share = if by_proxy { None } else { self.by_address.take(address, 1) };
        if share.is_none() && !by_proxy {
            self.refused.add(1);
            return None;
        }
        let mut open = self.open();
        if open.places.len() >= self.limits.connections {
            self.refused.add(1);
            if !open.make_room(&self.by_address) {
                return None;
            }
        }
        let connection = Arc::new(Connection::new(address, Arc::clone(&self.quotas)));
        open.seat(Arc::clone(&connection));
        Some(ConnectionPermit { limiter: Arc::clone(self), connection, by_proxy, _share: share })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        ignore_poison(self.open.lock())
    }
}

impl OpenConnections {
    fn seat(&mut self, connection: Arc<Connection>) {
        connection.place.store(self.next, Relaxed);
        self.places.insert(self.next, connection);
        self.next += 1;
    }

    /// Returns true if a connection waited for its client.
    fn make_room(&mut self, by_address: &Quota) -> bool {
        if self.leaving >= LEAVING_MAX {
            return false;
        }
        let (mut unused, mut used) = (None, None);
        for _ in 0..LOOKS.min(self.places.len()) {
            let Some((_, connection)) = self.places.pop_first() else { break };
            let was_used = connection.was_used();
            if !was_used && by_address.has_average(connection.address) && connection.give_up() {
                self.leaving += 1;
                return true;
            }
            if connection.is_waiting() {
                let oldest = if was_used { &mut used } else { &mut unused };
                oldest.get_or_insert_with(|| Arc::clone(&connection));
            }
            self.seat(connection);
        }
        let Some(connection) = unused.or(used).filter(|oldest| oldest.give_up()) else { return false };
        self.places.remove(&connection.place.load(Relaxed));
        self.leaving += 1;
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.open();
        if open.places.remove(&self.connection.place.load(Relaxed)).is_none() {
            open.leaving -= 1;
            self.limiter.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn limiter(connections: usize) -> Arc<ConnectionLimiter> {
        ConnectionLimiter::new(Limits { connections, ..Limits::default() })
    }

    #[test]
    fn at_the_cap_the_oldest_connection_that_waits_for_its_client_is_given_up() {
        let limiter = limiter(3);
        let [busy, used, waits] = [(); 3].map(|()| limiter.acquire(ONE).expect("a permit"));
        busy.connection.mark_received().expect("open");
        used.connection.mark_received().expect("open");
        used.connection.answered();
        let next = limiter.acquire(ONE).expect("a permit");
        assert!(waits.connection.mark_received().is_err(), "it was given up");
        assert_eq!((limiter.connections(), limiter.refused.get()), (4, 1));
        drop(waits);
        assert_eq!(limiter.connections(), 3);

        next.connection.mark_received().expect("open");
        let _last = limiter.acquire(ONE).expect("a permit");
        assert!(used.connection.mark_received().is_err(), "it was given up");
    }

    #[test]
    fn at_the_cap_a_client_with_many_connections_loses_one_first() {
        let limiter = limiter(4);
        let other = [192, 0, 2, 2].into();
        let few = limiter.acquire(other).expect("a permit");
        let many: Vec<_> = (0..20).map(|_| limiter.acquire(ONE).expect("a permit")).collect();
        few.connection.mark_received().expect("it is still there");
        assert_eq!(many.iter().filter(|permit| permit.connection.mark_received().is_ok()).count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_a_moment_for_those_that_were_given_up() {
        let limiter = limiter(LEAVING_MAX);
        let mut permits: Vec<_> = (0..2 * LEAVING_MAX).map(|_| limiter.acquire(ONE).expect("a permit")).collect();
        assert!(limiter.acquire(ONE).is_none() && limiter.admit(ONE).await.is_none());
        let leave = async { drop(permits.remove(0)) };
        assert!(tokio::join!(limiter.admit(ONE), leave).0.is_some());
    }

    #[test]
    fn connections_whose_requests_are_carried_out_are_never_given_up() {
        let limiter = limiter(2);
        let busy = [(); 2].map(|()| limiter.acquire(ONE).expect("a permit"));
        busy.iter().for_each(|permit| permit.connection.mark_received().expect("open"));
        assert!(limiter.acquire(ONE).is_none());
        busy[1].connection.await_client();
        assert!(limiter.acquire(ONE).is_some());
    }

    #[test]
    fn few_connections_are_open_beyond_the_cap_for_a_moment() {
        let limiter = limiter(100);
        let permits: Vec<_> = (0..250).filter_map(|_| limiter.acquire(ONE)).collect();
        assert_eq!((permits.len(), limiter.connections()), (100 + LEAVING_MAX, 100 + LEAVING_MAX));
        drop(permits);
        assert_eq!(limiter.connections(), 0);
    }
}
