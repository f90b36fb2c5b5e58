//! The engine with a store in memory, and an executor with only the required methods.

mod replicas;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::broadcast::error::TryRecvError;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_core::access::{Access, Application, Caller, Credentials, Granted, Grants};
use toolwarrant_core::catalogue::{PermissionSet, PolicyDef};
use toolwarrant_core::limit::Window;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::store::StoreError;
use toolwarrant_core::tasks::{
    Evidence, FreshWrite, LongPoll, Poll, Repeat, TaskPage, TaskQuery, TaskReadError, TaskStatus, TaskView, Tasks,
    UpstreamReport, WriteRequest,
};
use toolwarrant_memory::Memory;
use toolwarrant_tasks::engine::{Engine, Parts, TaskNotice};
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::{Facts, Provability, Sent};
use toolwarrant_tasks::store::TaskStore;
use toolwarrant_tasks::task::{Reading, Status, TaskId, Verdict};

const START: Timestamp = Timestamp(1_800_000_000_000);

const POLICY: PolicyDef =
    PolicyDef { probe: Some("paper"), baseline: false, idempotent: false, settle_seconds: 5, deadline_seconds: 60 };

/// An executor whose sends and probes always succeed.
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

/// An executor that loses every answer. It can look up the outcome of a request only if its
/// arguments contain `known`.
#[derive(Default)]
struct Forgetful {
    sends: AtomicU32,
    looked_up: AtomicU32,
}

impl Executor for Forgetful {
    fn facts(&self, write: &Write) -> Facts {
        Facts { looks_up: write.arguments.expose().contains("known"), ..Facts::default() }
    }

    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        self.sends.fetch_add(1, Relaxed);
        Box::pin(std::future::pending())
    }

    fn look_up<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        self.looked_up.fetch_add(1, Relaxed);
        Box::pin(async { Ok(Some(Sent::Ok)) })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Obedient.probe(write)
    }
}

fn keyring() -> KeyRing {
    KeyRing::new("test", &[7; 32], Random::from_seed(1))
}

/// Returns an engine that drives no task until it is run.
async fn engine(executor: impl Executor, clock: &Clock) -> Arc<Engine> {
    engine_on(&Arc::default(), Arc::new(executor), clock).await
}

async fn engine_on(store: &Arc<Memory>, executor: Arc<dyn Executor>, clock: &Clock) -> Arc<Engine> {
    Engine::start(parts(store, executor, clock)).await.expect("a store that can be read")
}

fn parts(store: &Arc<Memory>, executor: Arc<dyn Executor>, clock: &Clock) -> Parts {
    Parts {
        store: store.clone(),
        executor,
        catalogue: None,
        keyring: keyring(),
        clock: clock.clone(),
        random: Random::from_seed(1),
        max_in_flight: 2_000,
    }
}

