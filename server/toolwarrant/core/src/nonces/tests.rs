//! Nonces by the clock, by the budget and by the key.

use super::*;
use crate::access::{Application, Grants};
use crate::limit::Window;
use crate::permissions::PermissionSet;
use std::sync::Arc;

const START: Timestamp = Timestamp(1_800_000_000_000);
const SECOND: u64 = START.0 / 1000;

fn nonces() -> (Nonces, Clock) {
    let clock = Clock::manual(START);
    (Nonces::new(clock.clone()), clock)
}

fn key(requests_per_minute: u32) -> Principal {
    let window = Arc::new(Window::new(requests_per_minute));
    let application = Application::new("app", "app", PermissionSet(1), Grants::everything(), window);
    Principal { application: Arc::new(application), key_id: "key".into(), nonces: Arc::default() }
}

fn count(key: &Principal) -> usize {
    key.nonces.0.lock().expect("not poisoned").order.len()
}

#[test]
fn a_time_may_differ_by_300_seconds_by_the_wall_clock() {
    let (nonces, clock) = nonces();
    for (timestamp, expected) in [
        (SECOND - 300, Ok(())),
        (SECOND - 301, Err(BadTime::Behind(301))),
        (SECOND + 300, Ok(())),
        (SECOND + 301, Err(BadTime::Ahead(301))),
        (0, Err(BadTime::Behind(SECOND))),
    ] {
        assert_eq!(nonces.judge(timestamp), expected, "{timestamp}");
    }
    // The machine was suspended for an hour.
    clock.shift_wall(3_600_000);
    assert_eq!(nonces.judge(SECOND), Err(BadTime::Behind(3600)));
    assert_eq!(nonces.judge(SECOND + 3600), Ok(()));
}

#[test]
fn nothing_is_taken_that_was_signed_before_the_data_was_restored() {
    let (nonces, _) = nonces();
    let nonces = nonces.since(Some(Timestamp(START.0 - 60_000)));
    for (timestamp, expected) in [(SECOND - 60, Err(BadTime::BeforeRestore)), (SECOND - 59, Ok(()))] {
        assert_eq!(nonces.judge(timestamp), expected);
    }
}

#[test]
fn a_nonce_is_used_once_for_each_key_for_as_long_as_its_signature_is_valid_by_either_clock() {
    let (nonces, clock) = nonces();
    let (one, other) = (key(300), key(300));
    let take = |key, timestamp| nonces.take(key, "n", timestamp, false).map(|used| used.until);
    assert_eq!(take(&one, SECOND), Ok(START.plus(NONCE_KEPT + STORED_LONGER)));
    assert_eq!(take(&one, SECOND + 9), Err(BadNonce::Used));
    assert_eq!(take(&other, SECOND + 300), Ok(START.plus(NONCE_KEPT + STORED_LONGER + Duration::from_secs(300))));
    clock.advance(NONCE_KEPT);
    assert_eq!(take(&one, SECOND), Err(BadNonce::Used));
    // So that the signature is valid again.
    clock.shift_wall(-600_000);
    clock.advance(Duration::from_secs(1));
    assert_eq!(take(&one, SECOND), Err(BadNonce::Used));
    clock.shift_wall(600_000);
    assert!(take(&one, SECOND + 700).is_ok());
}

#[test]
fn many_nonces_that_are_over_are_dropped_a_few_at_a_time_and_refuse_nobody() {
    let (nonces, clock) = nonces();
    let key = key(10_000);
    let take = |n: u64, timestamp| nonces.take(&key, &n.to_string(), timestamp, true).map(drop);
    (0..2_000).for_each(|n| take(n, SECOND).unwrap());
    clock.advance(2 * NONCE_KEPT);
    let later = clock.wall().0 / 1000;
    take(2_000, later).unwrap();
    assert_eq!(count(&key), 2_001 - DROPPED_AT_ONCE);
    (0..2_000).rev().for_each(|n| take(n, later).unwrap());
    assert_eq!(count(&key), 2_001);
    assert_eq!(take(7, later), Err(BadNonce::Used));
}

#[test]
fn a_request_beyond_the_budget_uses_no_nonce_and_the_budget_bounds_the_nonces_of_a_key() {
    let (nonces, clock) = nonces();
    let key = key(5);
    for minute in 0..60 {
        for n in 0..1_000 {
            let nonce = format!("{minute} {n}");
            let taken = nonces.take(&key, &nonce, clock.wall().0 / 1000, true);
            assert_eq!(taken.is_ok(), n < 5, "{nonce}: {taken:?}");
            assert!(n < 5 || matches!(taken, Err(BadNonce::Unpaid(_))), "{taken:?}");
        }
        clock.advance(Duration::from_millis(60_100));
        assert!(count(&key) <= 5 * MINUTES);
    }
    // A refused request can be sent again. The repetition of a taken one costs no budget.
    let now = clock.wall().0 / 1000;
    assert!(nonces.take(&key, "59 5", now, true).is_ok());
    (0..9).for_each(|_| assert_eq!(nonces.take(&key, "59 5", now, true).unwrap_err(), BadNonce::Used));
    assert!((0..4).all(|n| nonces.take(&key, &format!("last {n}"), now, true).is_ok()));
}

#[test]
fn a_clock_that_runs_ahead_takes_no_more_memory_and_no_read_is_answered_twice() {
    let (nonces, clock) = nonces();
    let key = key(5);
    for n in 0..200 {
        let now = clock.wall().0 / 1000;
        assert!(nonces.take(&key, &n.to_string(), now, true).is_ok());
        clock.advance(Duration::from_secs(13));
        clock.shift_wall(-12_000);
    }
    assert_eq!(count(&key), 5 * MINUTES);
    let repeat = |n: u64| nonces.take(&key, &n.to_string(), SECOND + n, true).map(drop);
    assert_eq!(repeat(0), Err(BadNonce::Unknown(140)));
    assert_eq!(repeat(199), Err(BadNonce::Used));
}

#[test]
fn the_nonce_of_a_read_is_stored_if_another_run_may_see_its_time_as_the_present() {
    let wall = Clock::system().wall();
    let doubtful = Nonces::new(Clock::since(wall.minus(LEAP + Duration::from_hours(1))));
    let (ahead, clock) = nonces();
    clock.shift_wall(60_000);
    let (right, after) = (nonces().0, Nonces { stored: SECOND - 5, ..nonces().0 });
    let key = key(300);
    for (nonce, nonces, timestamp, reads, expected) in [
        ("a", &right, SECOND, true, false),
        ("b", &right, SECOND + 1, true, true),
        ("c", &right, SECOND, false, true),
        ("d", &after, SECOND - 4, true, false),
        ("e", &after, SECOND - 5, true, true),
        ("f", &doubtful, wall.0 / 1000, true, true),
        ("g", &ahead, SECOND + 30, true, false),
        ("h", &ahead, SECOND + 31, true, true),
    ] {
        let used = nonces.take(&key, nonce, timestamp, reads).unwrap();
        assert_eq!(used.is_due(), expected, "{nonce}");
        used.set_stored();
        assert!(!used.is_due(), "{nonce}");
    }
}
