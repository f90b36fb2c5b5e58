//! Engines of several replicas on one store.

use super::*;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use toolwarrant_core::cluster::{BeatNumber, ClusterStore};
use toolwarrant_tasks::store::TaskStore;

/// A replica: its store, and its engine, which runs.
struct Replica {
    store: Arc<Memory>,
    engine: Arc<Engine>,
    runner: JoinHandle<()>,
}

impl Replica {
    async fn start(tables: &Memory, name: &str, executor: Arc<dyn Executor>, clock: &Clock) -> Self {
        Self::start_with(tables, name, |store| parts(store, executor, clock)).await
    }

    async fn start_with(tables: &Memory, name: &str, parts: impl FnOnce(&Arc<Memory>) -> Parts) -> Self {
        let store = Arc::new(tables.replica(name));
        let random = Random::from_seed(store.epoch().0);
        let engine = Engine::start(Parts { random, ..parts(&store) }).await.expect("memory");
        let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
        Self { store, engine, runner }
    }

    /// Ends the process, and its membership.
    async fn evict(&self) {
        self.runner.abort();
        assert!(self.store.evict(self.store.epoch(), BeatNumber::default()).await.expect("memory"));
    }
}

/// An executor that connects until it is let on, and counts what it sends.
#[derive(Default)]
struct Connecting {
    connected: Notify,
    sends: AtomicU32,
}