/// Returns a write of the application `owner`.
fn write(resource: &'static str, target: &str) -> WriteRequest<'static> {
    WriteRequest {
        application: "owner",
        tool: "print",
        resource,
        target: target.into(),
        key: None,
        policy: POLICY,
        arguments: Secret::new(format!("{{\"target\":\"{target}\"}}")),
        nonce: None,
        now: START,
    }
}

/// Calls `repeat` for a write and expects that it is not a duplicate.
async fn fresh<'a>(engine: &'a Engine, write: WriteRequest<'a>) -> FreshWrite<'a> {
    match engine.repeat(write).await.expect("a store that can be read") {
        Repeat::Fresh(write) => write,
        Repeat::Hit(task) => panic!("a repeat of {task:?}"),
    }
}

/// Accepts a write and returns the id of its task.
async fn accept(engine: &Engine, write: WriteRequest<'_>) -> String {
    let command = write.arguments.clone();
    engine.accept(fresh(engine, write).await, command).await.expect("a new write").task_id
}

/// Returns a caller with a key of an application with these grants.
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

/// Runs an engine until the task has ended, and returns its state.
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
    // The probe compares, and there is no reading from before the send: it is sent without one.
    let compared = WriteRequest { policy: PolicyDef { baseline: true, ..POLICY }, ..write("printer", "p-2") };
    let id = accept(&engine, compared).await;
    let TaskView { status, evidence, .. } = end(&engine, &id).await;
    assert_eq!((status, evidence.unwrap().reported), (TaskStatus::Success, UpstreamReport::Success));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_is_notified_of_each_change_of_a_task_and_learns_that_it_missed_some() {
    let engine = engine(Obedient, &Clock::start_at(START)).await;
    end(&engine, &accept(&engine, write("printer", "p-1")).await).await;
    let mut watcher = engine.watch();
    let id = accept(&engine, write("printer", "p-2")).await;
    end(&engine, &id).await;
    let mut notices = Vec::new();
    while let Ok(TaskNotice { id: changed, ended }) = watcher.try_recv() {
        assert_eq!(changed.to_string(), id);
        notices.push(ended);
    }
    assert!(notices.len() > 2, "{notices:?}");
    assert_eq!(notices.iter().flatten().count(), 1);
    assert_eq!(notices.last(), Some(&Some(Status::Success)));
    for printer in 0..1_100 {
        accept(&engine, write("printer", &format!("q-{printer}"))).await;
    }
    assert!(matches!(watcher.try_recv(), Err(TryRecvError::Lagged(_))));
}

#[tokio::test(start_paused = true)]
async fn facts_are_asked_for_each_write_whose_answer_was_lost() {
    for (target, looked_up) in [("known", 1), ("new", 0)] {
        let (store, executor) = (Arc::default(), Arc::new(Forgetful::default()));
        let clock = Clock::start_at(START);
        let died = engine_on(&store, executor.clone(), &clock).await;
        let id = accept(&died, write("printer", target)).await;
        let runner = tokio::spawn(Arc::clone(&died).run(std::future::pending()));
        while executor.sends.load(Relaxed) == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        runner.abort();
        let found = engine_on(&store, executor.clone(), &clock).await;
        let TaskView { evidence, .. } = end(&found, &id).await;
        assert_eq!(executor.looked_up.load(Relaxed), looked_up, "{target}");
        assert_eq!(
            evidence.unwrap().reported,
            [UpstreamReport::NoAnswer, UpstreamReport::Success][looked_up as usize],
            "{target}"
        );
    }
}

/// An executor that no longer serves its target.
struct Gone;

impl Executor for Gone {
    fn facts(&self, _: &Write) -> Facts {
        Facts { gone: Some("its printer was removed"), ..Facts::default() }
    }

    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::NotSent("there is no such printer".into()) })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        let reading = Reading { verdict: Verdict::Unreadable, expected: "paper".into(), observed: "nothing".into() };
        Box::pin(async { reading })
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_target_was_removed_fails_at_once_if_unsent_and_otherwise_times_out() {
    let (store, clock) = (Arc::default(), Clock::start_at(START));
    let forgetful = Arc::new(Forgetful::default());
    let died = engine_on(&store, forgetful.clone(), &clock).await;
    let sent = accept(&died, write("printer", "new")).await;
    let runner = tokio::spawn(Arc::clone(&died).run(std::future::pending()));
    while forgetful.sends.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    runner.abort();
    let _ = runner.await;
    let policy = PolicyDef { baseline: true, settle_seconds: 60, deadline_seconds: 240, ..POLICY };
    let unsent = accept(&died, WriteRequest { policy, now: clock.now(), ..write("printer", "p-2") }).await;
    let found = engine_on(&store, Arc::new(Gone), &clock).await;
    let began = clock.now();
    let TaskView { status, evidence, finished_at, .. } = end(&found, &unsent).await;
    assert_eq!((status, finished_at.expect("an end").since(began)), (TaskStatus::Failed, Duration::ZERO));
    let Evidence { observed, reported, .. } = evidence.expect("an end");
    assert_eq!(observed.as_str(), "no request ever left, so nothing was done; its printer was removed");
    assert_eq!(reported, UpstreamReport::NotSent);
    let TaskView { status, evidence, .. } = end(&found, &sent).await;
    assert_eq!((status, evidence.expect("an end").reported), (TaskStatus::Timeout, UpstreamReport::NoAnswer));
}

