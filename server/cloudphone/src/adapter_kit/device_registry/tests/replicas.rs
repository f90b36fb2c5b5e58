//! Device registries of several replicas on one store, on simulated time.

use super::*;
use crate::adapter_kit::device_registry::refresh::{EVERY, Refresh, SOONEST, Source};
use crate::adapter_kit::duty::Duty;
use crate::adapter_kit::shared::tests::TestReplica;
use crate::phones::port::Unreachable;
use std::sync::Mutex as Lock;
use tokio::time::{Instant, sleep};
use toolwarrant::BoxFuture;
use toolwarrant::base::SplitMix;
use toolwarrant_memory::Memory;

/// The time for which the platform takes to list.
const TAKES: Duration = Duration::from_secs(4);

/// A platform, and the lists that were read of it.
struct Listed {
    start: Instant,
    rows: Lock<&'static str>,
    /// The replica, the beginning and the end of each list, in seconds.
    lists: Lock<Vec<(&'static str, f64, f64)>>,
}

/// The platform as one replica calls it.
struct Caller(Arc<Listed>, &'static str);

impl Source<TestRow> for Caller {
    fn list(&self) -> BoxFuture<'_, Result<Vec<TestRow>, Unreachable>> {
        Box::pin(async {
            let Self(platform, name) = self;
            let at = || platform.start.elapsed().as_secs_f64();
            let began = at();
            sleep(TAKES).await;
            platform.lists.lock().unwrap().push((name, began, at()));
            match *platform.rows.lock().unwrap() {
                "" => Err(Unreachable("it is down".into())),
                told => Ok(rows(told)),
            }
        })
    }

    fn code_changes(&self) -> BoxFuture<'_, Result<Vec<Recoded>, Unreachable>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

struct RegistryReplica {
    replica: TestReplica,
    registry: Arc<DeviceRegistry<TestRow>>,
    refresh: Arc<Refresh<TestRow>>,
}

struct SharedWorld {
    store: Memory,
    platform: Arc<Listed>,
    replicas: Vec<RegistryReplica>,
}

impl SharedWorld {
    fn of(names: &[&'static str]) -> Self {
        let platform = Arc::new(Listed { start: Instant::now(), rows: Lock::new("A@1 B"), lists: Lock::default() });
        let mut world = Self { store: Memory::default(), platform, replicas: Vec::new() };
        names.iter().for_each(|name| world.join(name));
        world
    }

    /// Starts a replica, whose clock is far from those of the others.
    fn join(&mut self, name: &'static str) {
        let at = Timestamp(1_000_000 + 100_000_000 * self.replicas.len() as u64);
        let mut replica = TestReplica::join(&self.store, name, at);
        let (shared, clock) = (replica.shared.clone(), replica.clock.clone());
        let platform = PlatformName::parse("n").unwrap();
        let duty = Some(Arc::new(Duty::new(&shared, &platform)));
        let registry = Arc::new(DeviceRegistry::of_replicas(shared, platform, clock.clone()));
        let source = Arc::new(Caller(self.platform.clone(), name));
        let refresh = Arc::new(Refresh::new(registry.clone(), source, clock, SplitMix(7)).with_duty(duty));
        let run = refresh.clone();
        replica.run(async move { run.run().await });
        self.replicas.push(RegistryReplica { replica, registry, refresh });
    }

    fn lists(&self) -> Vec<(&'static str, f64, f64)> {
        self.platform.lists.lock().unwrap().clone()
    }

    /// Returns the phones that each replica shows, which must be the same and current.
    fn check_shown(&self) -> String {
        let of = |RegistryReplica { replica, registry, .. }: &RegistryReplica| {
            let now = replica.clock.now();
            assert!(page(registry, None, 99).iter().all(|phone| is_current(phone.read_at, now)));
            describe(registry)
        };
        let shown: Vec<_> = self.replicas.iter().map(of).collect();
        assert!(shown.iter().all(|other| *other == shown[0]), "{shown:?}");
        shown[0].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn one_replica_lists_at_a_time_and_another_goes_on_after_its_death() {
    let mut world = SharedWorld::of(&["one", "two", "three"]);
    sleep(Duration::from_mins(3)).await;
    assert_eq!(world.check_shown(), "n-a=A n-b=B");
    let (lister, before) = (world.lists()[0].0, world.lists().len());
    assert!((5..=7).contains(&before) && world.lists().iter().all(|(name, ..)| *name == lister), "{:?}", world.lists());
    assert!(world.replicas.iter().all(|replica| replica.refresh.is_reachable()));
    *world.platform.rows.lock().unwrap() = "C@1 A@2 B D";
    let names = ["one", "two", "three"];
    world.replicas.remove(names.iter().position(|name| *name == lister).unwrap());
    sleep(Duration::from_mins(2)).await;
    // A seat keeps its id, and a code on another seat is another phone.
    assert_eq!(world.check_shown(), "n-a=C n-a-2=A n-b=B n-d=D");
    world.join("four");
    sleep(EVERY).await;
    assert_eq!(world.check_shown(), "n-a=C n-a-2=A n-b=B n-d=D");
    let lists = world.lists();
    assert!(lists.len() >= before + 3 && lists[before..].iter().all(|(name, ..)| *name == lists[before].0));
    for pair in lists.windows(2) {
        assert!(pair[0].2 <= pair[1].1, "two at a time: {pair:?}");
        assert!(pair[1].1 - pair[0].1 <= 45.0, "a pause of {pair:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_the_duty_gets_a_list_that_is_as_new_as_it_needs() {
    let world = SharedWorld::of(&["one", "two"]);
    sleep(Duration::from_secs(20)).await;
    let lister = world.lists()[0].0;
    let other = &world.replicas[usize::from(lister == "one")];
    let (asked, began) = (Instant::now(), world.platform.start.elapsed().as_secs_f64());
    other.refresh.at_least(other.replica.clock.now()).await.unwrap();
    let last = *world.lists().last().unwrap();
    assert!(last.0 == lister && last.1 >= began, "{last:?} {began}");
    assert!(asked.elapsed() <= SOONEST + TAKES + Duration::from_secs(3), "{:?}", asked.elapsed());
    // A write on a replica without the duty makes the next list come sooner.
    other.refresh.wake();
    sleep(Duration::from_secs(15)).await;
    assert!(world.lists().last().unwrap().1 - last.1 <= 12.0, "{:?}", world.lists());
    // It learns of a failure, too.
    world.platform.rows.lock().unwrap().clone_from(&"");
    assert!(other.refresh.at_least(other.replica.clock.now()).await.unwrap_err().to_string().contains("down"));
    assert!(!other.refresh.is_reachable());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_one_replica_has_read_is_its_own_and_makes_no_id() {
    let world = SharedWorld::of(&["one", "two"]);
    sleep(Duration::from_secs(10)).await;
    let RegistryReplica { replica, registry, .. } = &world.replicas[1];
    for told in ["C@1", "D@9"] {
        registry.note(parse_row(told), Vec::new(), replica.clock.now()).await;
    }
    assert_eq!(describe(registry), "n-a=C n-b=B");
    assert_eq!(describe(&world.replicas[0].registry), "n-a=A n-b=B");
    *world.platform.rows.lock().unwrap() = "C@1 B D@9";
    sleep(Duration::from_secs(50)).await;
    assert_eq!(world.check_shown(), "n-a=C n-b=B n-d=D");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_another_replica_overtook_is_not_stored_and_not_shown() {
    let store = Memory::default();
    let replicas = ["one", "two"].map(|name| TestReplica::join(&store, name, Timestamp(1_000_000)));
    let [one, two] = replicas.each_ref().map(|replica| {
        DeviceRegistry::of_replicas(replica.shared.clone(), PlatformName::parse("n").unwrap(), replica.clock.clone())
    });
    one.load(0, None).await.unwrap();
    two.load(0, None).await.unwrap();
    assert!(one.take(rows("A@1 A-2@2"), Vec::new(), Timestamp(1_000_000)).await);
    assert!(!two.take(rows("A@2"), Vec::new(), Timestamp(1_000_000)).await);
    assert_eq!(describe(&two), "");
    two.load(1, None).await.unwrap();
    assert!(two.take(rows("A@2 B"), Vec::new(), Timestamp(1_000_001)).await);
    assert_eq!(describe(&two), "n-a-2=A n-b=B");
}
