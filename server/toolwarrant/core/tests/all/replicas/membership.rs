//! Leases, evictions and confirmations.

use super::harness::{TestReplica, in_time, sleep};
use super::link::{StoreLink, Weather};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::access::AccessError;
use toolwarrant_core::cluster::{
    Beat, Cluster, ClusterStore, Eviction, LEASE, Membership, ReplicaRow, ReplicaState, StoreTime,
};
use toolwarrant_core::store::DirectoryStore;
use toolwarrant_memory::Memory;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_silent_replica_delays_a_revocation_by_its_lease_a_second_and_a_beat_and_a_grant_by_a_second() {
    for weather in [Weather::Down, Weather::Silent] {
        let store = Memory::default();
        let (one, two) = (TestReplica::start(&store, "one").await, TestReplica::start(&store, "two").await);
        let owner = one.create("app").await;
        let key = one.issue(&owner).await;
        sleep(10_300).await;
        assert!(two.stands());
        two.set(weather);
        let since = Instant::now();
        let other = one.issue(&owner).await;
        assert!(since.elapsed() <= SECOND && one.answer(&other).is_ok(), "{weather:?}");
        let took = one.revoke(&key).await;
        assert_eq!(two.answer(&key).unwrap_err(), AccessError::NoLease, "{weather:?}");
        assert!(took <= LEASE + 2 * SECOND, "{weather:?} {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_silence_of_a_replica_is_compared_with_its_own_lease() {
    let store = Memory::default();
    let one = TestReplica::start(&store, "one").await;
    let long = store.replica_with_lease("two", 4 * LEASE);
    let two = TestReplica::join(StoreLink::new(long, 0, 0)).await;
    let key = one.issue(&one.create("app").await).await;
    sleep(10_000).await;
    two.set(Weather::Silent);
    let took = one.revoke(&key).await;
    assert_eq!(two.answer(&key).unwrap_err(), AccessError::NoLease);
    assert!(took > 3 * LEASE && took <= 4 * LEASE + 2 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_is_short_for_one_lease_and_long_for_another_evicts_nobody() {
    let store = Memory::default();
    let two = TestReplica::start(&store, "two").await;
    sleep(500).await;
    let one = TestReplica::join(StoreLink::new(store.replica_with_lease("one", 6 * LEASE), 0, 0)).await;
    // The one has seen the latest beat of the other.
    sleep(10_200).await;
    [&one, &two].iter().for_each(|replica| replica.set(Weather::Down));
    sleep(12_300).await;
    one.set(Weather::Fair);
    sleep(1_400).await;
    two.set(Weather::Fair);
    sleep(3_000).await;
    assert!(one.stands() && two.stands());
}

#[tokio::test(start_paused = true)]
async fn an_outage_for_all_evicts_nobody_and_they_answer_again_after_a_beat() {
    for (millis, weather) in (0..40).flat_map(|n| [Weather::Down, Weather::Silent].map(|way| (2_000 + 137 * n, way))) {
        let store = Memory::default();
        let mut replicas = Vec::new();
        for name in ["one", "two", "three"] {
            sleep(331).await;
            replicas.push(TestReplica::start(&store, name).await);
        }
        let key = replicas[0].issue(&replicas[0].create("app").await).await;
        sleep(10_000).await;
        replicas.iter().for_each(|replica| replica.set(weather));
        sleep(millis).await;
        // The link of one replica is back a little earlier.
        replicas[0].set(Weather::Fair);
        sleep(200).await;
        replicas.iter().for_each(|replica| replica.set(Weather::Fair));
        sleep(2_600).await;
        for replica in &replicas {
            assert!(replica.answer(&key).is_ok(), "{millis} {weather:?}");
        }
        sleep(10_000).await;
        let _ = replicas[1].revoke(&key).await;
        for replica in &replicas {
            assert_eq!(replica.answer(&key).unwrap_err(), AccessError::Unauthenticated);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_evicts_the_former_run_of_the_name_and_a_revocation_waits_until_that_can_answer_no_more() {
    let store = Memory::default();
    let (one, mut former) = (TestReplica::start(&store, "one").await, TestReplica::start(&store, "two").await);
    let key = one.issue(&one.create("app").await).await;
    sleep(10_500).await;
    former.set(Weather::Silent);
    let later = TestReplica::start(&store, "two").await;
    let took = later.revoke(&key).await;
    assert_eq!(former.answer(&key).unwrap_err(), AccessError::NoLease);
    assert!(took <= LEASE + 2 * SECOND, "{took:?}");
    former.set(Weather::Fair);
    assert_eq!(in_time(&mut former.membership).await.unwrap(), Err(Eviction));
    sleep(130_000).await;
    let rows = store.replica("three").beat(Beat::default()).await.unwrap().replicas;
    let names: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.state)).collect();
    assert_eq!(names, ["one", "two", "three"].map(|name| (name, ReplicaState::Serving)), "the former run is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_leaves_answers_no_more_and_delays_nothing() {
    let store = Memory::default();
    let (one, mut two) = (TestReplica::start(&store, "one").await, TestReplica::start(&store, "two").await);
    let key = one.issue(&one.create("app").await).await;
    two.member.set_state(ReplicaState::Draining);
    sleep(5_000).await;
    let state = |rows: Vec<ReplicaRow>| rows[1].state;
    assert_eq!(state(store.beat(Beat::default()).await.unwrap().replicas), ReplicaState::Draining);
    assert!(two.answer(&key).is_ok());
    // A beat that is under way extends no lease.
    two.set(Weather::Late);
    sleep(1_100).await;
    two.member.leave().await.unwrap();
    assert_eq!(two.answer(&key).unwrap_err(), AccessError::NoLease);
    assert_eq!(in_time(&mut two.membership).await.unwrap(), Ok(()));
    assert!(one.revoke(&key).await < SECOND);
    sleep(2_000).await;
    assert_eq!(two.answer(&key).unwrap_err(), AccessError::NoLease);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_has_joined_and_not_loaded_yet_holds_a_revocation_up() {
    let store = Memory::default();
    let one = TestReplica::start(&store, "one").await;
    let key = one.issue(&one.create("app").await).await;
    let link = Arc::new(StoreLink::join(&store, "two", 0, 0));
    let member = Arc::new(Membership::new(link.clone(), one.clock.clone()));
    let beating = Arc::clone(&member);
    let _running = tokio::spawn(async move { beating.run().await });
    let read_before = link.changes(0).await.unwrap();
    let revoking = async {
        let took = one.revoke(&key).await;
        assert!(took >= 20 * SECOND, "{took:?}");
    };
    let loading = async {
        sleep(20_000).await;
        member.put_in_force(read_before.version);
        sleep(3_000).await;
        member.put_in_force(read_before.version + 1);
    };
    tokio::join!(revoking, loading);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_store_is_known_to_half_of_a_round_trip_and_the_drift_since() {
    let store = Memory::default();
    store.see(Timestamp(50_000)).await.unwrap();
    let link = StoreLink::join(&store, "one", 1, 0);
    link.set(Weather::Late);
    let one = TestReplica::join(link).await;
    sleep(10).await;
    one.set(Weather::Silent);
    sleep(1_990).await;
    let StoreTime { now, uncertainty } = one.member.store_time().expect("a beat was answered");
    assert_eq!(now, one.clock.now().plus(Duration::from_secs(50)));
    assert_eq!(uncertainty, Duration::from_millis(700 + 1 + 2));
}

#[tokio::test(start_paused = true)]
async fn a_replica_whose_clock_is_off_stops_to_answer_and_a_step_of_the_clock_of_the_store_is_not_followed() {
    let store = Memory::default();
    let (one, two) = (TestReplica::start(&store, "one").await, TestReplica::start(&store, "two").await);
    sleep(2_000).await;
    one.link.set_time(&one.clock, 600);
    sleep(7_000).await;
    assert!(!one.stands() && two.stands());
    one.link.set_time(&one.clock, 400);
    sleep(2_000).await;
    assert!(one.stands());
    for replica in [&one, &two] {
        replica.link.set_time(&replica.clock, -5_000);
    }
    for _ in 0..20 {
        sleep(1_000).await;
        assert!(one.stands() && two.stands());
    }
    let off = |replica: &TestReplica| {
        let StoreTime { now, .. } = replica.member.store_time().expect("a beat was answered");
        now.0.abs_diff(replica.clock.now().0)
    };
    assert!(off(&one) < 500 && off(&two) < 500, "{} {}", off(&one), off(&two));
    // One that has slept alone is not believed.
    one.link.set_time(&one.clock, -5_000 + 30_000);
    sleep(7_000).await;
    assert!(!one.stands() && two.stands());
}

#[tokio::test(start_paused = true)]
async fn a_replica_whose_start_took_long_takes_the_time_of_the_store_and_does_not_correct_it() {
    let (start, seen) = (Timestamp(1_000_000), Timestamp(50_000));
    // The time of the store is the sum of this clock and of what it has seen.
    let other = Clock::start_at(Timestamp(952_000));
    for (clock, catches_up) in [(Clock::of_store(start, start), true), (Clock::start_at(start), false)] {
        let store = Memory::default();
        store.see(seen).await.unwrap();
        let link = Arc::new(StoreLink::join(&store, "one", 1, 0));
        link.set_time(&other, 0);
        let member = Arc::new(Membership::new(link, clock.clone()));
        let beating = Arc::clone(&member);
        let running = tokio::spawn(async move { beating.run().await });
        sleep(5_100).await;
        let StoreTime { now, .. } = member.store_time().expect("a beat was answered");
        let truth = Timestamp(seen.0 + other.now().0);
        assert_eq!((now, clock.now() == truth), (truth, catches_up));
        assert_eq!(member.lease().stands(), catches_up);
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_has_slept_ends_its_run_and_does_not_correct_the_time_of_the_store() {
    for (slept, is_over) in [(30_000, true), (0, false)] {
        let (store, clock) = (Memory::default(), Clock::manual(Timestamp(1_000_000)));
        let link = Arc::new(StoreLink::join(&store, "one", 1, 0));
        link.set_time(&clock, 0);
        let member = Arc::new(Membership::new(link.clone(), clock.clone()));
        let beating = Arc::clone(&member);
        let running = tokio::spawn(async move { beating.run().await });
        sleep(10).await;
        clock.shift_wall(slept);
        link.set_time(&clock, 30_000);
        clock.advance(SECOND);
        sleep(10).await;
        assert_eq!(running.is_finished(), is_over, "{slept}");
        running.abort();
    }
}
