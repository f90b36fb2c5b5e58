//! What those who watch a service are told: whether it serves, and what it counts.
//!
//! Each part of the program owns its counts. A page of them is made when somebody asks. Start at [`Probes`].

use crate::names::Names;
use crate::prometheus::Page;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::audit::Backlog;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::counts::Requests;
use toolwarrant_core::store::StoreError;
use toolwarrant_http::edge::ConnectionLimiter;
use toolwarrant_http::monitor::Watched;
use toolwarrant_store::sqlite::Sqlite;
use toolwarrant_store::{Integrity, Rule, VIOLATIONS_MAX};
use toolwarrant_tasks::engine::Engine;

/// How long the store may take for an answer about itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// How late the engine may be before writes are better sent elsewhere.
const LATE: Duration = Duration::from_secs(60);

/// What the program consists of once it serves.
pub struct Sources {
    /// Where tasks are kept.
    pub database: Arc<Sqlite>,
    /// What drives them.
    pub engine: Arc<Engine>,
    /// What the pipeline counts.
    pub requests: Arc<Requests>,
    /// How full the audit is.
    pub backlog: Backlog,
    /// Who is connected.
    pub limiter: Arc<ConnectionLimiter>,
}

/// A program that is watched from before it serves until after it has stopped.
pub struct Probes {
    names: Arc<Names>,
    begun: Timestamp,
    sources: OnceLock<Sources>,
    stopping: AtomicBool,
    /// The write that tries the store, of which there is one at a time: it goes on when those who wait for it leave.
    touch: Mutex<JoinSet<Result<(), StoreError>>>,
}

impl Probes {
    /// A program that began then, and does not serve yet.
    #[must_use]
    pub fn new(names: Arc<Names>, begun: Timestamp) -> Self {
        Self { names, begun, sources: OnceLock::new(), stopping: AtomicBool::new(false), touch: Mutex::default() }
    }

    /// From now on the program serves.
    pub fn serves(&self, sources: Sources) {
        let _ = self.sources.set(sources);
    }

    /// From now on the program takes nothing on, and ends what it has.
    pub fn stops(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Ends what is under way for those who watch, so that nothing keeps the store open.
    pub async fn release(&self) {
        self.touch.lock().await.shutdown().await;
    }
}

impl Watched for Probes {
    fn unready(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(self.why_unready())
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        Box::pin(self.page())
    }
}

impl Probes {
    /// Why requests are better sent elsewhere, if they are.
    async fn why_unready(&self) -> Option<String> {
        if self.stopping.load(Relaxed) {
            return Some("the program stops".to_owned());
        }
        let Some(Sources { database, engine, .. }) = self.sources.get() else {
            return Some("the program starts".to_owned());
        };
        let lag = engine.lag();
        if lag > LATE {
            return Some(format!("the engine is {} s late", lag.as_secs()));
        }
        match timeout(PATIENCE, self.touch(database)).await {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(format!("the store cannot write: {why}")),
            Err(_) => Some(format!("the store has written nothing for {} s", PATIENCE.as_secs())),
        }
    }

    /// Writes nothing that matters; joins whoever does so already.
    async fn touch(&self, database: &Arc<Sqlite>) -> Result<(), StoreError> {
        let mut touch = self.touch.lock().await;
        // One that ended while nobody waited tells of a time that may be long past.
        while touch.try_join_next().is_some() {}
        if touch.is_empty() {
            let database = Arc::clone(database);
            touch.spawn(async move { database.touch().await });
        }
        touch
            .join_next()
            .await
            .and_then(Result::ok)
            .unwrap_or_else(|| Err(StoreError::Unavailable("it panicked".to_owned())))
    }

    async fn page(&self) -> String {
        let mut page = Page::new(&self.names.metrics);
        page.head("build_info", "gauge", "The program that runs; always 1.");
        page.sample("build_info", &[("version", self.names.version)], 1);
        page.start_time(self.begun);
        if let Some(Sources { database, engine, requests, backlog, limiter }) = self.sources.get() {
            served(&mut page, requests, limiter, backlog);
            driven(&mut page, engine);
            kept(&mut page, database, self.names.program).await;
        }
        page.text()
    }
}

fn served(page: &mut Page<'_>, requests: &Requests, limiter: &ConnectionLimiter, backlog: &Backlog) {
    page.gauge("connections", "Connections of clients that are open.", limiter.connections());
    let help = "Connections that were closed unanswered, because there were too many.";
    page.counter("connections_refused_total", help, limiter.refused.get());
    let Requests { unauthenticated, rate_limited, .. } = requests;
    let refused = [("unauthenticated", unauthenticated.get()), ("rate_limited", rate_limited.get())];
    let help = "Requests that were refused before they were looked at.";
    page.counters("requests_refused_total", help, "reason", refused.into_iter());
    page.head("tool_calls_total", "counter", "Calls of tools, by how they ended: ok, cancelled, or an error code.");
    for calls in requests.tools() {
        for (outcome, count) in calls.outcomes() {
            page.sample("tool_calls_total", &[("tool", calls.tool.name), ("outcome", outcome)], count);
        }
    }
    let name = "tool_call_duration_seconds";
    page.head(name, "histogram", "How long calls of tools took; the one that reads a task waits if it is asked to.");
    for calls in requests.tools() {
        page.histogram(name, ("tool", calls.tool.name), &calls.took);
    }
    let help = "Places in the audit that are taken, by calls that run and by lines that are not yet in a file.";
    page.gauge("audit_backlog", help, backlog.places());
}

fn driven(page: &mut Page<'_>, engine: &Engine) {
    let counts = engine.counts();
    page.counter("tasks_accepted_total", "Tasks that were taken on.", counts.accepted.get());
    page.counters("tasks_ended_total", "Tasks that ended.", "status", counts.ends());
    page.gauge("tasks_in_flight", "Tasks that have not ended.", engine.in_flight());
    let help = "Writes that were sent to the platform, by what came of it.";
    page.counters("task_sends_total", help, "outcome", counts.sends());
    page.counters("ledger_entries_total", "Entries in the ledger.", "kind", counts.entries());
    let help = "How late the engine is in looking at the task that is due first.";
    page.gauge("engine_lag_seconds", help, engine.lag().as_secs_f64());
    page.gauge("held_polls", "Calls that wait for the end of a task.", engine.held());
}

async fn kept(page: &mut Page<'_>, database: &Sqlite, program: &str) {
    let (written, waiting) = database.written();
    page.counter("store_commits_total", "Transactions that were committed.", written.commits.get());
    page.counter("store_writes_total", "Requests in these transactions.", written.requests.get());
    page.counter("store_commit_failures_total", "Transactions that failed.", written.failures.get());
    page.gauge("store_queue", "Requests that wait for the next transaction.", waiting);
    // Without an answer there is no sample: a number from before would say that all is well.
    if let Ok(Ok(broken)) = timeout(PATIENCE, database.violations(Rule::Refunds)).await {
        let help =
            format!("Tasks whose refund is missing or not due, at most {VIOLATIONS_MAX}; see `{program} doctor`.");
        page.gauge("refund_invariant_violations", &help, broken.len());
    }
}
