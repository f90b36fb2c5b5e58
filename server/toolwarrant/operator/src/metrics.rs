//! The readiness of a service, and its metrics. Each part of the program owns its counts. Start at
//! [`ServiceStatus`].

use crate::answers::{ServerFacts, ServerLoad, UpstreamRow};
use crate::history::{History, HistoryPoint, Totals};
use crate::metric;
use crate::names::Names;
use crate::prometheus::MetricsPage;
use crate::replica_status::ReplicaStatus;
use crate::system::{self, SystemFigure};
use crate::upstreams::{self, Upstreams};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::access::Access;
use toolwarrant_core::counts::{LOST_LINES, Requests};
use toolwarrant_core::store::StoreError;
use toolwarrant_http::edge::ConnectionLimiter;
use toolwarrant_http::monitor::MonitorSource;
use toolwarrant_postgres::Waiting;
use toolwarrant_store::{IntegrityRule, Store, WriteFigures};
use toolwarrant_tasks::engine::Engine;

const STORE_TIMEOUT: Duration = Duration::from_secs(2);

const LAG_MAX: Duration = Duration::from_secs(60);

const KEYS_WITHIN: Duration = Duration::from_hours(7 * 24);

pub struct StatusSources {
    pub database: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub requests: Arc<Requests>,
    pub audit: AuditHandle,
    pub limiter: Arc<ConnectionLimiter>,
    pub upstreams: Option<Arc<dyn Upstreams>>,
    pub replica: Option<ReplicaStatus>,
    pub access: Arc<Access>,
    pub clock: Clock,
    pub folder: PathBuf,
}

pub struct ServiceStatus {
    names: Arc<Names>,
    started_at: Timestamp,
    sources: OnceLock<StatusSources>,
    waiting: OnceLock<watch::Receiver<Waiting>>,
    handing_over: AtomicBool,
    stopping: AtomicBool,
    history: History,
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
            history: History::default(),
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
    /// Returns the beginnings of the ids of targets, one for each upstream that has one.
    pub(crate) fn prefixes(&self) -> Vec<String> {
        let upstreams = self.sources.get().and_then(|sources| sources.upstreams.as_ref());
        upstreams.iter().flat_map(|upstreams| upstreams.states()).filter_map(|state| state.prefix).collect()
    }

    /// Returns the last call that did not reach its upstream, since this time.
    pub(crate) fn describe_unavailable(&self, since: Timestamp) -> Option<String> {
        let (at, tool, why) = self.sources.get()?.requests.unavailable.last().filter(|(at, ..)| *at >= since)?;
        Some(format!("`{tool}` at {at}: {why}"))
    }

    /// Adds a point to its history. Call it once a minute.
    pub fn note_minute(&self, now: Timestamp) {
        if let Some(sources) = self.sources.get() {
            self.history.note(count(sources, now));
        }
    }

    /// Returns how it does, with its last 24 hours.
    pub(crate) async fn describe(&self) -> ServerFacts {
        let why_not = self.why_unready().await;
        let sources = self.sources.get();
        let load = sources.map(|StatusSources { engine, audit, upstreams, limiter, .. }| {
            let states = upstreams.iter().flat_map(|upstreams| upstreams.states());
            ServerLoad {
                started_at: self.started_at,
                tasks_in_flight: engine.in_flight(),
                held_polls: engine.poll_count(),
                connections: limiter.connections(),
                engine_lag_seconds: engine.lag().as_secs(),
                audit_seal_age_seconds: audit.seal_age().as_secs(),
                upstreams: states.map(UpstreamRow::from).collect(),
            }
        });
        let last_day = sources.map(|sources| self.history.describe(count(sources, sources.clock.latest())));
        ServerFacts { ready: why_not.is_none(), why_not, remark: self.remark(), load, last_day }
    }

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
            Ok(Ok(())) => None,
            // PostgreSQL refuses this write, and others may land, so this process stays the leader.
            Ok(Err(_)) if replica.as_ref().is_some_and(|replica| replica.is_refused()) => None,
            Ok(Err(why)) => Some(format!("the store cannot write: {why}")),
            Err(_) => Some(format!("the store has not written for {} s", STORE_TIMEOUT.as_secs())),
        };
        let Some(fault) = fault else {
            let stale = audit.stale();
            return stale.map(|waited| format!("the audit has not been written for {} s", waited.as_secs()));
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
        let mut page = MetricsPage::new(&self.names);
        page.sample(&metric::build_info, &[self.names.version], 1);
        page.one(&metric::process_start_time_seconds, self.started_at.0 / 1_000);
        page.one(&metric::log_lines_lost_total, LOST_LINES.get());
        let sources = self.sources.get();
        if let (None, Some(why)) = (sources, self.waiting.get()) {
            page.one(&metric::replica_lease, 0);
            page.one(&metric::replica_waits, u8::from(matches!(*why.borrow(), Waiting::Leader(_))));
        }
        for (metric, value) in read_off_the_runtime(sources).await {
            value.into_iter().for_each(|value| page.one(metric, value));
        }
        if let Some(sources) = sources {
            let StatusSources { database, engine, upstreams, replica, .. } = sources;
            request_metrics(&mut page, sources);
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
            store_metrics(&mut page, database.writes(), broken);
        }
        page.text()
    }
}

