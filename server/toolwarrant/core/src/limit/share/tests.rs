//! Exchanges that other requests overtake, and exchanges of unknown fate.

use super::*;

const LIMIT: u32 = 300;

/// The log in the store, and replicas that exchange it.
#[derive(Default)]
struct Store(SharedLog);

impl Store {
    fn propose(&self, share: &mut Share, holder: u64, now: u64) -> Vec<u8> {
        share.propose(holder, self.0.clone(), LIMIT, at(now)).expect("a changed log")
    }

    fn put(&mut self, log: &[u8]) {
        self.0 = SharedLog::decode(log).expect("a log");
    }

    /// Admits requests by an exchange.
    fn exchange(&mut self, share: &mut Share, holder: u64, n: u32, now: u64) {
        let mut answer = wait(share, n);
        let log = self.propose(share, holder, now);
        self.put(&log);
        share.confirm(LIMIT, at(now));
        assert!(matches!(answer.try_recv(), Ok(Ok(_))), "{n} at {now}");
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp(1_790_000_000_000 + millis)
}

fn wait(share: &mut Share, n: u32) -> Answer {
    share.wait(n, || tokio::spawn(std::future::pending::<()>()).abort_handle())
}

/// Returns the number of requests that pass.
fn count(share: &mut Share, now: u64) -> usize {
    (0..LIMIT).take_while(|_| share.spend(at(now), 1).is_ok()).count()
}

/// Returns a replica that holds 18 requests until 11 s, after one at 0 s and one at 1 s.
fn holder(store: &mut Store) -> Share {
    let mut share = Share::default();
    store.exchange(&mut share, 1, 1, 0);
    store.exchange(&mut share, 1, 1, 1_000);
    share
}

#[tokio::test]
async fn an_allowance_is_used_until_its_end() {
    for (now, expected) in [(1_000, 18), (10_899, 18), (10_900, 0), (11_000, 0), (99_000, 0)] {
        let mut share = holder(&mut Store::default());
        assert_eq!(count(&mut share, now), expected, "{now}");
        assert_eq!(count(&mut share, now), 0, "{now}");
    }
}

#[tokio::test]
async fn requests_that_pass_during_a_renewal_are_a_part_of_it() {
    let mut store = Store::default();
    let mut share = holder(&mut store);
    (0..10).for_each(|_| assert!(share.spend(at(2_000), 1).is_ok()));
    assert_eq!(share.next_step(at(2_000), false), WorkerStep::Exchange);
    let log = store.propose(&mut share, 1, 2_000);
    (0..5).for_each(|_| assert!(share.spend(at(2_100), 1).is_ok()));
    store.put(&log);
    share.confirm(LIMIT, at(2_200));
    assert_eq!(count(&mut share, 2_200), 18 - 5);
}

#[tokio::test]
async fn while_it_is_not_known_which_log_the_store_has_the_stricter_one_holds() {
    let mut store = Store::default();
    let (mut share, mut other) = (holder(&mut store), Share::default());
    store.exchange(&mut other, 2, 200, 1_000);
    // It asks for 20 more, and gets them for a second alone, because less than half is free.
    let answer = wait(&mut share, 20);
    assert!(share.spend(at(2_000), 1).is_ok());
    store.propose(&mut share, 1, 2_000);
    assert_eq!(count(&mut share, 2_000), 0, "what is left is for those that wait");
    share.fail(at(2_300));
    drop(answer);
    assert!(share.spend(at(2_800), 1).is_ok());
    assert_eq!(count(&mut share, 2_900), 0);
    // It tells the store later what it has admitted, and gives back the rest.
    assert_eq!(share.next_step(at(2_900), false), WorkerStep::Wait(at(3_300)));
    assert_eq!(share.next_step(at(3_300), false), WorkerStep::Exchange);
    let log = store.propose(&mut share, 1, 3_300);
    store.put(&log);
    share.confirm(LIMIT, at(3_300));
    assert_eq!(share.next_step(at(3_300), false), WorkerStep::End);
    store.exchange(&mut other, 2, LIMIT - 200 - 4, 3_400);
}

#[tokio::test]
async fn nothing_is_granted_to_a_replica_that_holds_more_than_a_lower_limit_has() {
    let mut store = Store::default();
    let mut share = holder(&mut store);
    let mut answer = wait(&mut share, 1);
    assert!(share.propose(1, store.0.clone(), 4, at(2_000)).is_none());
    assert!(matches!(answer.try_recv(), Ok(Ok(_))), "it is held already");
    assert_eq!(count(&mut share, 2_000), 17);
}
