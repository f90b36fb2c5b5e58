//! The engine with a store in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_core::access::{Access, Application, Caller, Credentials, Granted, Grants};
use toolwarrant_core::catalogue::{PermissionSet, PolicyDef};
use toolwarrant_core::limit::Window;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::tasks::{
    CallFacts, Identity, LongPoll, Poll, TaskPage, TaskQuery, TaskReadError, TaskStatus, TaskView, Tasks,
    UpstreamReport, WriteRequest,
};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::{Facts, Sent};
use toolwarrant_tasks::task::{Reading, Verdict};

const START: Timestamp = Timestamp(1_800_000_000_000);

const POLICY: PolicyDef =
    PolicyDef { probe: Some("paper"), baseline: false, idempotent: false, settle_seconds: 5, deadline_seconds: 60 };

struct Obedient;

impl Executor for Obedient {
    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::Ok })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        let target = toolwarrant_base::text::Remark::clean(&write.target);
        Box::pin(async move { Reading { verdict: Verdict::Present, expected: target.clone(), observed: target } })
    }
}

fn keyring() -> KeyRing {
    KeyRing::new("test", &[7; 32], Random::from_seed(1))
}

async fn engine(executor: impl Executor, clock: &Clock) -> Arc<Engine> {
    Engine::start(parts(&Arc::default(), executor, clock)).await.expect("a store that can be read")
}

fn parts(store: &Arc<Memory>, executor: impl Executor, clock: &Clock) -> Parts {
    Parts {
        store: store.clone(),
        executor: Arc::new(executor),
        catalogue: None,
        keyring: keyring(),
        clock: clock.clone(),
        random: Random::from_seed(1),
        max_in_flight: 2_000,
        lease: None,
    }
}