fn count(StatusSources { requests, engine, .. }: &StatusSources, at: Timestamp) -> HistoryPoint {
    let mut calls: Totals = Vec::new();
    for (outcome, count) in requests.tools().iter().flat_map(|calls| calls.outcomes()) {
        match calls.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, total)) => *total += count,
            None => calls.push((outcome, count)),
        }
    }
    let refused = [("unauthenticated", requests.unauthenticated.get()), ("rate_limited", requests.rate_limited.get())];
    calls.extend(refused);
    HistoryPoint { at, calls, tasks: engine.counts().ends().collect() }
}

/// Reads what blocks, or takes longer the more files and keys there are.
async fn read_off_the_runtime(sources: Option<&StatusSources>) -> Vec<SystemFigure> {
    let served =
        sources.map(|StatusSources { folder, access, clock, .. }| (folder.clone(), access.clone(), clock.clone()));
    let read = tokio::task::spawn_blocking(move || {
        let mut readings = system::read_process();
        if let Some((folder, access, clock)) = served {
            readings.extend(system::read_folder(&folder));
            let keys = access.count_ending_keys(KEYS_WITHIN, &clock);
            readings.push((&metric::keys_ending_soon, Some(keys.to_string())));
        }
        readings
    });
    timeout(STORE_TIMEOUT, read).await.ok().and_then(Result::ok).unwrap_or_default()
}

fn request_metrics(page: &mut MetricsPage<'_>, StatusSources { requests, limiter, audit, .. }: &StatusSources) {
    page.one(&metric::connections, limiter.connections());
    page.one(&metric::connections_refused_total, limiter.refused.get());
    let Requests { unauthenticated, rate_limited, unsound, .. } = &**requests;
    let refused =
        [("unauthenticated", unauthenticated.get()), ("rate_limited", rate_limited.get()), ("unsound", unsound.get())];
    page.each(&metric::requests_refused_total, refused.into_iter());
    for calls in requests.tools() {
        for (outcome, count) in calls.outcomes() {
            page.sample(&metric::tool_calls_total, &[calls.tool.name, outcome], count);
        }
    }
    for calls in requests.tools() {
        page.histogram(&metric::tool_call_duration_seconds, &[calls.tool.name], &calls.took);
    }
    page.one(&metric::audit_backlog, audit.slots());
    page.one(&metric::audit_seal_age_seconds, audit.seal_age().as_secs());
}

fn task_metrics(page: &mut MetricsPage<'_>, engine: &Engine) {
    let counts = engine.counts();
    page.one(&metric::tasks_accepted_total, counts.accepted.get());
    page.each(&metric::tasks_ended_total, counts.ends());
    page.one(&metric::tasks_in_flight, engine.in_flight());
    page.each(&metric::task_sends_total, counts.sends());
    page.each(&metric::ledger_entries_total, counts.entries());
    page.one(&metric::repeated_refunds_total, counts.repeated_refunds.get());
    page.one(&metric::engine_lag_seconds, engine.lag().as_secs_f64());
    page.one(&metric::held_polls, engine.poll_count());
}

async fn count_refund_violations(database: &dyn Store) -> Option<usize> {
    let found = timeout(STORE_TIMEOUT, database.violations(IntegrityRule::Refunds)).await;
    found.ok().and_then(Result::ok).map(|broken| broken.len())
}

fn store_metrics(page: &mut MetricsPage<'_>, writes: WriteFigures, broken: Option<usize>) {
    let WriteFigures { commits, requests, failures, waiting } = writes;
    page.one(&metric::store_commits_total, commits);
    page.one(&metric::store_writes_total, requests);
    page.one(&metric::store_commit_failures_total, failures);
    page.one(&metric::store_queue, waiting);
    broken.into_iter().for_each(|broken| page.one(&metric::refund_invariant_violations, broken));
}
