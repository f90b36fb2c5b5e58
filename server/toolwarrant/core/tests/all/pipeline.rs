//! Equipment of tests that call a pipeline, and the lines of calls that it refuses.

use crate::contract::CATALOGUE;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::sleep;
use toolwarrant_audit::{Audit, AuditParts, tail};
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::json;
use toolwarrant_base::keyring::{Digest, KeyRing};
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_core::access::{Access, Application, Caller, Credentials, Grants, UsedNonce};
use toolwarrant_core::catalogue::{Catalogue, ErrorDef, PermissionSet, Roles};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::{Call, ToolCall};
use toolwarrant_core::limit::Window;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_core::reply::{Answer, Frame};
use toolwarrant_core::store::Stored;
use toolwarrant_core::tasks::{
    LongPoll, Poll, TaskPage, TaskQuery, TaskReadError, TaskView, Tasks, WriteAnswer, WriteRefusal, WriteRequest,
};

pub(crate) const LONG: Duration = Duration::from_secs(8);

#[derive(Debug, Default)]
pub(crate) struct FakeTasks {
    /// Milliseconds until a write is found to be a repetition; 0 if it is not one.
    pub(crate) finds_after: AtomicU64,
    pub(crate) accepts_after: AtomicU64,
}

fn task_in_flight(hit: bool) -> WriteAnswer {
    let [task_id, tool, target] = ["task", "print_page", "p-1"].map(str::to_owned);
    WriteAnswer { task_id, tool, target, accepted_at: Timestamp(0), hit, matches: true }
}

impl Tasks for FakeTasks {
    fn fingerprint(&self, _: &str, _: &Secret<String>) -> Digest {
        Digest::default()
    }

    fn repeat<'a>(&'a self, _: &'a WriteRequest<'a>) -> BoxFuture<'a, Result<Option<WriteAnswer>, WriteRefusal>> {
        Box::pin(async {
            let after = self.finds_after.load(Relaxed);
            sleep(Duration::from_millis(after)).await;
            Ok((after > 0).then(|| task_in_flight(true)))
        })
    }

    fn accept<'a>(
        &'a self,
        _: WriteRequest<'a>,
        _: Secret<String>,
    ) -> BoxFuture<'a, Result<WriteAnswer, WriteRefusal>> {
        Box::pin(async {
            sleep(Duration::from_millis(self.accepts_after.load(Relaxed))).await;
            Ok(task_in_flight(false))
        })
    }

    fn poll<'a>(&'a self, _: Poll<'a>) -> BoxFuture<'a, Result<TaskView, TaskReadError>> {
        Box::pin(async {
            sleep(LONG).await;
            Err(TaskReadError::NotFound)
        })
    }

    fn list<'a>(&'a self, _: &'a str, _: TaskQuery<'a>) -> BoxFuture<'a, Result<TaskPage, TaskReadError>> {
        Box::pin(async { Err(TaskReadError::NotFound) })
    }

    fn find_write<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Option<String>, TaskReadError>> {
        Box::pin(async { Ok(None) })
    }

    fn keep_nonce<'a>(&'a self, _: &'a UsedNonce) -> Stored<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// Returns a folder that must be dropped after the pipeline.
pub(crate) fn start_pipeline<H: Handlers>(
    handlers: H,
    access: Arc<Access>,
    nonces: Nonces,
    clock: &Clock,
) -> (Pipeline<H>, Arc<FakeTasks>, TempDir) {
    let (folder, tasks) = (TempDir::new().expect("a folder"), Arc::new(FakeTasks::default()));
    let (key, file_max) = (keyring().chain_key(), u64::MAX);
    let parts = AuditParts { folder: folder.path(), key, clock: clock.clone(), anchor: None, file_max };
    let audit = Audit::start(parts).expect("a folder");
    let pipeline = Pipeline::new(handlers, access, audit, tasks.clone(), nonces, clock.clone());
    (pipeline, tasks, folder)
}

fn keyring() -> KeyRing {
    KeyRing::new("test", &[7; 32], Random::from_seed(1))
}

fn make_key(limit: u32, clock: &Clock) -> (Arc<Access>, Caller) {
    let (access, window) = (Access::new(keyring()), Arc::new(Window::new(limit)));
    let all = Arc::new(Application::new("app", "app", PermissionSet(u64::MAX), Grants::everything(), window));
    let secret = access.secret("app", "key", "secret", Timestamp(0)).expect("random bytes");
    access.change(|directory| directory.put_key("key", &all, std::slice::from_ref(&secret), None));
    let shown = Credentials { key_id: "key", secret: "secret" };
    let caller = access.authenticate(shown, None, clock).expect("a live key");
    (Arc::new(access), caller)
}

/// Refuses each call with one error.
struct Refusing(&'static ErrorDef);

impl Handlers for Refusing {
    const CATALOGUE: &'static Catalogue = &CATALOGUE;

    async fn dispatch<'a>(&'a self, _: &'a Call<'a>, _: &'a str) -> Result<Answer, Failure> {
        Err(Failure::plain(self.0))
    }
}

#[tokio::test]
async fn refused_reads_are_counted_and_of_refused_writes_those_that_changed_nothing() {
    let Roles { not_found, upstream_unavailable, internal, .. } = CATALOGUE.roles;
    for (tool, refusal, is_counted) in [
        ("list_machines", not_found, true),
        ("list_machines", upstream_unavailable, true),
        ("list_machines", internal, false),
        ("print_page", not_found, true),
        ("print_page", upstream_unavailable, false),
        ("print_page", internal, false),
    ] {
        let clock = Clock::manual(Timestamp(0));
        let (access, caller) = make_key(100, &clock);
        let (pipeline, _, folder) = start_pipeline(Refusing(refusal), access, Nonces::new(clock.clone()), &clock);
        // The first 60 in a minute have a line each.
        for _ in 0..62 {
            let arguments: &RawValue = json::read("{}").expect("an object");
            let asked = ToolCall { tool, arguments, request_id: "r", hold: LongPoll::Never, frame: Frame::Plain };
            let refused = pipeline.call(&pipeline.charge_budget(&caller, None, 1).expect("its budget"), asked).await;
            assert_eq!(refused.expect_err("no answer").def().code, refusal.code);
        }
        drop(pipeline);
        let lines = tail(folder.path(), 100).expect("a trail").len();
        assert_eq!(lines, if is_counted { 61 } else { 62 }, "{tool} {}", refusal.code);
    }
}
