//! The answers of a process whose lease is over: none leaves, and no key is called wrong.

use crate::contract::CATALOGUE;
use crate::pipeline::{FakeTasks, LONG, start_pipeline};
use crate::registry::{one, open_with, origin};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::json;
use toolwarrant_base::text::Secret;
use toolwarrant_core::access::{Caller, Credentials};
use toolwarrant_core::args::{Arguments, Reader};
use toolwarrant_core::catalogue::{Catalogue, PolicyDef, ToolDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::{Call, ToolCall};
use toolwarrant_core::lease::Lease;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Outcome, Pipeline, SignedRequest, ToolSteps, run};
use toolwarrant_core::reading;
use toolwarrant_core::registry::NewKey;
use toolwarrant_core::reply::{Answer, Frame, Reply, TargetIds};
use toolwarrant_core::revision::Revision;
use toolwarrant_core::store::ApplicationRow;
use toolwarrant_core::tasks::{LongPoll, Plan};
use toolwarrant_memory::Memory;
use toolwarrant_signing::Signer;

const POLICY: PolicyDef =
    PolicyDef { probe: None, baseline: false, idempotent: true, settle_seconds: 5, deadline_seconds: 30 };

struct SlowShop;

struct NoArguments;

impl Arguments for NoArguments {
    fn read(_: &mut Reader<'_>) -> Option<Self> {
        Some(Self)
    }
}

#[derive(Serialize)]
struct Floor {
    printers: Vec<String>,
}

impl TargetIds for Floor {}

/// A tool by its number: 0 reads, 1 reads and fails, 2 polls a task, 3 makes one.
struct SlowStep<const N: u8>;

impl<const N: u8> ToolSteps<SlowShop> for SlowStep<N> {
    type Args = NoArguments;
    type Proof = ();

    fn target(_: &NoArguments) -> Option<&str> {
        (N == 3).then_some("p-1")
    }

    fn task<'a>(_: &'static ToolDef, _: &'a NoArguments) -> Option<Plan<'a>> {
        (N == 3).then(|| Plan { key: None, policy: &POLICY, arguments: Secret::new("{}".to_owned()) })
    }

    async fn require<'a>(_: &'a SlowShop, _: &'a Call<'a>, _: &'a NoArguments) -> Result<(), Failure> {
        Ok(())
    }

    async fn invoke<'a>(_: &'a SlowShop, call: &'a Call<'a>, (): &'a (), _: NoArguments) -> Result<Outcome, Failure> {
        match N {
            0 => {
                tokio::time::sleep(LONG).await;
                Outcome::answer(call, Reply::from(Floor { printers: Vec::new() }))
            }
            1 => {
                tokio::time::sleep(LONG).await;
                Err(Failure::plain(CATALOGUE.roles.not_found))
            }
            2 => reading::outcome(call, "task", Some(20)).await,
            _ => Ok(Outcome::Command(Secret::new("{}".to_owned()))),
        }
    }
}

impl Handlers for SlowShop {
    const CATALOGUE: &'static Catalogue = &CATALOGUE;

    async fn dispatch<'a>(&'a self, call: &'a Call<'a>, raw: &'a str) -> Result<Answer, Failure> {
        match call.tool.name {
            "list_machines" => run::<Self, SlowStep<0>>(self, call, raw).await,
            "list_jobs" => run::<Self, SlowStep<1>>(self, call, raw).await,
            "get_job" => run::<Self, SlowStep<2>>(self, call, raw).await,
            _ => run::<Self, SlowStep<3>>(self, call, raw).await,
        }
    }
}

/// Over before a slow tool answers.
const LEASE: Duration = Duration::from_secs(5);

struct Server {
    clock: Clock,
    lease: Lease,
    key: NewKey,
    pipeline: Pipeline<SlowShop>,
    tasks: Arc<FakeTasks>,
    _folder: TempDir,
}

async fn serve() -> Server {
    let clock = Clock::start_at(Timestamp(1_800_000_000_000));
    let lease = Lease::new(clock.clone());
    lease.extend(lease.begin(), LEASE);
    let registry = open_with(&Arc::new(Memory::default()), &clock, Some(lease.clone())).await;
    let owner = one(&registry).await;
    let all = |row: &mut ApplicationRow| row.permissions = vec!["look".to_owned(), "print".to_owned()];
    let _ = registry.change(&owner, &origin(), all).await.expect("an application");
    let key = registry.issue_key(&owner, None, &origin()).await.expect("stored");
    let (pipeline, tasks, folder) = start_pipeline(SlowShop, registry.access(), Nonces::new(clock.clone()), &clock);
    let server = Server { clock, lease, key, pipeline, tasks, _folder: folder };
    server.extend(LEASE);
    server
}

