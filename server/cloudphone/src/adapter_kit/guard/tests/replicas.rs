//! The guards of several replicas that use one account, on simulated time.

use super::*;
use crate::adapter_kit::duty::Duty;
use crate::adapter_kit::shared::tests::TestReplica;
use crate::phones::port::PlatformName;
use tokio::time::{Instant, sleep};
use toolwarrant::base::SplitMix;
use toolwarrant_core::cluster::{Cluster, ClusterStore, Epoch};
use toolwarrant_memory::Memory;

/// A call: its start and its end, in milliseconds of the true time.
type Spans = Arc<Mutex<Vec<(u64, u64)>>>;

struct GuardReplica {
    replica: TestReplica,
    guard: Arc<Guard>,
    duty: Arc<Duty>,
}

impl GuardReplica {
    fn join(store: &Memory, name: &str, limits: GuardLimits, start: Instant, ahead: u64) -> Self {
        let now = 1_790_000_000_000 + ahead + start.elapsed().as_millis() as u64;
        let mut replica = TestReplica::join(store, name, Timestamp(now));
        let platform = PlatformName::parse("n").expect("a name");
        let duty = Arc::new(Duty::new(&replica.shared, &platform));
        let guard = Guard::of_replicas(limits, replica.clock.clone(), &replica.shared, &platform, duty.clone());
        let guard = Arc::new(guard);
        let share = guard.clone();
        replica.run(async move { share.share().await });
        Self { replica, guard, duty }
    }

    async fn call(&self, class: Class, end: CallEnd) -> Result<(), Withheld> {
        call(&self.guard, &self.replica.clock, class, end).await
    }

    /// Makes calls of random length, one after another.
    fn load(&mut self, seed: u64, start: Instant, spans: &Spans) {
        let (guard, clock, spans) = (self.guard.clone(), self.replica.clock.clone(), spans.clone());
        let mut random = SplitMix(seed);
        self.replica.run(async move {
            loop {
                sleep(Duration::from_millis(random.below(300))).await;
                let class = [Class::Read, Class::Write, Class::Background][random.below(3) as usize];
                let deadline = clock.now().plus(Duration::from_secs(1 + random.below(20)));
                if let Ok(pass) = guard.admit(class, deadline).await {
                    let call = RunningCall { start, began: start.elapsed().as_millis() as u64, spans: &spans };
                    sleep(Duration::from_millis(random.below(1_500))).await;
                    pass.end(CallEnd::Answered);
                    drop(call);
                }
            }
        });
    }
}

/// A call that ends when it is dropped, also with its replica.
struct RunningCall<'a> {
    start: Instant,
    began: u64,
    spans: &'a Spans,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let end = self.start.elapsed().as_millis() as u64;
        self.spans.lock().expect("no panic").push((self.began, end));
    }
}

/// Returns the most starts in any time of that length, ends included.
fn most_starts(spans: &[(u64, u64)], millis: u64) -> usize {
    let within = |at: u64| spans.iter().filter(|(began, _)| (at..=at + millis).contains(began)).count();
    spans.iter().map(|(began, _)| within(*began)).max().unwrap_or(0)
}

