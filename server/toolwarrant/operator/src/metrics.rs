//! The readiness of a service, and its metrics. Each part of the program owns its counts. Start at
//! [`ServiceStatus`].

use crate::names::Names;
use crate::prometheus::Page;
use crate::replica_status::ReplicaStatus;
use crate::upstreams::{self, Upstreams};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::counts::{LOST_LINES, Requests};
use toolwarrant_core::store::StoreError;
use toolwarrant_http::edge::ConnectionLimiter;
use toolwarrant_http::monitor::MonitorSource;
use toolwarrant_postgres::Waiting;
use toolwarrant_store::{IntegrityRule, Store, VIOLATIONS_MAX, WriteFigures};
use toolwarrant_tasks::engine::Engine;

const STORE_TIMEOUT: Duration = Duration::from_secs(2);

const LAG_MAX: Duration = Duration::from_secs(60);

pub struct StatusSources {
    pub database: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub requests: Arc<Requests>,
    pub audit: AuditHandle,
    pub limiter: Arc<ConnectionLimiter>,
    pub upstreams: Option<Arc<dyn Upstreams>>,
    pub replica: Option<ReplicaStatus>,
}

pub struct ServiceStatus {
    names: Arc<Names>,
    started_at: Timestamp,
    sources: OnceLock<StatusSources>,
    waiting: OnceLock<watch::Receiver<Waiting>>,
    handing_over: AtomicBool,
    stopping: AtomicBool,
    /// At most one test write runs; it continues if the requests that wait for it are dropped.
    test_write: Mutex<JoinSet<Result<(), StoreError>>>,
}

impl ServiceStatus {
    #[must_use]
    pub fn new(names: Arc<Names>, started_at: Timestamp) -> Self {
        Self {
            names,
            started_at,
            sources: OnceLock::new(),
            waiting: OnceLock::new(),
            handing_over: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            test_write: Mutex::default(),
        }
    }

    pub fn set_waiting(&self, why: watch::Receiver<Waiting>) {
        let _ = self.waiting.set(why);
    }

    pub fn set_serving(&self, sources: StatusSources) {
        let _ = self.sources.set(sources);
    }

    /// Keeps the program ready until it stops, because the balancer must have a place for the
    /// requests that wait.
    pub fn set_handing_over(&self) {
        self.handing_over.store(true, Relaxed);
    }

    pub fn set_stopping(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Returns once all loops that serve have turned. A start has none yet.
    pub async fn turn(&self) {
        if let Some(StatusSources { engine, audit, .. }) = self.sources.get() {
            engine.turn().await;
            audit.turn().await;
        }
    }

    /// Cancels a running test write, so that it does not keep the store open.
    pub async fn release(&self) {
        self.test_write.lock().await.shutdown().await;
    }
}

impl MonitorSource for ServiceStatus {
    fn unready(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(self.why_unready())
    }

    fn remark(&self) -> Option<String> {
        let StatusSources { engine, upstreams, replica, .. } = self.sources.get()?;
        let upstreams = upstreams.as_ref().and_then(|upstreams| upstreams::remark(&upstreams.states()));
        let tasks = engine.describe_unreadable().into_iter();
        let server = replica.iter().flat_map(ReplicaStatus::remarks);
        let remarks: Vec<_> = tasks.chain(upstreams).chain(server).collect();
        (!remarks.is_empty()).then(|| remarks.join("\n"))
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        Box::pin(self.page())
    }
}

impl ServiceStatus {
    async fn why_unready(&self) -> Option<String> {
        if self.stopping.load(Relaxed) {
            return Some("the program is stopping".to_owned());
        }
        if self.handing_over.load(Relaxed) {
            return None;
        }
        let Some(StatusSources { database, engine, audit, replica, .. }) = self.sources.get() else {
            let why = self.waiting.get().map(|why| why.borrow().clone());
            return Some(why.unwrap_or_default().to_string());
        };
        if let Some(replica) = replica {
            replica.refresh().await;
            if let Some(why) = replica.why_unready().await {
                return Some(why);
            }
        }
        let lag = engine.lag();
        if lag > LAG_MAX {
            return Some(format!("the engine is {} s late", lag.as_secs()));
        }
        let fault = match timeout(STORE_TIMEOUT, self.test_write(database)).await {
            Ok(Ok(())) => {
                let stale = audit.stale();
                return stale.map(|waited| format!("the audit has not been written for {} s", waited.as_secs()));
            }
            Ok(Err(why)) => format!("the store cannot write: {why}"),
            Err(_) => format!("the store has not written for {} s", STORE_TIMEOUT.as_secs()),
        };
        match replica {
            Some(replica) => Some(replica.explain(fault).await),
            None => Some(fault),
        }
    }