/// An executor that takes a given number of seconds to answer a send and to take a reading, and has
/// fixed provable directions.
struct Slow {
    clock: Clock,
    sends: u64,
    reads: u64,
    provability: Provability,
}

impl Executor for Slow {
    fn facts(&self, _: &Write) -> Facts {
        Facts { provability: self.provability, ..Facts::default() }
    }

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
        let engine = engine(Slow { clock: clock.clone(), sends, reads, provability: Provability::Both }, &clock).await;
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

#[tokio::test(start_paused = true)]
async fn an_operator_reads_in_the_timeline_why_a_success_was_not_verified() {
    let (clock, store) = (Clock::start_at(START), Arc::default());
    let blind = Slow { clock: clock.clone(), sends: 0, reads: 0, provability: Provability::Nothing("it has no eyes") };
    let engine = engine_on(&store, Arc::new(blind), &clock).await;
    let compared = WriteRequest { policy: PolicyDef { baseline: true, ..POLICY }, ..write("printer", "p-1") };
    let id = accept(&engine, compared).await;
    let TaskView { status, evidence, finished_at, .. } = end(&engine, &id).await;
    assert_eq!((status, finished_at), (TaskStatus::SuccessUnverified, Some(START.plus(Duration::from_secs(5)))));
    let Evidence { checked, observed, .. } = evidence.expect("an end");
    let why = "nothing can be checked: it has no eyes";
    assert_eq!((&*checked, observed.as_str()), ("upstream_answer", &*format!("it says that it is done; {why}")));
    let lines = store.timeline(TaskId::parse(&id).expect("an id")).await.expect("a store");
    let lines: Vec<_> = lines.iter().map(|line| (line.phase, line.what.to_string())).collect();
    let done = format!("send: the upstream says that it is done; {why}");
    let expected = [("ready", "accepted"), ("sending", "due"), ("success_unverified", &*done)];
    assert_eq!(lines, expected.map(|(phase, what)| (phase, what.to_owned())));
}

#[tokio::test]
async fn the_nonce_of_a_write_is_stored_with_its_task_or_refusal_and_known_after_a_start() {
    let clock = Clock::manual(START);
    let engine = engine(Obedient, &clock).await;
    let nonces = Nonces::new(clock.clone());
    let caller = caller("app", Grants::everything());
    let used = ["fresh", "hit", "busy"].map(|nonce| nonces.take(&caller, nonce, 0, false).expect("new"));
    let mut race = Vec::new();
    for (nonce, arguments) in used.iter().zip(["{\"n\":1}", "{\"n\":1}", "{}"]) {
        let arguments = Secret::new(arguments.to_owned());
        race.push(fresh(&engine, WriteRequest { nonce: Some(nonce), arguments, ..write("printer", "p-1") }).await);
    }
    for write in race {
        let _ = engine.accept(write, Secret::new("{}".to_owned())).await;
    }
    engine.keep_nonce(&nonces.take(&caller, "refused", 0, false).expect("new")).await.expect("kept");
    for nonce in ["fresh", "hit", "busy", "refused"] {
        let repeated = Nonces::new(clock.clone()).take(&self::caller("app", Grants::everything()), nonce, 0, false);
        let repeated = engine.keep_nonce(&repeated.expect("unknown to another run")).await;
        assert!(matches!(repeated, Err(StoreError::Conflict(_))), "{nonce}: {repeated:?}");
    }
}