impl Executor for Connecting {
    fn send<'a>(&'a self, _: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            self.connected.notified().await;
            if let Err(why) = leave.confirm().await {
                return Sent::NotSent(why);
            }
            self.sends.fetch_add(1, Relaxed);
            Sent::Ok
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Obedient.probe(write)
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn timeline(store: &Memory, id: &str) -> Vec<String> {
    let lines = store.timeline(TaskId::parse(id).expect("an id")).await.expect("memory");
    lines.iter().map(|line| line.what.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_replica_that_has_ended_is_adopted_and_not_sent_again() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let forgetful = Arc::new(Forgetful::default());
    let [first, second] = [
        Replica::start(&tables, "a", forgetful.clone(), &clock).await,
        Replica::start(&tables, "b", forgetful.clone(), &Clock::start_at(START.minus(Duration::from_secs(2)))).await,
    ];
    let id = accept(&first.engine, write("printer", "known")).await;
    seconds(3).await;
    assert_eq!((forgetful.sends.load(Relaxed), first.engine.in_flight(), second.engine.in_flight()), (1, 1, 0));
    first.evict().await;
    seconds(2).await;
    assert_eq!(second.engine.in_flight(), 1);
    assert!(timeline(&tables, &id).await.contains(&"adopted from another replica".to_owned()));
    seconds(14).await;
    assert_eq!(forgetful.looked_up.load(Relaxed), 0, "the send may still arrive");
    seconds(3).await;
    assert_eq!((forgetful.sends.load(Relaxed), forgetful.looked_up.load(Relaxed)), (1, 1));
    let owner = caller("owner", Grants::nothing());
    assert_eq!(poll(&second.engine, &owner, &id).await.expect("a task").status, TaskStatus::Success);
    assert_eq!(second.engine.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_under_the_same_name_takes_over_at_once() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let first = Replica::start(&tables, "a", Arc::new(Forgetful::default()), &clock).await;
    let id = accept(&first.engine, write("printer", "known")).await;
    first.runner.abort();
    let second = Replica::start(&tables, "a", Arc::new(Obedient), &clock).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(second.engine.in_flight(), 1);
    seconds(20).await;
    let owner = caller("owner", Grants::nothing());
    assert_eq!(poll(&second.engine, &owner, &id).await.expect("a task").status, TaskStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_replica_sends_nothing_and_stops_to_drive() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let connecting = Arc::new(Connecting::default());
    let replica = Replica::start(&tables, "a", connecting.clone(), &clock).await;
    accept(&replica.engine, write("printer", "p-1")).await;
    seconds(1).await;
    assert!(replica.store.evict(replica.store.epoch(), BeatNumber::default()).await.expect("memory"));
    connecting.connected.notify_one();
    seconds(1).await;
    assert_eq!((connecting.sends.load(Relaxed), replica.engine.in_flight()), (0, 0));
    // As long as it is a member, it sends.
    let replica = Replica::start(&tables, "b", connecting.clone(), &clock).await;
    accept(&replica.engine, write("printer", "p-2")).await;
    connecting.connected.notify_one();
    seconds(1).await;
    assert_eq!(connecting.sends.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_target_cools_down_longer_where_the_next_task_may_have_another_clock() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let alone = engine(Obedient, &clock).await;
    let shared = Replica::start(&tables, "a", Arc::new(Obedient), &clock).await;
    let mut starts = Vec::new();
    let runner = tokio::spawn(Arc::clone(&alone).run(std::future::pending()));
    for engine in [&alone, &shared.engine] {
        let begun = clock.now();
        accept(engine, WriteRequest { now: begun, ..write("printer", "p-1") }).await;
        seconds(1).await;
        let id = accept(engine, WriteRequest { now: clock.now(), ..write("printer", "p-1") }).await;
        let owner = caller("owner", Grants::nothing());
        let deadline = poll(engine, &owner, &id).await.expect("a task").deadline_at;
        starts.push(deadline.since(begun).as_secs());
    }
    runner.abort();
    assert_eq!(starts[1] - starts[0], 2, "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_task_of_another_replica_is_a_hit() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let [first, second] = [
        Replica::start(&tables, "a", Arc::new(Forgetful::default()), &clock).await,
        Replica::start(&tables, "b", Arc::new(Forgetful::default()), &clock).await,
    ];
    let id = accept(&first.engine, write("printer", "p-1")).await;
    let Repeat::Hit(hit) = second.engine.repeat(write("printer", "p-1")).await.expect("memory") else {
        panic!("it is taken for new")
    };
    assert_eq!((hit.task_id, hit.matches), (id, true));
}

#[tokio::test(start_paused = true)]
async fn a_held_poll_returns_soon_after_another_replica_has_ended_the_task_and_at_once_if_it_is_noticed() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    for noticed in [false, true] {
        let connecting = Arc::new(Connecting::default());
        let first = Replica::start(&tables, "a", connecting.clone(), &clock).await;
        let second = Replica::start(&tables, "b", connecting.clone(), &clock).await;
        let id = accept(&first.engine, write("printer", if noticed { "p-1" } else { "p-2" })).await;
        let polled = second.engine.clone();
        let held = tokio::spawn({
            let id = id.clone();
            async move {
                let caller = caller("owner", Grants::nothing());
                let (wait, hold_at_most, interval) = (Some(Duration::from_secs(50)), Duration::ZERO, Duration::ZERO);
                let hold = LongPoll::Allowed;
                polled.poll(Poll { caller: &caller, id: &id, wait, hold_at_most, hold, interval }).await
            }
        });
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let before = clock.now();
        connecting.connected.notify_one();
        // The task ends without any time.
        while first.engine.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(!held.is_finished());
        if noticed {
            second.engine.notice_end(TaskId::parse(&id).expect("an id"));
        }
        assert_eq!(held.await.expect("no panic").expect("a task").status, TaskStatus::Success);
        let took = clock.now().since(before);
        assert!(took <= Duration::from_secs(if noticed { 0 } else { 2 }), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_this_contract_cannot_read_waits_for_a_replica_that_can() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let first = Replica::start(&tables, "a", Arc::new(Forgetful::default()), &clock).await;
    let id = accept(&first.engine, write("printer", "known")).await;
    first.evict().await;
    let keyring = KeyRing::new("test", &[8; 32], Random::from_seed(1));
    let other = |store: &_| Parts { keyring, ..parts(store, Arc::new(Obedient), &clock) };
    let Replica { engine: stranger, .. } = Replica::start_with(&tables, "b", other).await;
    seconds(30).await;
    let expected = format!("tasks that wait for a replica whose contract can read them: 1 ({id})");
    assert_eq!((stranger.describe_orphans(), stranger.in_flight()), (Some(expected), 0));
    let able = Replica::start(&tables, "c", Arc::new(Obedient), &clock).await;
    seconds(20).await;
    assert_eq!(stranger.describe_orphans(), None);
    let owner = caller("owner", Grants::nothing());
    assert_eq!(poll(&able.engine, &owner, &id).await.expect("a task").status, TaskStatus::Success);
}
