//! Policies on their way from the contract into a task.

use crate::pipeline::{make_key, start_pipeline};
use serde_json::value::RawValue;
use std::sync::Arc;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::json;
use toolwarrant_base::text::Secret;
use toolwarrant_core::access::Caller;
use toolwarrant_core::args::{Arguments, Reader};
use toolwarrant_core::catalogue::{Catalogue, PolicyDef, ToolDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::{Call, Flag, Resource, Target, ToolCall, Unresolved};
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Outcome, ToolSteps, require, run};
use toolwarrant_core::reply::{Answer, Frame};
use toolwarrant_core::tasks::{LongPoll, Plan};

const DECLARED: PolicyDef = PolicyDef {
    probe: Some("page_counter"),
    baseline: true,
    idempotent: false,
    settle_seconds: 5,
    deadline_seconds: 30,
};

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
    const CATALOGUE: &'static Catalogue = &crate::contract::CATALOGUE;

    async fn dispatch<'a>(&'a self, call: &'a Call<'a>, raw: &'a str) -> Result<Answer, Failure> {
        run::<Self, PrintPage>(self, call, raw).await
    }
}

#[tokio::test]
async fn a_task_is_accepted_under_the_terms_of_its_target() {
    let clock = Clock::manual(Timestamp(0));
    let (access, mut caller) = make_key(300, &clock);
    let said = |settle_seconds, deadline_seconds| PolicyDef { settle_seconds, deadline_seconds, ..DECLARED };
    let other = PolicyDef { probe: None, baseline: false, idempotent: true, ..said(60, 900) };
    let cases = [(DECLARED, DECLARED), (other, said(60, 900)), (said(60, 60), said(60, 85)), (said(1, 9), said(1, 9))];
    for (n, (says, expected)) in cases.into_iter().enumerate() {
        let nonces = Nonces::new(clock.clone());
        caller.nonce = nonces.take(&caller, &n.to_string(), 0, false).ok().map(Arc::new);
        let (pipeline, tasks, _folder) = start_pipeline(Shop(says), Arc::clone(&access), nonces, &clock);
        let arguments: &RawValue = json::read("{}").unwrap();
        let asked =
            ToolCall { tool: "print_page", arguments, request_id: "r", hold: LongPoll::Never, frame: Frame::Plain };
        pipeline.call(&pipeline.charge_budget(&caller, None, 1).unwrap(), asked).await.unwrap();
        drop(pipeline);
        assert_eq!(*tasks.policies.lock().unwrap(), [expected], "{says:?}");
    }
}
