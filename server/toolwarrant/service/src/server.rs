//! The server: serves, and stops in order. Start at [`Server::run`].

use crate::listening::{Listening, base_path, in_clear, url_of};
use crate::manager;
use crate::replica;
use crate::signals::Signals;
use crate::stdio;
use crate::timekeeping;
use crate::welcome::DemoKey;
use anyhow::{Result, bail};
use sd_notify::NotifyState;
use serde_json::json;
use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_console::Console;
use toolwarrant_core::counts::Requests;
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::{ToolCaller, keep_passes};
use toolwarrant_core::registry::Durability;
use toolwarrant_http::Gate;
use toolwarrant_http::edge::{self, Responder};
use toolwarrant_http::monitor::Monitor;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::keeping::AuditKeeper;
use toolwarrant_operator::socket::OperatorSocket;
use toolwarrant_operator::{Background, Names, OperatorContext, Shared, note_unreadable, until};
use toolwarrant_tasks::engine::Engine;
use tracing::field::display;

/// The endpoint over the core of a server.
pub(crate) struct Answering {
    pub(crate) endpoint: Arc<dyn Responder>,
    /// Ends with the endpoint, on which the end of the audit waits.
    pub(crate) caller: Weak<dyn ToolCaller>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) keeper: AuditKeeper,
    pub(crate) requests: Arc<Requests>,
    pub(crate) audit: AuditHandle,
}

/// A server that listens and does not answer yet.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) listening: Listening,
    pub(crate) answering: Answering,
    /// The words for its targets, such as `3 printers`.
    pub(crate) serves: String,
    pub(crate) keys: Vec<DemoKey>,
    /// The commands to paste.
    pub(crate) steps: String,
    pub(crate) background: Vec<BoxFuture<'static, ()>>,
    pub(crate) passes: Passes,
    pub(crate) context: Arc<OperatorContext>,
    pub(crate) console: Arc<Console>,
    pub(crate) sockets: Vec<OperatorSocket>,
    /// `None` if this server is not one of `stdio`.
    pub(crate) bridges: Option<OperatorSocket>,
    pub(crate) replica: Option<Shared>,
    /// Keeps the folder locked while the server runs.
    pub(crate) folder: DataFolder,
}

impl Server {
    fn greeting(&self) -> String {
        let Listening { bound, monitor, .. } = &self.listening;
        let keys = self.keys.iter().map(DemoKey::json).collect::<Vec<_>>();
        let monitor = monitor.as_ref().map(|monitor| format!("http://{}", monitor.address()));
        let url = format!("{}/mcp", self.listening.url());
        format!("{}\n", json!({"url": url, "listens": bound, "monitor": monitor, "keys": keys}))
    }

    fn welcome(&self) -> String {
        let Names { program, version, .. } = *self.context.program.names;
        let Listening { bound, tls, monitor, .. } = &self.listening;
        let (url, folder) = (self.listening.url(), self.folder.path().display());
        let mut out = format!("{program} {version} serves {} at {url}/mcp\n", self.serves);
        if url_of(*bound, tls.as_ref()) != url {
            let _ = writeln!(out, "It listens on {bound}.");
        }
        let base = base_path(url);
        if !base.is_empty() {
            let _ =
                writeln!(out, "The proxy in front must strip `{base}` from the path: /mcp and /v1 are served here.");
        }
        if let Some(why) = in_clear(*bound, tls.as_ref()) {
            let _ = writeln!(out, "Beware: {why}.");
        }
        let _ = write!(out, "\n{}", self.steps);
        if let Some(monitor) = monitor {
            let _ = writeln!(out, "/healthz, /readyz and /metrics are at http://{}", monitor.address());
        }
        let _ = match &self.replica {
            None => writeln!(out, "Tasks, applications and keys are in {folder}."),
            Some(shared) => writeln!(
                out,
                "This is the replica {}. Tasks, applications and keys are in PostgreSQL; the master key and the audit trail are in \
                 {folder}.",
                shared.store.name()
            ),
        };
        out.push_str("Ctrl-C stops it.\n");
        out
    }