    async fn test_write(&self, database: &Arc<dyn Store>) -> Result<(), StoreError> {
        let mut running = self.test_write.lock().await;
        // The outcome of a test write for which no request waited may be old.
        while running.try_join_next().is_some() {}
        if running.is_empty() {
            let database = Arc::clone(database);
            running.spawn(async move { database.touch().await });
        }
        running
            .join_next()
            .await
            .and_then(Result::ok)
            .unwrap_or_else(|| Err(StoreError::Unavailable("the test write panicked".to_owned())))
    }

    async fn page(&self) -> String {
        let mut page = Page::new(&self.names.metrics);
        page.head("build_info", "gauge", "Version of the running program; always 1.");
        page.sample("build_info", &[("version", self.names.version)], 1);
        page.start_time(self.started_at);
        let help = "Lines of the log or of standard output that were lost because they were not read in time.";
        page.counter("log_lines_lost_total", help, LOST_LINES.get());
        if let Some(sources) = self.sources.get() {
            let StatusSources { database, engine, requests, audit, limiter, upstreams, replica } = sources;
            request_metrics(&mut page, requests, limiter, audit);
            task_metrics(&mut page, engine);
            if let Some(upstreams) = upstreams {
                upstreams::metrics(&mut page, &upstreams.states());
            }
            let broken = match replica {
                Some(replica) => {
                    replica.refresh().await;
                    replica.metrics(&mut page);
                    replica.refund_violations()
                }
                None => count_refund_violations(&**database).await,
            };
            store_metrics(&mut page, database.writes(), broken, self.names.program);
        }
        page.text()
    }
}

fn request_metrics(page: &mut Page<'_>, requests: &Requests, limiter: &ConnectionLimiter, audit: &AuditHandle) {
    page.gauge("connections", "Open connections of clients.", limiter.connections());
    let help = "Connections that were closed without an answer because there were too many.";
    page.counter("connections_refused_total", help, limiter.refused.get());
    let Requests { unauthenticated, rate_limited, unsound, .. } = requests;
    let refused =
        [("unauthenticated", unauthenticated.get()), ("rate_limited", rate_limited.get()), ("unsound", unsound.get())];
    let help = "Requests that were refused before they reached a tool.";
    page.counters("requests_refused_total", help, "reason", refused.into_iter());
    page.head("tool_calls_total", "counter", "Tool calls, by outcome: ok, cancelled, or an error code.");
    for calls in requests.tools() {
        for (outcome, count) in calls.outcomes() {
            page.sample("tool_calls_total", &[("tool", calls.tool.name), ("outcome", outcome)], count);
        }
    }
    let name = "tool_call_duration_seconds";
    page.head(name, "histogram", "Duration of tool calls; the tool that reads a task waits on request.");
    for calls in requests.tools() {
        page.histogram(name, ("tool", calls.tool.name), &calls.took);
    }
    let help = "Places in the audit queue that are taken by running calls and by lines that are not yet in a file.";
    page.gauge("audit_backlog", help, audit.slots());
}

fn task_metrics(page: &mut Page<'_>, engine: &Engine) {
    let counts = engine.counts();
    page.counter("tasks_accepted_total", "Accepted tasks.", counts.accepted.get());
    page.counters("tasks_ended_total", "Tasks that ended.", "status", counts.ends());
    page.gauge("tasks_in_flight", "Tasks that have not ended.", engine.in_flight());
    let help = "Writes that were sent to the platform, by outcome.";
    page.counters("task_sends_total", help, "outcome", counts.sends());
    page.counters("ledger_entries_total", "Entries in the ledger.", "kind", counts.entries());
    let help = "Refunds on a target that had another one within a day.";
    page.counter("repeated_refunds_total", help, counts.repeated_refunds.get());
    let help = "Time by which the task that is due first is late.";
    page.gauge("engine_lag_seconds", help, engine.lag().as_secs_f64());
    page.gauge("held_polls", "Calls that wait for the end of a task.", engine.poll_count());
}

async fn count_refund_violations(database: &dyn Store) -> Option<usize> {
    let found = timeout(STORE_TIMEOUT, database.violations(IntegrityRule::Refunds)).await;
    found.ok().and_then(Result::ok).map(|broken| broken.len())
}

fn store_metrics(page: &mut Page<'_>, writes: WriteFigures, broken: Option<usize>, program: &str) {
    let WriteFigures { commits, requests, failures, waiting } = writes;
    page.counter("store_commits_total", "Committed transactions.", commits);
    page.counter("store_writes_total", "Requests in these transactions.", requests);
    page.counter("store_commit_failures_total", "Failed transactions.", failures);
    page.gauge("store_queue", "Requests that wait for the next transaction.", waiting);
    if let Some(broken) = broken {
        let help =
            format!("Tasks whose refund is missing or not due, at most {VIOLATIONS_MAX}; see `{program} doctor`.");
        page.gauge("refund_invariant_violations", &help, broken);
    }
}