fn write(resource: &'static str, target: &str) -> WriteRequest<'static> {
    let (application, fingerprint) = ("owner".to_owned(), keyring().mac(&[target]));
    let identity =
        Identity { application, key: None, fingerprint, resource: resource.to_owned(), target: target.to_owned() };
    WriteRequest { identity, tool: "print", policy: POLICY, call: CallFacts::default(), nonce: None, now: START }
}

async fn accept(engine: &Engine, write: WriteRequest<'_>) -> String {
    let command = Secret::new(format!("{{\"target\":\"{}\"}}", write.identity.target));
    assert!(engine.repeat(&write).await.expect("a store that can be read").is_none(), "{write:?}");
    engine.accept(write, command).await.expect("a new write").task_id
}

fn caller(application: &str, grants: Grants) -> Caller {
    let access = Access::new(keyring());
    let window = Arc::new(Window::new(300));
    let application = Arc::new(Application::new(application, application, PermissionSet(1), grants, window));
    access.change(|directory| {
        directory.put_key(
            "key",
            &application,
            &[access.secret(&application.id, "key", "secret", Timestamp(0)).expect("random")],
            None,
        )
    });
    access
        .authenticate(Credentials { key_id: "key", secret: "secret" }, None, &Clock::manual(START))
        .expect("a live key")
}

async fn poll(engine: &Engine, caller: &Caller, id: &str) -> Result<TaskView, TaskReadError> {
    engine
        .poll(Poll {
            caller,
            id,
            wait: None,
            hold_at_most: Duration::ZERO,
            hold: LongPoll::Never,
            interval: Duration::from_secs(3),
        })
        .await
}

#[tokio::test]
async fn a_task_is_visible_to_its_application_and_to_applications_that_see_its_target() {
    let engine = engine(Obedient, &Clock::manual(START)).await;
    let id = accept(&engine, write("printer", "p-1")).await;
    let of = |resource, granted| Grants::nothing().with(resource, granted);
    let seen = [
        ("owner", Grants::nothing(), true),
        ("other", Grants::everything(), true),
        ("other", of("printer", Granted::all()), true),
        ("other", of("printer", Granted::some(["p-1"])), true),
        ("other", of("printer", Granted::some(["p-2"])), false),
        ("other", of("tray", Granted::some(["p-1"])), false),
        ("other", of("tray", Granted::all()), false),
        ("other", Grants::nothing(), false),
    ];
    for (application, grants, expected) in seen {
        let told = poll(&engine, &caller(application, grants.clone()), &id).await;
        assert_eq!(told.is_ok(), expected, "{application} {grants:?}: {told:?}");
        assert!(expected || told == Err(TaskReadError::NotFound), "{told:?}");
    }
}

#[tokio::test]
async fn a_page_of_tasks_examines_a_thousand_of_them_and_says_where_the_next_one_begins() {
    let engine = engine(Obedient, &Clock::manual(START)).await;
    let mut ids = Vec::new();
    for n in 0..1_050 {
        let resource = if n < 50 { "tray" } else { "printer" };
        let at = START.plus(Duration::from_millis(n));
        ids.push(accept(&engine, WriteRequest { now: at, ..write(resource, &format!("p-{n}")) }).await);
    }
    let page = async |query| engine.list("owner", query).await.expect("a store that can be read");
    let trays = TaskQuery { resource: Some("tray"), limit: 100, ..TaskQuery::default() };
    let TaskPage { tasks, next } = page(trays).await;
    assert_eq!((tasks.len(), next.as_ref()), (0, Some(&ids[50])));
    let TaskPage { tasks, next } = page(TaskQuery { before: next.as_deref(), ..trays }).await;
    assert!(tasks.iter().map(|task| &task.id).eq(ids[..50].iter().rev()) && next.is_none());
    assert_eq!(page(TaskQuery { limit: u16::MAX, ..TaskQuery::default() }).await.tasks.len(), 100);
    assert_eq!(page(TaskQuery { target: Some("p-7"), resource: Some("printer"), ..trays }).await.tasks, []);
    let others = engine.list("other", trays).await.expect("a store that can be read");
    assert_eq!(others, TaskPage { tasks: Vec::new(), next: None });
    let unknown = engine.list("owner", TaskQuery { before: Some("task_1"), ..trays }).await;
    assert_eq!(unknown, Err(TaskReadError::NotFound));
}

async fn end(engine: &Arc<Engine>, id: &str) -> TaskView {
    let runner = tokio::spawn(Arc::clone(engine).run(std::future::pending()));
    let owner = caller("owner", Grants::nothing());
    let told = loop {
        let told = poll(engine, &owner, id).await.expect("a task of its application");
        if told.finished_at.is_some() {
            break told;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    runner.abort();
    told
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_only_sends_and_probes_is_enough() {
    let engine = engine(Obedient, &Clock::start_at(START)).await;
    let id = accept(&engine, write("printer", "p-1")).await;
    assert_eq!(end(&engine, &id).await.status, TaskStatus::Success);
    let compared = WriteRequest { policy: PolicyDef { baseline: true, ..POLICY }, ..write("printer", "p-2") };
    let id = accept(&engine, compared).await;
    let TaskView { status, evidence, .. } = end(&engine, &id).await;
    assert_eq!((status, evidence.unwrap().reported), (TaskStatus::Success, UpstreamReport::Success));
}

/// Counts how often a write is parsed, and for how many calls.
#[derive(Clone, Default)]
struct Parsing(Arc<[AtomicUsize; 2]>);

impl Parsing {
    fn parse(&self, write: &Write) -> String {
        self.0[1].fetch_add(1, Relaxed);
        let parsed = write.parse_once(|write| {
            self.0[0].fetch_add(1, Relaxed);
            write.arguments.expose().clone()
        });
        assert_eq!(*parsed, *write.arguments.expose());
        String::new()
    }
}

impl Executor for Parsing {
    fn facts(&self, write: &Write) -> Facts {
        self.parse(write);
        Facts::default()
    }

    fn baseline<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Ok(self.parse(write)) })
    }

    fn send<'a>(&'a self, write: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        self.parse(write);
        Box::pin(async { Sent::Ok })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        self.parse(write);
        Obedient.probe(write)
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_opened_and_parsed_once_for_the_steps_that_follow_each_other() {
    let executor = Parsing::default();
    let engine = engine(executor.clone(), &Clock::start_at(START)).await;
    let policy = PolicyDef { baseline: true, ..POLICY };
    let id = accept(&engine, WriteRequest { policy, ..write("printer", "p-1") }).await;
    assert_eq!(end(&engine, &id).await.status, TaskStatus::Success);
    let [parsed, calls] = [0, 1].map(|at| executor.0[at].load(Relaxed));
    println!("parsed {parsed} times for {calls} calls");
    assert!(parsed == 1 && calls >= 3, "parsed {parsed} times for {calls} calls");
}

struct Slow {
    clock: Clock,
    sends: u64,
    reads: u64,
}

impl Executor for Slow {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async {
            self.clock.sleep_until(self.clock.now().plus(Duration::from_secs(self.reads))).await;
            Ok("3".to_owned())
        })
    }

    fn send<'a>(&'a self, _: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            self.clock.sleep_until(leave.not_after().plus(Duration::from_secs(self.sends))).await;
            Sent::Ok
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            self.clock.sleep_until(self.clock.now().plus(Duration::from_secs(self.reads))).await;
            Obedient.probe(write).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_may_take_half_a_minute_and_a_send_ten_seconds_after_its_last_moment() {
    use TaskStatus::{Failed, Success, Timeout};
    use UpstreamReport::{NoAnswer, NotSent, Success as Done};
    for (sends, reads, ends) in [(9, 29, (Success, Done)), (11, 29, (Success, NoAnswer)), (9, 31, (Timeout, Done))] {
        let clock = Clock::start_at(START);
        let engine = engine(Slow { clock: clock.clone(), sends, reads }, &clock).await;
        let id = accept(&engine, write("printer", "p-1")).await;
        let TaskView { status, evidence, finished_at, deadline_at, .. } = end(&engine, &id).await;
        assert_eq!((status, evidence.unwrap().reported), ends, "{sends} {reads}");
        assert!(finished_at.unwrap() <= deadline_at.plus(Duration::from_mins(1)), "{sends} {reads}");
        let (policy, now) = (PolicyDef { baseline: true, ..POLICY }, clock.now());
        let id = accept(&engine, WriteRequest { policy, now, ..write("printer", "p-2") }).await;
        let TaskView { status, evidence, .. } = end(&engine, &id).await;
        let ends = if reads > 30 { (Failed, NotSent) } else { ends };
        assert_eq!((status, evidence.unwrap().reported), ends, "{sends} {reads}, compared");
    }
}

#[tokio::test]
async fn a_clock_that_ran_ahead_at_any_start_drops_no_nonce_that_the_right_clock_makes_valid_again() {
    let keep = async |store: &Arc<Memory>| {
        let clock = Clock::manual(START);
        let engine = Engine::start(parts(store, Obedient, &clock)).await.expect("a store that can be read");
        let (caller, now) = (caller("app", Grants::everything()), START.0 / 1000);
        let mut kept = Vec::new();
        for (nonce, signed, reads) in [("write", now, false), ("read", now + 299, true)] {
            let used = Nonces::new(clock.clone()).take(&caller, nonce, signed, reads).expect("unknown to this run");
            kept.push(engine.keep_nonce(&used).await.is_ok());
        }
        kept
    };
    let drops = async |store: &Arc<Memory>, hours, minutes| {
        let clock = Clock::manual(START.plus(Duration::from_hours(hours)));
        let engine = Engine::start(parts(store, Obedient, &clock)).await.expect("a store that can be read");
        let pass = async {
            for _ in 0..minutes {
                clock.advance(Duration::from_mins(1));
                tokio::task::yield_now().await;
            }
        };
        engine.run(pass).await;
        keep(store).await != [false, false]
    };
    for starts in [&[25][..], &[23, 46], &[24 * 400], &[0, 25, 0, 26]] {
        let store = Arc::default();
        assert_eq!(keep(&store).await, [true, true]);
        for hours in starts {
            assert!(!drops(&store, *hours, 10).await, "{starts:?}: {hours}");
        }
        assert!(drops(&store, 25, 12).await, "the signatures are over by every clock");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_waits_for_a_send_of_the_former_ones_from_its_own_start_on() {
    let (tables, clock) = (Memory::default(), Clock::start_at(START));
    let lead = async |executor: Arc<dyn Executor>, seconds| {
        let parts = Parts { executor, ..parts(&Arc::new(tables.lead()), Obedient, &clock) };
        let engine = Engine::start(parts).await.expect("a store that can be read");
        let leading = Arc::clone(&engine).run(tokio::time::sleep(Duration::from_secs(seconds)));
        (engine, tokio::spawn(leading))
    };
    let silent = || Arc::new(Slow { clock: clock.clone(), sends: 3_600, reads: 0 });
    let (first, _) = lead(silent(), 100).await;
    let id = accept(&first, write("printer", "p-1")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The second one leads for a shorter time than it waits.
    let (_, second) = lead(silent(), 10).await;
    second.await.expect("no panic");
    let begun = clock.now();
    let (third, _) = lead(Arc::new(Obedient), 100).await;
    let ended = end(&third, &id).await.finished_at.expect("its end").since(begun);
    assert!((17..20).contains(&ended.as_secs()), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_target_cools_down_longer_where_the_next_task_may_have_another_clock() {
    let clock = Clock::start_at(START);
    let mut starts = Vec::new();
    for store in [Memory::default(), Memory::default().lead()] {
        let engine = Engine::start(parts(&Arc::new(store), Obedient, &clock)).await.expect("a store that can be read");
        let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
        let begun = clock.now();
        accept(&engine, WriteRequest { now: begun, ..write("printer", "p-1") }).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = accept(&engine, WriteRequest { now: clock.now(), ..write("printer", "p-1") }).await;
        let next = poll(&engine, &caller("owner", Grants::nothing()), &next).await.expect("a task");
        starts.push(next.deadline_at.since(begun).as_secs());
        runner.abort();
    }
    assert_eq!(starts[1] - starts[0], 2, "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_loop_that_runs_turns() {
    let clock = Clock::start_at(START);
    let engine = engine(Obedient, &clock).await;
    let turns = async || tokio::time::timeout(Duration::from_secs(3_600), engine.turn()).await.is_ok();
    assert!(!turns().await, "it has not begun");
    let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
    assert!(turns().await && turns().await, "it runs");
    runner.abort();
    assert!(runner.await.is_err() && !turns().await, "it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_between_two_starts_holds_no_task_up() {
    let (store, earlier) = (Arc::default(), Clock::start_at(START.minus(Duration::from_hours(24))));
    let start = async |clock| Engine::start(parts(&store, Obedient, clock)).await.expect("a store that can be read");
    let later = Clock::manual(START);
    let id = accept(&*start(&later).await, write("printer", "p-1")).await;
    assert_eq!(end(&start(&earlier).await, &id).await.status, TaskStatus::Success);
    let took = earlier.now().since(START.minus(Duration::from_hours(24)));
    assert!(took < Duration::from_mins(3), "{took:?}");
}