    async fn log_start(&self) {
        let Self { listening: Listening { bound, url, monitor, .. }, replica, context, answering, folder, .. } = self;
        let (listens, monitor) = (display(bound), monitor.as_ref().map(|monitor| display(monitor.address())));
        let store = match replica {
            None => folder.path().display().to_string(),
            Some(shared) => format!("PostgreSQL, as the replica {}", shared.store.name()),
        };
        let applications = context.registry.applications().await.len();
        let keys = context.registry.keys(|key| !key.secrets.is_empty()).await.len();
        let version = context.program.names.version;
        let tasks_in_flight = answering.engine.in_flight();
        tracing::info!(version, listens, url, monitor, store, applications, keys, tasks_in_flight, "the server starts");
    }

    /// Serves until a signal arrives. A second one ends it at once.
    pub(crate) fn run(self, runtime: &Runtime, signals: Signals, say: impl Fn(&str), json: bool) -> Result<()> {
        let name = self.context.program.names.program;
        say(&if json { self.greeting() } else { self.welcome() });
        let Signals { mut stop, hangup } = signals;
        let (tls, audit) = (self.listening.tls.clone(), self.answering.audit.clone());
        let renew = move || {
            tls.iter().for_each(|tls| tls.reload());
            audit.reopen();
        };
        let busy = self.bridges.is_some().then(|| Arc::clone(&self.answering.engine));
        let (stop_serving, stopped) = oneshot::channel();
        let signals = async {
            let hung_up = hangup.renew(renew);
            tokio::pin!(hung_up);
            let why = tokio::select! {
                signal = stop.next() => signal,
                () = &mut hung_up => "its terminal is gone",
            };
            if let Some(engine) = busy {
                stdio::wait_for_tasks(&engine, why, &mut stop).await;
            }
            let _ = stop_serving.send(why);
            stop.next().await;
        };
        let (end, served) = runtime.block_on(async {
            self.log_start().await;
            manager::tell_ready(&format!("serves {}/mcp", self.listening.url()));
            let (engine, begun) = (Arc::clone(&self.answering.engine), Instant::now());
            let stop = async move {
                let why = stopped.await.unwrap_or_default();
                manager::tell(&[NotifyState::Stopping]);
                let (tasks_in_flight, uptime_seconds) = (engine.in_flight(), begun.elapsed().as_secs());
                tracing::info!(why, tasks_in_flight, uptime_seconds, "the server stops");
            };
            tokio::select! {
                served = self.serve(stop) => ("has stopped", served),
                _ = signals => ("has stopped at once", Ok(())),
            }
        });
        if !json {
            say(&format!("{name} {end}\n"));
        }
        served
    }

