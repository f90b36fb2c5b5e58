//! The charge of a request to a budget that replicas share, through the pipeline.

use crate::pipeline::{TrailFolder, make_key, start_pipeline};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::sleep;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::access::Caller;
use toolwarrant_core::budgets::Budgets;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::cluster::ClusterStore;
use toolwarrant_core::documents::{Document, DocumentStore};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::Call;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Pipeline, SignedRequest, no_route};
use toolwarrant_core::reply::Answer;
use toolwarrant_core::store::Stored;
use toolwarrant_memory::Memory;
use toolwarrant_signing::{Request, sign};

const TICK: Duration = Duration::from_millis(10);
const START: Timestamp = Timestamp(1_790_000_000_000);

/// No tool works here.
#[derive(Debug)]
struct NoTools;

impl Handlers for NoTools {
    const CATALOGUE: &'static Catalogue = &crate::contract::CATALOGUE;

    async fn dispatch<'a>(&'a self, call: &'a Call<'a>, _: &'a str) -> Result<Answer, Failure> {
        Err(no_route(call))
    }
}

/// The documents of one replica, as long as it reaches them.
#[derive(Debug)]
struct BrokenLink(Memory, AtomicBool);

impl DocumentStore for BrokenLink {
    fn documents(&self, space: &'static str, keys: Vec<String>) -> Stored<'_, Vec<Document>> {
        if self.1.load(Relaxed) { Box::pin(std::future::pending()) } else { self.0.documents(space, keys) }
    }

    fn put_documents(&self, space: &'static str, documents: Vec<Document>) -> Stored<'_, Vec<bool>> {
        self.0.put_documents(space, documents)
    }
}

/// A replica with one key.
struct ChargingReplica {
    pipeline: Pipeline<NoTools>,
    clock: Clock,
    link: Arc<BrokenLink>,
    caller: Caller,
    _folder: TrailFolder,
}

impl ChargingReplica {
    fn join(store: &Memory, name: &str, limit: u32) -> Self {
        let (clock, store) = (Clock::manual(START), store.replica(name));
        let time = clock.clone();
        tokio::spawn(async move {
            loop {
                sleep(TICK).await;
                time.advance(TICK);
            }
        });
        let (access, caller) = make_key(limit, &clock);
        let epoch = store.epoch();
        let link = Arc::new(BrokenLink(store, AtomicBool::new(false)));
        let budgets = Budgets::new(link.clone(), epoch, clock.clone());
        let nonces = Nonces::new(clock.clone());
        let (pipeline, _, folder) = start_pipeline(NoTools, access, nonces, &clock);
        Self { pipeline: pipeline.with_budgets(budgets), clock, link, caller, _folder: folder }
    }

    /// Sends a signed read. Returns the code of its refusal, or "ok".
    async fn sign(&self, nonce: &str) -> &'static str {
        let timestamp = self.clock.wall().0 / 1000;
        let text = timestamp.to_string();
        let request = Request {
            key_id: "key",
            timestamp: &text,
            nonce,
            method: "GET",
            path: "/",
            query: "",
            idempotency_key: "",
            body: b"",
        };
        let canonical = request.canonical();
        let signature = sign("secret", &canonical);
        let (key_id, from) = ("key", None);
        let signed = SignedRequest { key_id, timestamp, nonce, canonical: &canonical, signature: &signature, from };
        match self.pipeline.verify(&signed, true).await {
            Ok((caller, charge)) => code(self.pipeline.admit(&caller, charge, 1).map(drop)),
            Err(failure) => code(Err(failure)),
        }
    }

    /// Sends a batch, whose head is charged first.
    async fn send(&self, requests: u32) -> &'static str {
        let head = self.pipeline.charge_head(&self.caller).await;
        code(self.pipeline.charge_budget(&self.caller, head, requests).await.map(drop))
    }
}

fn code(answer: Result<(), Failure>) -> &'static str {
    answer.map_or_else(|failure| failure.def().code, |()| "ok")
}

#[tokio::test(start_paused = true)]
async fn replicas_share_a_budget_on_both_interfaces_and_a_refused_request_uses_no_nonce() {
    let store = Memory::default();
    let [one, other] = ["one", "other"].map(|name| ChargingReplica::join(&store, name, 10));
    assert_eq!([one.sign("n-1").await, other.sign("n-2").await], ["ok"; 2]);
    assert_eq!([one.send(4).await, other.send(4).await], ["ok"; 2]);
    assert_eq!([one.sign("n-3").await, other.send(1).await, one.send(11).await], ["rate_limited"; 3]);
    assert_eq!([one.sign("n-1").await, other.sign("n-2").await], ["unauthenticated"; 2]);
    sleep(Duration::from_secs(62)).await;
    assert_eq!([one.sign("n-3").await, one.sign("n-3").await], ["ok", "unauthenticated"]);
    // A batch that does not fit gives its head back.
    assert_eq!(
        [other.send(10).await, other.send(9).await, other.send(1).await],
        ["rate_limited", "ok", "rate_limited"]
    );
}

#[tokio::test(start_paused = true)]
async fn of_equal_nonces_that_wait_for_the_budget_one_passes_and_one_is_charged() {
    let store = Memory::default();
    let one = ChargingReplica::join(&store, "equal", 3);
    let mut answers: [&str; 3] = tokio::join!(one.sign("n"), one.sign("n"), one.sign("n")).into();
    answers.sort_unstable();
    assert_eq!(answers, ["ok", "unauthenticated", "unauthenticated"]);
    assert_eq!([one.send(2).await, one.send(1).await], ["ok", "rate_limited"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_budget_cannot_be_read_is_refused_as_overloaded_and_uses_no_nonce() {
    let store = Memory::default();
    let one = ChargingReplica::join(&store, "cut", 10);
    one.link.1.store(true, Relaxed);
    assert_eq!([one.sign("n").await, one.send(1).await], ["overloaded"; 2]);
    one.link.1.store(false, Relaxed);
    assert_eq!([one.sign("n").await, one.send(9).await, one.send(1).await], ["ok", "ok", "rate_limited"]);
}
