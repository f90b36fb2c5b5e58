//! The door for monitoring: whether the program lives, whether it serves, and what it counts.
//!
//! It asks for no key and shows numbers only, so it listens where the operator says, and nowhere otherwise. It opens before
//! anything else and closes last, so that a start and a stop can be watched. Start at [`Monitor::listen`].

use crate::clock::Timestamp;
use crate::framework::audit::Backlog;
use crate::framework::transport::edge::{self, Crowd, Doorkeeper, Limits, Refused};
use crate::store::sqlite::Sqlite;
use crate::store::{Broken, Rule, Store, VIOLATIONS_MAX};
use crate::tasks::engine::Engine;
use crate::telemetry::Requests;
use crate::telemetry::page::{MEDIA_TYPE, Page};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, Response, StatusCode};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// Connections at a time. Few programs watch; whoever takes all that one address may have locks out nobody elsewhere.
const CONNECTIONS: usize = 1_024;
const CONNECTIONS_PER_ADDRESS: usize = 32;

/// For the head of a request. Whoever watches asks every few seconds at most, and needs no connection in between.
const HEAD: Duration = Duration::from_secs(1);

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
    pub crowd: Arc<Crowd>,
}

/// A door that is open. Dropped, it is closed at once.
pub struct Monitor {
    address: SocketAddr,
    state: Arc<Probes>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

struct Probes {
    begun: Timestamp,
    door: Doorkeeper,
    sources: OnceLock<Sources>,
    stopping: AtomicBool,
    /// The write that tries the store, of which there is one at a time: it goes on when those who wait for it leave.
    touch: Mutex<JoinSet<Result<(), Broken>>>,
}

impl Monitor {
    /// Opens the door of a program that began then, and that does not serve yet, to whom `door` lets in.
    ///
    /// # Errors
    /// There is nothing to listen on.
    pub async fn listen(address: SocketAddr, begun: Timestamp, door: Doorkeeper) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Probes {
            begun,
            door,
            sources: OnceLock::new(),
            stopping: AtomicBool::new(false),
            touch: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let crowd = Crowd::new(Limits {
            connections: CONNECTIONS,
            connections_per_address: CONNECTIONS_PER_ADDRESS,
            head: HEAD,
            grace: Duration::from_secs(1),
            ..Limits::default()
        });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(edge::serve(listener, router, crowd, async { drop(stopped.await) }));
        Ok(Self { address, state, stop: Some(stop), task })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the program serves.
    pub fn serves(&self, sources: Sources) {
        let _ = self.state.sources.set(sources);
    }

    /// From now on the program takes nothing on, and ends what it has.
    pub fn stops(&self) {
        self.state.stopping.store(true, Relaxed);
    }

    /// Closes the door, and lets go of all sources.
    pub async fn close(mut self) {
        drop(self.stop.take());
        let _ = (&mut self.task).await;
        self.state.touch.lock().await.shutdown().await;
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(probes): State<Arc<Probes>>, request: Request) -> Response<Body> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    // A page in the operator's browser must not read this under a name of its own.
    match probes.door.check(request.headers(), authority) {
        Ok(_) => {}
        Err(host @ Refused::Host(_)) => return respond(StatusCode::FORBIDDEN, format!("{host}\n")),
        Err(Refused::Origin(_)) => {
            return respond(StatusCode::FORBIDDEN, "no web page is answered here\n".to_owned());
        }
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return respond(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => respond(StatusCode::OK, "the program lives\n".to_owned()),
        "/readyz" => match probes.unready().await {
            None => respond(StatusCode::OK, "the program serves\n".to_owned()),
            Some(why) => respond(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/metrics" => {
            let mut response = respond(StatusCode::OK, probes.metrics().await);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
            response
        }
        _ => respond(StatusCode::NOT_FOUND, "here are /healthz, /readyz and /metrics\n".to_owned()),
    }
}

fn respond(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

impl Probes {
    /// Why requests are better sent elsewhere, if they are.
    async fn unready(&self) -> Option<String> {
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
            Ok(Err(Broken(why))) => Some(format!("the store cannot write: {why}")),
            Err(_) => Some(format!("the store has written nothing for {} s", PATIENCE.as_secs())),
        }
    }

    /// Writes nothing that matters; joins whoever does so already.
    async fn touch(&self, database: &Arc<Sqlite>) -> Result<(), Broken> {
        let mut touch = self.touch.lock().await;
        // One that ended while nobody waited tells of a time that may be long past.
        while touch.try_join_next().is_some() {}
        if touch.is_empty() {
            let database = Arc::clone(database);
            touch.spawn(async move { database.touch().await });
        }
        touch.join_next().await.and_then(Result::ok).unwrap_or_else(|| Err(Broken("it panicked".to_owned())))
    }

    async fn metrics(&self) -> String {
        let mut page = Page::default();
        page.head("cloudphone_build_info", "gauge", "The program that runs; always 1.");
        page.sample("cloudphone_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        page.gauge("process_start_time_seconds", "When the program began, since the epoch.", self.begun.0 / 1_000);
        if let Some(Sources { database, engine, requests, backlog, crowd }) = self.sources.get() {
            served(&mut page, requests, crowd, backlog);
            driven(&mut page, engine);
            kept(&mut page, database).await;
        }
        page.text()
    }
}

fn served(page: &mut Page, requests: &Requests, crowd: &Crowd, backlog: &Backlog) {
    page.gauge("cloudphone_connections", "Connections of clients that are open.", crowd.connections());
    let help = "Connections that were closed unanswered, because there were too many.";
    page.counter("cloudphone_connections_refused_total", help, crowd.refused.get());
    let Requests { unauthenticated, rate_limited, .. } = requests;
    let refused = [("unauthenticated", unauthenticated.get()), ("rate_limited", rate_limited.get())];
    let help = "Requests that were refused before they were looked at.";
    page.counters("cloudphone_requests_refused_total", help, "reason", refused.into_iter());
    page.head(
        "cloudphone_tool_calls_total",
        "counter",
        "Calls of tools, by how they ended: ok, cancelled, or an error code.",
    );
    for calls in requests.tools() {
        for (outcome, count) in calls.outcomes() {
            page.sample("cloudphone_tool_calls_total", &[("tool", calls.tool.name), ("outcome", outcome)], count);
        }
    }
    let name = "cloudphone_tool_call_duration_seconds";
    page.head(name, "histogram", "How long calls of tools took; get_task waits if it is asked to.");
    for calls in requests.tools() {
        page.histogram(name, ("tool", calls.tool.name), &calls.took);
    }
    let help = "Places in the audit that are taken, by calls that run and by lines that are not yet in a file.";
    page.gauge("cloudphone_audit_backlog", help, backlog.places());
}

fn driven(page: &mut Page, engine: &Engine) {
    let counts = engine.counts();
    page.counter("cloudphone_tasks_accepted_total", "Tasks that were taken on.", counts.accepted.get());
    page.counters("cloudphone_tasks_ended_total", "Tasks that ended.", "status", counts.ends());
    page.gauge("cloudphone_tasks_in_flight", "Tasks that have not ended.", engine.in_flight());
    let help = "Writes that were sent to the platform, by what came of it.";
    page.counters("cloudphone_task_sends_total", help, "outcome", counts.sends());
    page.counters("cloudphone_ledger_entries_total", "Entries in the ledger.", "kind", counts.entries());
    let help = "How late the engine is in looking at the task that is due first.";
    page.gauge("cloudphone_engine_lag_seconds", help, engine.lag().as_secs_f64());
    page.gauge("cloudphone_held_polls", "Calls of get_task that wait for the end of a task.", engine.held());
}

async fn kept(page: &mut Page, database: &Sqlite) {
    let (written, waiting) = database.written();
    page.counter("cloudphone_store_commits_total", "Transactions that were committed.", written.commits.get());
    page.counter("cloudphone_store_writes_total", "Requests in these transactions.", written.requests.get());
    page.counter("cloudphone_store_commit_failures_total", "Transactions that failed.", written.failures.get());
    page.gauge("cloudphone_store_queue", "Requests that wait for the next transaction.", waiting);
    // Without an answer there is no sample: a number from before would say that all is well.
    if let Ok(Ok(broken)) = timeout(PATIENCE, database.violations(Rule::Refunds)).await {
        let help =
            format!("Tasks whose refund is missing or not due, at most {VIOLATIONS_MAX}; see `cloudphone doctor`.");
        page.gauge("cloudphone_refund_invariant_violations", &help, broken.len());
    }
}