    /// Answers requests and drives tasks until `stop`. Then it answers held polls and requests in
    /// flight, waits for running effects, and flushes the audit. Tasks in flight continue at the
    /// next start.
    async fn serve(self, stop: impl Future<Output = ()>) -> Result<()> {
        let Self {
            listener,
            listening,
            answering,
            keys,
            steps,
            background,
            passes,
            context,
            console,
            sockets,
            bridges,
            mut replica,
            folder,
            ..
        } = self;
        let Answering { endpoint, engine, keeper, audit, .. } = answering;
        let Listening { limiter, tls, status, monitor, watchdog: _watchdog, .. } = listening;
        // Their secrets have been printed.
        drop((keys, steps));
        let watching = monitor.map(watch);
        let mut work = Work::start(&engine, background, &context, keeper, (sockets, console, (passes, audit)));
        let hands_over = replica.is_some() || bridges.is_some();
        let gate = hands_over.then(|| Arc::new(Gate::new(Arc::clone(&endpoint), context.program.catalogue)));
        // The writer of the audit ends with the endpoint, which a gate lets go when it is held.
        let kept = gate.is_none().then(|| Arc::clone(&endpoint));
        let responder: Arc<dyn Responder> = gate.clone().map_or(endpoint, |gate| gate);
        let bridges = bridges.map(|socket| stdio::answer(socket, &responder, &context, &limiter));
        let mut stopped = Ok(());
        let (lose, lost) = oneshot::channel();
        let closing = async {
            stopped = replica::wait_for_stop(replica.as_mut(), stop).await;
            if let (Ok(()), Some(gate)) = (&stopped, &gate) {
                status.set_handing_over();
                let held = work.stop_behind(gate, &engine).await;
                if let Some(shared) = replica.take() {
                    replica::hand_over(shared, &status).await;
                }
                drop(held);
            }
            status.set_stopping();
            engine.close();
            work.passes.close();
            if stopped.is_err() {
                let _ = lose.send(());
            }
        };
        tokio::select! {
            () = edge::serve(listener, responder, limiter, tls, closing) => {}
            Ok(()) = lost => {}
        }
        if let (Err(_), Some(leader)) = (&stopped, replica) {
            // Another process waits for the end of this one, which leaves all as a kill would.
            work.give_up().await;
            replica::give_up(leader).await;
            drop(gate);
            let _ = timeout(AUDIT_PATIENCE, work.stop_last()).await;
            return stopped;
        }
        if let Some(bridges) = bridges {
            bridges.stop().await;
        }
        work.stop_engine().await;
        work.stop_beside().await;
        // This ends the writer of the audit, which the work before it has needed.
        drop((gate, kept));
        work.stop_last().await;
        if let Some(watching) = watching {
            watching.stop().await;
        }
        status.release().await;
        let settled = context.registry.settle().await;
        stopped?;
        report_pending(settled)?;
        drop((context, folder));
        Ok(())
    }
}

fn report_pending(settled: Durability) -> Result<()> {
    match settled {
        Durability::Owed(why) => bail!(
            "what was taken away is not on the disk ({why}), and is back after the next start: take it away again"
        ),
        _ => Ok(()),
    }
}

/// The work beside the listener, in the order in which it stops.
struct Work {
    passes: Passes,
    engine: Vec<Background>,
    operating: Vec<Background>,
    beside: Vec<Background>,
    last: Vec<Background>,
}

impl Work {
    fn start(
        engine: &Arc<Engine>,
        of_service: Vec<BoxFuture<'static, ()>>,
        context: &Arc<OperatorContext>,
        keeper: AuditKeeper,
        (sockets, console, (passes, audit)): (Vec<OperatorSocket>, Arc<Console>, (Passes, AuditHandle)),
    ) -> Self {
        let context = || Arc::clone(context);
        let operating = sockets.into_iter().map(|socket| {
            Background::start("an operator socket", PATIENCE, |stopped| socket.serve(context(), stopped))
        });
        let console = Background::start("the console", PATIENCE, |stopped| console.serve(context(), stopped));
        Self {
            passes: passes.clone(),
            engine: vec![Background::start("the engine", ENGINE_PATIENCE, |stopped| Arc::clone(engine).run(stopped))],
            operating: operating.chain([console]).collect(),
            beside: vec![
                Background::of_service(of_service),
                Background::start("the registry", PATIENCE, |stopped| settle(context(), stopped)),
                Background::start("the passes", PATIENCE, |stopped| {
                    let judge = (context().registry.access(), context().program.catalogue, context().clock.clone());
                    keep_passes(passes, judge, audit, stopped)
                }),
            ],
            last: vec![
                Background::start("the keeper of the audit", PATIENCE, |_| keeper.run()),
                Background::start("the keeper of the time", PATIENCE, |stopped| {
                    timekeeping::keep(context().clock.clone(), context().store.clone(), stopped)
                }),
            ],
        }
    }

    /// Begins no send any more, and waits for those under way.
    async fn stop_engine(&mut self) {
        for work in self.engine.drain(..) {
            work.stop().await;
        }
    }

