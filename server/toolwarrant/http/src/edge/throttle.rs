//! Delays failed authentications by address, so that guessing takes long and no client is locked
//! out. Bounds the log of what anyone can cause.

use super::quota::network_of;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

/// By one address per minute. A client with a wrong key makes a few failures at each start.
const UNDELAYED: u32 = 60;
const DELAY: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const CAPACITY: usize = 16_384;

#[derive(Debug, Default)]
pub(crate) struct AuthThrottle(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug)]
struct Failures {
    since: Timestamp,
    count: u32,
}

impl AuthThrottle {
    pub(crate) fn record_failure(&self, address: IpAddr, now: Timestamp) -> Option<Duration> {
        let address = network_of(address);
        let mut all = ignore_poison(self.0.lock());
        if all.len() >= CAPACITY && !all.contains_key(&address) {
            all.retain(|_, failures| now < failures.since.plus(MINUTE));
            if all.len() >= CAPACITY {
                all.clear();
            }
        }
        let failures = all.entry(address).or_insert(Failures { since: now, count: 0 });
        if now >= failures.since.plus(MINUTE) {
            *failures = Failures { since: now, count: 0 };
        }
        failures.count = failures.count.saturating_add(1);
        (failures.count > UNDELAYED).then_some(DELAY)
    }
}

/// The time of the last line in the log, which clones share.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogThrottle(Arc<Mutex<Option<Instant>>>);

impl LogThrottle {
    /// Returns true once in a minute.
    pub(crate) fn is_due(&self) -> bool {
        let (mut last, now) = (ignore_poison(self.0.lock()), Instant::now());
        let is_due = last.is_none_or(|last| now.duration_since(last) >= MINUTE);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_in_a_minute_is_for_the_log() {
        let throttle = LogThrottle::default();
        let copy = throttle.clone();
        assert_eq!([throttle.is_due(), copy.is_due()], [true, false]);
        tokio::time::advance(MINUTE - Duration::from_millis(1)).await;
        assert!(!throttle.is_due());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!([copy.is_due(), throttle.is_due()], [true, false]);
    }

    #[test]
    fn the_failures_of_one_address_are_delayed_after_the_first_sixty_in_a_minute() {
        let (throttle, start) = (AuthThrottle::default(), Timestamp(1_000));
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let one = address("192.0.2.1");
        for _ in 0..UNDELAYED {
            assert_eq!(throttle.record_failure(one, start), None);
        }
        assert_eq!(throttle.record_failure(one, start), Some(DELAY));
        assert_eq!(throttle.record_failure(address("::ffff:192.0.2.1"), start), Some(DELAY));
        assert_eq!(throttle.record_failure(address("192.0.2.2"), start), None);
        assert_eq!(throttle.record_failure(one, start.plus(MINUTE)), None);
    }

    #[test]
    fn the_number_of_addresses_in_memory_is_bounded() {
        let throttle = AuthThrottle::default();
        for n in 0..u32::try_from(CAPACITY).expect("small") * 2 {
            throttle.record_failure(IpAddr::V4(n.into()), Timestamp(0));
        }
        assert!(throttle.0.lock().expect("sound").len() <= CAPACITY);
    }
}
