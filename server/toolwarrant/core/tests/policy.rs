//! Policies on their way from the contract into a task: the parts that a target may decide, and the
//! rest.

use serde_json::value::RawValue;
use std::sync::{Arc, Mutex};
use toolwarrant_audit::{Audit, AuditParts};
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_core::access::UsedNonce;
use toolwarrant_core::access::{Access, Application, Caller, Credentials, Grants};
use toolwarrant_core::args::{Arguments, Reader};
use toolwarrant_core::catalogue::{Catalogue, PermissionSet, PolicyDef, ToolDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::{Call, Flag, Resource, Target, ToolCall, Unresolved};
use toolwarrant_core::limit::Window;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Outcome, Pipeline, ToolSteps, require, run};
use toolwarrant_core::reply::{Answer, Frame};
use toolwarrant_core::store::Stored;
use toolwarrant_core::tasks::{
    AcceptedTask, FreshWrite, LongPoll, Plan, Poll, Repeat, TaskPage, TaskQuery, TaskReadError, TaskView, Tasks,
    WriteRefusal, WriteRequest,
};

mod contract {
    //! The print shop's contract, written against this crate alone.
    toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
}

const DECLARED: PolicyDef = PolicyDef {
    probe: Some("page_counter"),
    baseline: true,
    idempotent: false,
    settle_seconds: 5,
    deadline_seconds: 30,
};

/// A shop with one printer, which decides how long a write takes.
struct Shop(PolicyDef);

impl Resource<()> for Shop {
    type View = PolicyDef;
    type Capability = ();

    async fn resolve(&self, _: &Caller, (): &()) -> Result<PolicyDef, Unresolved> {
        Ok(self.0)
    }

    fn flag(_: &PolicyDef, (): ()) -> Flag {
        Flag::Offered
    }

    fn policy(view: &PolicyDef, tool: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        assert_eq!((tool.name, declared), ("print_page", DECLARED));
        *view
    }
}

struct Nothing;

impl Arguments for Nothing {
    fn read(_: &mut Reader<'_>) -> Option<Self> {
        Some(Self)
    }
}

/// `print_page`, without its arguments.
struct PrintPage;

impl ToolSteps<Shop> for PrintPage {
    type Args = Nothing;
    type Proof = Target<PolicyDef>;

    fn target(_: &Nothing) -> Option<&str> {
        Some("p-1")
    }

    fn task<'a>(_: &'static ToolDef, _: &'a Nothing) -> Option<Plan<'a>> {
        Some(Plan { key: None, policy: &DECLARED, arguments: Secret::new("{}".to_owned()) })
    }

    async fn require<'a>(shop: &'a Shop, call: &'a Call<'a>, _: &'a Nothing) -> Result<Self::Proof, Failure> {
        require(shop, call, &(), None).await
    }

    async fn invoke<'a>(_: &'a Shop, _: &'a Call<'a>, _: &'a Self::Proof, _: Nothing) -> Result<Outcome, Failure> {
        Ok(Outcome::Command(Secret::new("{}".to_owned())))
    }
}

impl Handlers for Shop {
    const CATALOGUE: &'static Catalogue = &contract::CATALOGUE;

    async fn dispatch<'a>(&'a self, call: &'a Call<'a>, raw: &'a str) -> Result<Answer, Failure> {
        run::<Self, PrintPage>(self, call, raw).await
    }
}

/// Stores the policy of each accepted write.
#[derive(Debug, Default)]
struct Ledger(Mutex<Vec<PolicyDef>>);

impl Tasks for Ledger {
    fn repeat<'a>(&'a self, request: WriteRequest<'a>) -> BoxFuture<'a, Result<Repeat<'a>, WriteRefusal>> {
        Box::pin(async { Ok(Repeat::Fresh(request.with_fingerprint([0; 32]))) })
    }

    fn accept<'a>(
        &'a self,
        write: FreshWrite<'a>,
        _: Secret<String>,
    ) -> BoxFuture<'a, Result<AcceptedTask, WriteRefusal>> {
        assert!(write.nonce.is_some(), "it is kept with the task");
        self.0.lock().expect("no panic").push(write.policy);
        Box::pin(async { Err(WriteRefusal::Full) })
    }

    fn poll<'a>(&'a self, _: Poll<'a>) -> BoxFuture<'a, Result<TaskView, TaskReadError>> {
        Box::pin(async { Err(TaskReadError::NotFound) })
    }

    fn list<'a>(&'a self, _: &'a str, _: TaskQuery<'a>) -> BoxFuture<'a, Result<TaskPage, TaskReadError>> {
        Box::pin(async { Err(TaskReadError::NotFound) })
    }

    fn keep_nonce<'a>(&'a self, _: &'a UsedNonce) -> Stored<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_task_is_accepted_under_the_terms_of_its_target() {
    let access = Access::new(KeyRing::new("test", &[7; 32], Random::from_seed(1)));
    let window = Arc::new(Window::new(300));
    let all = Arc::new(Application::new("app", "app", PermissionSet(u64::MAX), Grants::everything(), window));
    access.change(|directory| {
        directory.put_key("key", &all, &[access.secret("app", "key", "secret", Timestamp(0)).unwrap()], None)
    });
    let mut caller = access
        .authenticate(Credentials { key_id: "key", secret: "secret" }, None, &Clock::manual(Timestamp(0)))
        .unwrap();
    let access = Arc::new(access);

    let said = |settle_seconds, deadline_seconds| PolicyDef { settle_seconds, deadline_seconds, ..DECLARED };
    let other = PolicyDef { probe: None, baseline: false, idempotent: true, ..said(60, 900) };
    // The policy of the target, and the policy of the task.
    let cases = [(DECLARED, DECLARED), (other, said(60, 900)), (said(60, 60), said(60, 85)), (said(1, 9), said(1, 9))];
    for (n, (says, expected)) in cases.into_iter().enumerate() {
        let tasks = Arc::new(Ledger::default());
        let folder = std::env::temp_dir().join(format!("policy-{}-{n}", std::process::id()));
        let key = KeyRing::new("test", &[7; 32], Random::System).chain_key();
        let parts = AuditParts { folder: &folder, key, clock: Clock::manual(Timestamp(0)), anchor: None };
        let audit = Audit::start(parts).unwrap();
        let clock = Clock::manual(Timestamp(0));
        let nonces = Nonces::new(clock.clone());
        caller.nonce = nonces.take(&caller, &n.to_string(), 0, false).ok().map(Arc::new);
        let pipeline = Pipeline::new(Shop(says), Arc::clone(&access), audit, tasks.clone(), nonces, clock);
        let arguments: &RawValue = serde_json::from_str("{}").unwrap();
        let asked =
            ToolCall { tool: "print_page", arguments, request_id: "r", hold: LongPoll::Never, frame: Frame::Plain };
        pipeline.call(&pipeline.charge_budget(&caller, None, 1).await.unwrap(), asked).await.unwrap_err();
        drop(pipeline);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(*tasks.0.lock().unwrap(), [expected], "{says:?}");
    }
}