/// Returns the most calls at a time.
fn most_at_a_time(spans: &[(u64, u64)]) -> usize {
    let running = |at: u64| spans.iter().filter(|(began, end)| (*began..*end).contains(&at)).count();
    spans.iter().map(|(began, _)| running(*began)).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_all_replicas_stay_within_the_limits_of_the_account() {
    let limits = [(8, 10, 200), (3, 4, 60), (5, 2, 90)];
    for (seed, (concurrent, per_second, per_minute)) in (1..).zip(limits) {
        let limits = GuardLimits { concurrent, per_second, per_minute };
        let (store, start, spans, mut random) = (Memory::default(), Instant::now(), Spans::default(), SplitMix(seed));
        let mut replicas: BTreeMap<u64, GuardReplica> = BTreeMap::new();
        for turn in 0..24 {
            // Replicas come, die without a word, and start again under their names.
            let place = random.below(4);
            if random.below(3) > 0 || replicas.len() < 2 {
                replicas.remove(&place);
                let mut replica = GuardReplica::join(&store, &place.to_string(), limits, start, random.below(500));
                (0..6).for_each(|n| replica.load(1 + turn * 10 + n, start, &spans));
                replicas.insert(place, replica);
            } else {
                replicas.remove(&place);
            }
            sleep(Duration::from_millis(random.below(30_000))).await;
        }
        drop(replicas);
        settle().await;
        let spans = spans.lock().expect("no panic").clone();
        let most = (most_at_a_time(&spans), most_starts(&spans, 999), most_starts(&spans, 60_000));
        let GuardLimits { concurrent, per_second, per_minute } = limits;
        let within = most.0 <= concurrent as usize && most.1 <= per_second as usize && most.2 <= per_minute as usize;
        assert!(within, "{most:?} of {limits:?}");
        assert!(most.2 * 10 >= per_minute as usize * 9, "hardly any of them was used: {most:?} of {limits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_replica_learns_of_refused_credentials_and_the_one_that_lists_tries_again() {
    let (store, start) = (Memory::default(), Instant::now());
    let replicas = ["one", "two", "three"].map(|name| GuardReplica::join(&store, name, LIMITS, start, 0));
    sleep(Duration::from_secs(8)).await;
    let [one, two, three] = &replicas;
    assert!(two.duty.hold().await.expect("the store answers"));
    one.call(Class::Write, CallEnd::Denied).await.expect("closed");
    sleep(Duration::from_millis(1_100)).await;
    for other in &replicas {
        for class in [Class::Write, Class::Read, Class::Background] {
            assert!(matches!(other.call(class, CallEnd::Answered).await, Err(Withheld::Denied(_))));
        }
    }
    // The pause grows if the trial fails, and ends everywhere if it succeeds.
    for (pause, end) in [(DENIED[0], CallEnd::Denied), (DENIED[1], CallEnd::Denied), (2 * DENIED[1], CallEnd::Answered)]
    {
        sleep(pause - Duration::from_secs(5)).await;
        assert!(two.call(Class::Read, end).await.is_err(), "too early");
        sleep(Duration::from_secs(10)).await;
        for other in [one, three] {
            assert!(matches!(other.call(Class::Read, end).await, Err(Withheld::Denied(_))));
        }
        assert!(two.call(Class::Write, end).await.is_err(), "a write is no trial");
        two.call(Class::Read, end).await.expect("a trial");
        sleep(Duration::from_millis(1_100)).await;
    }
    for other in &replicas {
        other.call(Class::Write, CallEnd::Answered).await.expect("closed");
    }
    // An operator can ask any replica to try, and its answer ends the pause of all.
    for end in [CallEnd::Denied, CallEnd::Denied, CallEnd::Answered] {
        three.guard.urge_trial();
        three.call(Class::Read, end).await.expect("it may try");
        sleep(Duration::from_millis(2_200)).await;
    }
    for other in &replicas {
        other.call(Class::Write, CallEnd::Answered).await.expect("closed");
    }
    // A replica that starts later does not try, either.
    one.call(Class::Write, CallEnd::Denied).await.expect("closed");
    sleep(Duration::from_secs(2)).await;
    let late = GuardReplica::join(&store, "four", LIMITS, start, 0);
    assert!(matches!(late.call(Class::Read, CallEnd::Answered).await, Err(Withheld::Denied(_))));
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_a_part_or_without_its_lease_calls_nothing() {
    let (store, start) = (Memory::default(), Instant::now());
    let limits = GuardLimits { concurrent: 2, ..LIMITS };
    let replicas = ["one", "two", "three"].map(|name| GuardReplica::join(&store, name, limits, start, 0));
    sleep(Duration::from_secs(8)).await;
    let [one, two, three] = &replicas;
    for other in [one, two] {
        other.call(Class::Read, CallEnd::Answered).await.expect("its part is one");
    }
    assert_eq!(three.call(Class::Read, CallEnd::Answered).await, Err(Withheld::Crowded));
    assert_eq!(three.guard.would_refuse(), Some(Withheld::Crowded));
    // Another one is evicted. After its lease, and the time until all know it, there is a part.
    let epoch = one.replica.shared.sharing.member.epoch();
    let beat = store.beat(Default::default()).await.expect("rows");
    let beat = beat.replicas.iter().find(|row| row.epoch == epoch).expect("it lives").beat;
    assert!(store.replica("operator").evict(epoch, beat).await.expect("stored"));
    sleep(Duration::from_secs(2)).await;
    assert!(!one.replica.shared.sharing.member.lease().stands() && epoch > Epoch(0));
    let waited = Instant::now();
    assert_eq!(one.call(Class::Read, CallEnd::Answered).await, Err(Withheld::Crowded));
    assert!(waited.elapsed() >= LONG, "a call waits until its deadline");
    three.call(Class::Read, CallEnd::Answered).await.expect("a part");
}
