//! Replicas of one store in memory, and what they tell each other of an account.

use super::*;
use crate::adapter_kit::proven::{ProvenDirections, Showing};
use crate::adapter_kit::readings::DirectAddresses;
use crate::phones::contract::DeviceId;
use crate::phones::port::{Direction, Exits};
use std::net::IpAddr;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolwarrant::Random;
use toolwarrant::sharing::{Budgets, Membership};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_core::cluster::ClusterStore;
use toolwarrant_memory::Memory;

/// A replica on tokio's clock. It dies when it is dropped.
pub(crate) struct TestReplica {
    pub(crate) clock: Clock,
    pub(crate) shared: Arc<SharedPlatforms>,
    work: JoinSet<()>,
}

impl TestReplica {
    /// Joins the store. The clock of this replica starts at `at`.
    pub(crate) fn join(store: &Memory, name: &str, at: Timestamp) -> Self {
        let clock = Clock::start_at(at);
        let store = Arc::new(store.replica(name).with_clock(clock.clone()));
        let budgets = Budgets::new(store.clone(), store.epoch(), clock.clone());
        let member = Arc::new(Membership::new(store.clone(), clock.clone()));
        let keyring = KeyRing::new("", &[7; 32], Random::System);
        let shared = SharedPlatforms::new(Sharing::new(store, member.clone(), budgets, keyring), clock.clone());
        let mut replica = Self { clock, shared: shared.clone(), work: JoinSet::new() };
        replica.run(async move {
            let _ = member.run().await;
        });
        replica.run(async move { shared.run().await });
        replica
    }

    /// Runs work that ends with the replica.
    pub(crate) fn run(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.work.spawn(work);
    }
}

/// Returns two replicas of a store, whose clocks differ by an hour.
fn pair() -> [TestReplica; 2] {
    let store = Memory::default();
    [("one", 1_000_000), ("two", 4_600_000)].map(|(name, at)| TestReplica::join(&store, name, Timestamp(at)))
}

#[tokio::test(start_paused = true)]
async fn an_address_is_stored_once_and_each_replica_has_the_first_one() {
    let replicas = pair();
    let [one, two] = replicas.each_ref().map(|replica| DirectAddresses::of_replicas(replica.shared.clone()));
    let id = |text| DeviceId::new(text).ok().unwrap();
    let [first, second]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
    assert_eq!(two.of(&id("n-a")).await, None);
    one.note(&id("n-a"), Some(first)).await.unwrap();
    // The other replica does not know it yet, and asks the store.
    assert!(!two.is_settled(&id("n-a")));
    assert_eq!(two.of(&id("n-a")).await, Some(first));
    two.note(&id("n-b"), None).await.unwrap();
    for (id, address) in [(id("n-a"), Some(first)), (id("n-b"), None)] {
        for direct in [&one, &two] {
            direct.note(&id, Some(second)).await.unwrap();
            assert_eq!((direct.of(&id).await, direct.is_settled(&id)), (address, true), "{id}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_replica_knows_an_address_that_phones_share_and_one_that_was_read_again() {
    let replicas = pair();
    let [one, two] = replicas.each_ref().map(|replica| DirectAddresses::of_replicas(replica.shared.clone()));
    let id = |text| DeviceId::new(text).unwrap();
    let [first, second]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
    let seen = async |direct: &DirectAddresses, phone, ordinary| {
        let read = Exits { ordinary, through: None, direct: None, is_shared: false, former: None, other: None };
        let exits = direct.complete((&id(phone), "", None), None, Ok(read), Timestamp(0)).await.unwrap();
        (exits.direct, exits.is_shared)
    };
    assert_eq!(seen(&one, "n-a", first).await, (Some(first), false));
    assert_eq!(seen(&one, "n-a", first).await, (Some(first), false));
    assert_eq!(seen(&two, "n-b", first).await, (Some(first), true));
    assert_eq!(seen(&one, "n-a", first).await, (Some(first), true));
    one.replace((&id("n-a"), None), second).await.unwrap();
    for direct in [&one, &two] {
        assert_eq!(seen(direct, "n-a", second).await, (Some(second), false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_proof_on_one_replica_counts_on_the_others_within_a_second() {
    let replicas = pair();
    let open = |replica: &TestReplica, key| {
        ProvenDirections::of_replicas(replica.shared.follow("n/shown".to_owned()), "https://api.example", key)
    };
    let [one, two] = replicas.each_ref().map(|replica| open(replica, "AK1"));
    let showing = |tool: &str| Showing { at: Timestamp(1), device: "n-a".to_owned(), tool: tool.to_owned() };
    tokio::join!(async { one.record(Direction::Exit, showing("curl")).await.unwrap() }, async {
        two.record(Direction::Start, showing("start")).await.unwrap()
    },);
    sleep(FOLLOWED_EVERY).await;
    for proven in [&one, &two] {
        assert_eq!(proven.has(Direction::Exit), Some(showing("curl")));
        assert_eq!(proven.has(Direction::Start), Some(showing("start")));
    }
    assert_eq!(open(&replicas[0], "AK2").has(Direction::Exit), None);
}

#[tokio::test(start_paused = true)]
async fn a_version_did_not_exist_before_the_time_that_is_told() {
    let [one, two] = pair();
    let [writer, mut reader] = [&one, &two].map(|replica| replica.shared.follow("n/number".to_owned()));
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!((reader.take().since, reader.latest().is_read()), (None, true));
    for number in 1..=3_u64 {
        let put_at = two.clock.now();
        writer.update(|_: u64| Some(number)).await.unwrap();
        reader.wait_for_change().await;
        let known = reader.take();
        let since = known.since.unwrap();
        assert_eq!(known.value::<u64>(), number);
        assert!(since <= put_at && put_at.since(since) <= FOLLOWED_EVERY, "{since:?} {put_at:?}");
        sleep(Duration::from_millis(700)).await;
    }
}
