//! Failed authentications, by address: loosely limited, so that guessing is slow and nobody is locked out.

use super::neighbourhood;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use toolwarrant_core::clock::Timestamp;

/// Failures of an address in a minute that are answered at once; a client that is set up wrongly makes a few at each start.
const FREE: u32 = 60;
/// How long every further failure waits for its answer.
const DELAY: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Most addresses that are remembered.
const CAPACITY: usize = 16_384;

/// Who has failed of late.
#[derive(Debug, Default)]
pub struct AuthThrottle(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug)]
struct Failures {
    since: Timestamp,
    count: u32,
}

impl AuthThrottle {
    /// Notes a failure; says how long its answer is to wait. Valid credentials never come here.
    pub fn failed(&self, address: IpAddr, now: Timestamp) -> Option<Duration> {
        let address = neighbourhood(address);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        (failures.count > FREE).then_some(DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failures_of_one_address_are_delayed_after_the_first_sixty_in_a_minute() {
        let (throttle, start) = (AuthThrottle::default(), Timestamp(1_000));
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let one = address("192.0.2.1");
        for _ in 0..FREE {
            assert_eq!(throttle.failed(one, start), None);
        }
        assert_eq!(throttle.failed(one, start), Some(DELAY));
        assert_eq!(throttle.failed(address("::ffff:192.0.2.1"), start), Some(DELAY));
        assert_eq!(throttle.failed(address("192.0.2.2"), start), None);
        assert_eq!(throttle.failed(one, start.plus(MINUTE)), None);
    }

    #[test]
    fn a_crowd_of_addresses_is_forgotten_before_it_fills_the_memory() {
        let throttle = AuthThrottle::default();
        for n in 0..u32::try_from(CAPACITY).expect("small") * 2 {
            throttle.failed(IpAddr::V4(n.into()), Timestamp(0));
        }
        assert!(throttle.0.lock().expect("sound").len() <= CAPACITY);
    }
}