impl Server {
    fn extend(&self, length: Duration) {
        self.lease.extend(self.lease.begin(), length);
    }

    fn authenticate(&self) -> Result<Caller, Failure> {
        let shown = Credentials { key_id: &self.key.key_id, secret: self.key.secret.expose() };
        self.pipeline.authenticate(Some(shown), None)
    }

    fn verify(&self, nonce: &str) -> Result<Caller, Failure> {
        let (now, canonical) = (self.clock.wall().0 / 1000, "canonical");
        let signature = Signer::new(self.key.secret.expose()).sign(canonical);
        let (key_id, timestamp, signature) = (&*self.key.key_id, now, &signature);
        let signed = SignedRequest { key_id, timestamp, nonce, canonical, signature, from: None };
        self.pipeline.verify(&signed, true).map(|(caller, _)| caller)
    }

    async fn call(&self, caller: &Caller, tool: &str) -> Result<Answer, Failure> {
        let arguments: &RawValue = json::read("{}").expect("an object");
        let asked = ToolCall { tool, arguments, request_id: "r", hold: LongPoll::Never, frame: Frame::Plain };
        self.pipeline.call(&self.pipeline.charge_budget(caller, None, 1)?, asked).await
    }
}

fn assert_refused<T>(answer: Result<T, Failure>, what: &str) {
    let Err(failure) = answer else { panic!("{what} is answered") };
    assert_eq!((failure.def().code, failure.retry_after_seconds()), ("overloaded", Some(1)), "{what}");
    let message = "this replica of the server cannot reach its store, so it does not know at present which keys are live: \
                   repeat the request after `retry_after_seconds`.";
    assert_eq!(failure.message(), message, "{what}");
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_no_request_is_answered_and_no_key_is_called_wrong() {
    let server = serve().await;
    let caller = server.authenticate().expect("a live key");
    assert!(server.verify("first").is_ok());
    tokio::time::sleep(LEASE).await;
    assert_refused(server.authenticate(), "authenticate");
    assert_refused(server.verify("second"), "verify");
    assert_refused(server.pipeline.renew(&caller), "renew");
    let admitted = server.pipeline.charge_budget(&caller, None, 1).unwrap();
    assert_refused(server.pipeline.list(&admitted, Revision::ALL[0], false), "tools/list");
    assert_refused(server.pipeline.instructions(&admitted, false), "initialize");
    for tool in ["list_machines", "get_job", "print_page"] {
        let called = tokio::time::timeout(Duration::from_millis(1), server.call(&caller, tool)).await;
        assert_refused(called.expect("at once"), tool);
    }
    let unknown = Credentials { key_id: "tk_unknown", secret: "ts_unknown" };
    assert_refused(server.pipeline.authenticate(Some(unknown), None), "another key");
    assert_eq!(server.pipeline.counts().unauthenticated.get(), 0);
    server.extend(LONG * 2);
    assert!(server.authenticate().is_ok() && server.verify("second").is_ok(), "its nonce was not used");
    assert!(server.call(&caller, "list_machines").await.is_ok());
    server.lease.end();
    server.extend(LEASE);
    assert_refused(server.authenticate(), "after the end for good");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_ready_after_the_lease_does_not_leave() {
    let server = serve().await;
    let caller = server.authenticate().expect("a live key");
    server.extend(LONG * 3 + Duration::from_secs(1));
    assert!(server.call(&caller, "list_machines").await.is_ok());
    for tool in ["list_jobs", "get_job"] {
        assert_eq!(*server.call(&caller, tool).await.unwrap_err().def(), *CATALOGUE.roles.not_found, "{tool}");
    }
    for tool in ["list_machines", "list_jobs", "get_job"] {
        server.extend(LEASE);
        let since = tokio::time::Instant::now();
        assert_refused(server.call(&caller, tool).await, tool);
        assert_eq!(since.elapsed(), LONG, "{tool}: a held poll stays held");
    }
    // The next leader may not have the task, so no answer would be true.
    server.tasks.accepts_after.store(8_000, Relaxed);
    server.extend(LEASE);
    assert!(tokio::time::timeout(LONG * 2, server.call(&caller, "print_page")).await.is_err(), "an acceptance");
    server.extend(LEASE);
    let (answered, ()) = tokio::join!(server.call(&caller, "print_page"), async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        server.extend(LEASE);
    });
    assert!(answered.is_ok(), "it leads again: {answered:?}");
    server.tasks.finds_after.store(8_000, Relaxed);
    server.extend(LEASE);
    assert_refused(server.call(&caller, "print_page").await, "a repetition");
}