    /// Stops all while the gate holds requests. Returns what holds them.
    async fn stop_behind(&mut self, gate: &Gate, engine: &Engine) -> impl Sized {
        self.stop_engine().await;
        engine.close();
        self.passes.close();
        let mut held = gate.hold().await;
        self.stop_beside().await;
        held.take();
        self.stop_last().await;
        held
    }

    async fn stop_beside(&mut self) {
        // Together, so that no socket accepts commands while another finishes its own.
        self.operating.drain(..).map(Background::stop).collect::<JoinSet<()>>().join_all().await;
        for work in self.beside.drain(..) {
            work.stop().await;
        }
    }

    /// Waits only for operators, who get the fate of their commands.
    async fn give_up(&mut self) {
        (self.engine, self.beside) = Default::default();
        let told = self.operating.drain(..).map(Background::stop).collect::<JoinSet<()>>();
        let _ = timeout(OPERATOR_PATIENCE, told.join_all()).await;
    }

    async fn stop_last(&mut self) {
        for work in self.last.drain(..) {
            work.stop().await;
        }
    }
}

fn watch(monitor: Monitor) -> Background {
    Background::start("the monitor", PATIENCE, |stopped| async move {
        stopped.await;
        monitor.close().await;
    })
}

/// Twice the time that the store waits for another program that holds the database.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

const OPERATOR_PATIENCE: Duration = Duration::from_secs(1);

const AUDIT_PATIENCE: Duration = Duration::from_secs(1);

/// The engine itself waits 10 s for effects in progress.
const ENGINE_PATIENCE: Duration = Duration::from_secs(15);

/// Stores what is pending once a second, then until all changes are stored.
async fn settle(context: Arc<OperatorContext>, stopped: BoxFuture<'static, ()>) {
    let mut uses_due = context.clock.now().plus(USES_EVERY);
    let mut keys_seen = context.clock.latest();
    let mut minute_due = context.clock.now();
    until(stopped, async {
        loop {
            let _ = context.registry.settle().await;
            store_requests(&context).await;
            context.write_lines().await;
            if minute_due <= context.clock.now() {
                minute_due = context.clock.now().plus(MINUTE);
                context.server.iter().for_each(|server| server.note_minute(context.clock.latest()));
                note_unreadable(&context).await;
            }
            if uses_due <= context.clock.now() {
                uses_due = context.clock.now().plus(USES_EVERY);
                store_uses(&context).await;
                keys_seen = log_ended_keys(&context, keys_seen).await;
            }
            context.clock.sleep_until(context.clock.now().plus(SETTLE_EVERY)).await;
        }
    })
    .await;
    store_requests(&context).await;
    store_uses(&context).await;
    while let Durability::Owed(_) = context.registry.settle().await {
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    context.write_lines().await;
}

/// Logs each key whose time has ended after `since`, and returns the moment until which it looked.
async fn log_ended_keys(context: &OperatorContext, since: Timestamp) -> Timestamp {
    let now = context.clock.latest();
    let ended = |end: Timestamp| since < end && end <= now;
    for key in context.registry.keys(|key| !key.secrets.is_empty() && key.expires_at.is_some_and(ended)).await {
        let application = context.registry.find(&key.application).await.map(|row| row.name).unwrap_or_default();
        tracing::info!(key = key.id, application, "a key has expired");
    }
    now
}

/// Lets budgets go on after a restart.
async fn store_requests(context: &OperatorContext) {
    if let Err(error) = context.registry.store_requests().await {
        tracing::debug!(%error, "the numbers of requests are not on the disk");
    }
}

async fn store_uses(context: &OperatorContext) {
    if let Err(error) = context.registry.store_uses().await {
        tracing::warn!(%error, "the last uses of keys are not on the disk");
    }
}

const MINUTE: Duration = Duration::from_mins(1);

const USES_EVERY: Duration = Duration::from_mins(1);

const SETTLE_EVERY: Duration = Duration::from_secs(1);

const SETTLE_PAUSE: Duration = Duration::from_millis(200);
