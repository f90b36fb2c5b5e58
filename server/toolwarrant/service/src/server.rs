//! The server: builds all parts at start, serves, and stops in order.

use crate::core::{Core, CoreParts};
use crate::hangup::{Hangup, Renewal};
use crate::listening::{Listening, base_path, in_clear, url_of};
use crate::replica::ReplicaLife;
use crate::service::Setup;
use crate::timekeeping;
use crate::welcome::{Demo, DemoKey};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::counts::Requests;
use toolwarrant_core::nonces::dump_reads;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::registry::{Durability, Registry, unknown_permissions};
use toolwarrant_http::Endpoint;
use toolwarrant_http::edge::{self, ConnectionLimiter, Responder, Tls};
use toolwarrant_http::monitor::Monitor;
use toolwarrant_operator::cli::ServeOptions;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::keeping::{AuditKeeper, AuditOptions};
use toolwarrant_operator::metrics::{ServiceStatus, StatusSources};
use toolwarrant_operator::replica_status::ReplicaStatus;
use toolwarrant_operator::socket::{OperatorGroups, OperatorSocket};
use toolwarrant_operator::{
    ActLines, Background, Check, CommandRunner, Config, Inventory, Names, OpenError, OpenedData, OperatorContext,
    OperatorError, StoreOptions, Upstreams, until,
};
use toolwarrant_store::Store;
use toolwarrant_tasks::engine::Engine;
use toolwarrant_tasks::executor::Executor;

/// The settings of a [`Program`](crate::Program), apart from the service itself.
pub(crate) struct Identity {
    /// The names of the service.
    pub(crate) names: Names,
    /// The demo applications that the first start creates, and the text that it prints.
    pub(crate) demo: Demo,
    /// The doctor's checks that the service adds.
    pub(crate) checks: Vec<Check>,
}

/// A server that listens and does not answer yet.
pub(crate) struct Server {
    listener: TcpListener,
    endpoint: Arc<dyn Responder>,
    limiter: Arc<ConnectionLimiter>,
    tls: Option<Arc<Tls>>,
    url: String,
    names: Arc<Names>,
    serves: Option<String>,
    demo: Demo,
    keys: Vec<DemoKey>,
    /// The commands that make an application with a key; empty if there is one.
    first_steps: Option<String>,
    /// Everything that SIGHUP renews.
    renewals: Vec<Renewal>,
    engine: Arc<Engine>,
    background: Vec<BoxFuture<'static, ()>>,
    context: Arc<OperatorContext>,
    keeper: AuditKeeper,
    sockets: Vec<OperatorSocket>,
    /// Its life as a replica, if it shares the store.
    replica: Option<ReplicaLife>,
    monitor: Option<(Monitor, Arc<ServiceStatus>)>,
    /// Keeps the folder locked while the server runs.
    folder: DataFolder,
}

/// Maximum number of tasks in flight.
const TASKS_MAX: usize = 100_000;

/// A start before the service is made: it listens, and has opened the data folder.
///
/// The compiler compiles code that depends on the type of the handlers for each service again, and
/// async functions with it. So the steps of a start are functions without that type.
pub(crate) struct Start {
    names: Arc<Names>,
    demo: Demo,
    checks: Vec<Check>,
    catalogue: &'static Catalogue,
    random: Random,
    store: StoreOptions,
    /// True if the keys of the demo are printed even if standard output is not a terminal.
    prints_keys: bool,
    keeping: AuditOptions,
    groups: OperatorGroups,
    listening: Listening,
    folder: DataFolder,
    opened: OpenedData,
}

impl Start {
    /// Listens, and opens the data folder.
    ///
    /// # Errors
    /// A part cannot be started. The message names the flag that helps.
    pub(crate) fn begin(
        runtime: &Runtime,
        identity: Identity,
        serve: ServeOptions,
        (data, store): (&Path, StoreOptions),
        catalogue: &'static Catalogue,
    ) -> Result<Self> {
        runtime.block_on(async {
            let Identity { names, demo, checks } = identity;
            let (names, random, wanted, keeping) = (Arc::new(names), Random::System, serve.demo, serve.audit);
            let groups = groups_of(&serve);
            let listening = Listening::open(serve, &names).await?;
            let folder = DataFolder::open(data, &names).map_err(OpenError::from).map_err(OperatorError::from)?;
            let opened = OpenedData::open(&folder, &names, catalogue, &random, (&store, None)).await?;
            warn_of_keys_off(&*opened.database).await?;
            // Output in a file or a pipe may be collected and stored, so it must not have secrets.
            let prints_keys = wanted || io::stdout().is_terminal();
            Ok(Self {
                names,
                demo,
                checks,
                catalogue,
                random,
                store,
                prints_keys,
                keeping,
                groups,
                listening,
                folder,
                opened,
            })
        })
    }

    /// Returns the input for making the service.
    pub(crate) fn setup<F>(&self, flags: F, config: Config) -> Setup<'_, F> {
        let sharing = self.opened.shared.as_ref().map(|shared| shared.sharing.clone());
        let (clock, random) = (self.opened.clock.clone(), self.random.clone());
        Setup { flags, config, folder: &self.folder, sharing, clock, random }
    }

    /// Starts the audit, and reads what is in flight.
    ///
    /// # Errors
    /// See [`Core::compose`].
    pub(crate) fn core(&self, runtime: &Runtime, executor: Option<Arc<dyn Executor>>) -> Result<Core> {
        let Self { catalogue, folder, opened: data, keeping: audit, .. } = self;
        let (random, max_in_flight) = (self.random.clone(), TASKS_MAX);
        let parts = CoreParts { catalogue, executor, folder, data, random, audit: *audit, max_in_flight };
        runtime.block_on(Core::compose(parts))
    }

    /// Makes the endpoint of the service. Returns it with everything that the server needs of the
    /// core.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn answer<H: Handlers>(&self, core: Core, handlers: H) -> Result<Answering> {
        let (pipeline, engine, keeper) = core.pipeline(handlers, &self.opened);
        let (requests, audit) = (pipeline.counts(), pipeline.audit_handle());
        let Listening { limits, policy, url, .. } = &self.listening;
        let process = u32::from_le_bytes(self.random.bytes()?);
        let endpoint = Arc::new(Endpoint::new(pipeline, policy.clone(), *limits, base_path(url), process));
        Ok(Answering { endpoint, engine, keeper, requests, audit })
    }

    /// Opens the sockets and, in a new folder, makes the demo keys.
    ///
    /// # Errors
    /// A part cannot be started. The message names the flag that helps.
    pub(crate) fn finish(self, runtime: &Runtime, answering: Answering, around: ServiceAround) -> Result<Server> {
        runtime.block_on(async {
            let Self { names, demo, checks, catalogue, store, prints_keys, groups, listening, folder, opened, .. } =
                self;
            let Answering { endpoint, engine, keeper, requests, audit } = answering;
            let ServiceAround { inventory, own, upstreams, background, serves, hint } = around;
            let Listening { listener, tls, limiter, url, monitor, .. } = listening;
            let demo = Demo { hint, ..demo };
            let OpenedData { registry, keyring: _, database, shared, clock } = opened;
            let replica = ReplicaLife::new(shared, &store, &engine);
            warn_of_permissions(&registry, catalogue).await;
            let sockets = open_sockets(&folder, &groups)?;
            // The keys come last, because their secrets are lost if the start fails after them.
            let keys = if prints_keys { demo.keys(&registry, catalogue).await? } else { Vec::new() };
            let first_steps =
                registry.is_empty().await.then(|| demo.first_steps(names.program, catalogue, folder.path()));
            if let Some((_, status)) = &monitor {
                let (database, engine, limiter) = (database.clone(), engine.clone(), limiter.clone());
                let replica = replica.as_ref().map(|life| ReplicaStatus::new(&life.shared));
                let audit = audit.clone();
                status.set_serving(StatusSources { database, engine, requests, audit, limiter, upstreams, replica });
            }
            let context = Arc::new(OperatorContext {
                names: Arc::clone(&names),
                catalogue,
                registry,
                store: database,
                shared: replica.as_ref().map(|life| life.shared.store.clone()),
                inventory,
                own,
                checks: checks.into(),
                folder: folder.path().to_owned(),
                clock,
                audit: Some(audit.clone()),
                serves: true,
                lines: ActLines::default(),
                applying: Mutex::default(),
            });
            Ok(Server {
                renewals: renewals(tls.clone(), audit),
                listener,
                endpoint,
                limiter,
                tls,
                url,
                names,
                serves,
                demo,
                keys,
                first_steps,
                engine,
                background,
                context,
                keeper,
                sockets,
                replica,
                monitor,
                folder,
            })
        })
    }
}

/// The parts of a server that answer calls.
pub(crate) struct Answering {
    endpoint: Arc<dyn Responder>,
    engine: Arc<Engine>,
    keeper: AuditKeeper,
    requests: Arc<Requests>,
    audit: AuditHandle,
}

/// The parts of a service apart from its handlers and its executor.
pub(crate) struct ServiceAround {
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    pub(crate) own: Option<CommandRunner>,
    pub(crate) upstreams: Option<Arc<dyn Upstreams>>,
    pub(crate) background: Vec<BoxFuture<'static, ()>>,
    pub(crate) serves: Option<String>,
    pub(crate) hint: &'static str,
}

impl Server {
    /// The URL at which clients reach the server, without a slash at its end.
    fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// The line of JSON that the server prints at start for programs. `listens` is the address that
    /// it is bound to.
    fn greeting(&self) -> String {
        let keys = self.keys.iter().map(DemoKey::json).collect::<Vec<_>>();
        let monitor = self.monitor.as_ref().map(|(monitor, _)| format!("http://{}", monitor.address()));
        let listens = self.listener.local_addr().ok();
        format!(
            "{}\n",
            json!({"url": format!("{}/mcp", self.url()), "listens": listens, "monitor": monitor, "keys": keys})
        )
    }

    /// The text that the server prints at start for people.
    fn welcome(&self) -> String {
        let Names { program, version, .. } = *self.names;
        let (url, folder) = (self.url(), self.folder.path().display());
        let serves = self.serves.as_deref().unwrap_or(self.context.catalogue.service.name);
        let mut out = format!("{program} {version} serves {serves} at {url}/mcp\n");
        if let Ok(bound) = self.listener.local_addr() {
            if url_of(bound, self.tls.as_ref()) != url {
                let _ = writeln!(out, "It listens on {bound}.");
            }
            if let Some(why) = in_clear(bound, self.tls.as_ref()) {
                let _ = writeln!(out, "Beware: {why}.");
            }
        }
        out.push('\n');
        out += &match &self.first_steps {
            Some(steps) => steps.clone(),
            None => self.demo.text(program, url, &self.keys),
        };
        if let Some((monitor, _)) = &self.monitor {
            let _ = writeln!(out, "/healthz, /readyz and /metrics are at http://{}", monitor.address());
        }
        let _ = match &self.replica {
            None => writeln!(out, "Tasks, applications and keys are in {folder}."),
            Some(life) => writeln!(
                out,
                "This is the replica {}. Tasks, applications and keys are in PostgreSQL; the master key and the audit trail are in \
                 {folder}.",
                life.shared.sharing.member.name()
            ),
        };
        out.push_str("Ctrl-C stops it.\n");
        out
    }

    /// Serves until a signal arrives. Then it finishes requests in flight, unless a second signal
    /// arrives.
    ///
    /// # Errors
    /// A revocation could not be stored.
    pub(crate) fn run(mut self, runtime: &Runtime, signals: Signals, say: impl Fn(&str), json: bool) -> Result<()> {
        let name = self.names.program;
        say(&if json { self.greeting() } else { self.welcome() });
        let Signals { mut stop, hangup } = signals;
        let renewals = std::mem::take(&mut self.renewals);
        let (stop_serving, stopped) = oneshot::channel::<()>();
        let signals = async {
            let hung_up = hangup.renew(renewals);
            tokio::pin!(hung_up);
            tokio::select! {
                () = stop.next() => {}
                () = &mut hung_up => {}
            }
            drop(stop_serving);
            stop.next().await;
        };
        let (end, served) = runtime.block_on(async {
            tokio::select! {
                served = self.serve(async move { drop(stopped.await) }) => ("has stopped", served),
                () = signals => ("has stopped at once", Ok(())),
            }
        });
        if !json {
            say(&format!("{name} {end}\n"));
        }
        served
    }

    /// Answers requests and drives tasks until `stop`. Then it answers held polls and requests in
    /// flight, waits for running effects, and flushes the audit. Tasks that are still in flight
    /// continue at the next start.
    ///
    /// # Errors
    /// A revocation could not be stored.
    async fn serve(self, stop: impl Future<Output = ()>) -> Result<()> {
        let Self {
            listener,
            endpoint,
            limiter,
            tls,
            engine,
            background,
            context,
            keeper,
            sockets,
            mut replica,
            monitor,
            folder,
            keys,
            ..
        } = self;
        // Their secrets have been printed.
        drop(keys);
        let (serving, kept) = (Arc::clone(&engine), Arc::clone(&engine));
        // In the order in which the parts stop.
        let operating = sockets.into_iter().map(|socket| {
            let context = Arc::clone(&context);
            Background::start("an operator socket", PATIENCE, |stopped| socket.serve(context, stopped))
        });
        let operating: Vec<_> = operating.collect();
        let beside = [
            Background::start("the engine", ENGINE_PATIENCE, |stopped| engine.run(stopped)),
            Background::of_service(background),
            Background::start("the registry", PATIENCE, |stopped| settle(Arc::clone(&context), stopped)),
            Background::start("the directory", PATIENCE, |stopped| until(stopped, follow(Arc::clone(&context)))),
        ];
        let mut last = vec![
            Background::start("the keeper of the audit", PATIENCE, |_| keeper.run()),
            Background::start("the keeper of the time", PATIENCE, |stopped| {
                timekeeping::keep(context.clock.clone(), context.store.clone(), stopped)
            }),
        ];
        let status = monitor.as_ref().map(|(_, status)| Arc::clone(status));
        last.extend(monitor.map(|(monitor, status)| {
            Background::start("the monitor", PATIENCE, |stopped| async move {
                stopped.await;
                monitor.close().await;
                status.release().await;
            })
        }));
        let mut stopped = Ok(());
        let closing = async {
            stopped = ReplicaLife::wait_for_stop(replica.as_mut(), stop).await;
            status.inspect(|status| status.set_stopping());
            if let (Ok(()), Some(replica)) = (stopped, &replica) {
                replica.drain().await;
            }
            serving.close();
        };
        edge::serve(listener, Arc::clone(&endpoint), limiter, tls, closing).await;
        // Together, so that no socket accepts commands while another finishes its own.
        operating.into_iter().map(Background::stop).collect::<JoinSet<()>>().join_all().await;
        for work in beside {
            work.stop().await;
        }
        // This ends the writer of the audit, which the work before it has needed.
        drop(endpoint);
        for work in last {
            work.stop().await;
        }
        let settled = context.registry.settle().await;
        match replica {
            Some(replica) => replica.leave().await,
            None => keep_reads(&kept, &context).await,
        }
        stopped?;
        if let Durability::Owed(why) = settled {
            bail!(
                "what was taken away is not on the disk ({why}), and is back after the next start: take it away again"
            );
        }
        drop((context, folder));
        Ok(())
    }
}

/// Stores the nonces of reads for the next start.
async fn keep_reads(engine: &Engine, context: &OperatorContext) {
    if let Err(error) = engine.keep_reads(dump_reads(&context.registry.access())).await {
        tracing::warn!(%error, "the nonces of reads could not be stored; clients must sign reads again after the start");
    }
}

/// Returns the sockets for groups that the flags ask for.
fn groups_of(serve: &ServeOptions) -> OperatorGroups {
    OperatorGroups {
        folder: serve.operator_sockets.clone(),
        operate: serve.operate_group.clone(),
        view: serve.view_group.clone(),
    }
}

/// Opens the sockets for the owner and for the groups.
fn open_sockets(folder: &DataFolder, groups: &OperatorGroups) -> Result<Vec<OperatorSocket>> {
    let mut sockets = vec![OperatorSocket::open(folder.path())?];
    sockets.extend(OperatorSocket::open_for_groups(groups)?);
    Ok(sockets)
}

/// Puts the changes of other replicas in force.
async fn follow(context: Arc<OperatorContext>) {
    context.registry.follow().await;
}

/// Warns of keys that a restore has turned off.
async fn warn_of_keys_off(database: &dyn Store) -> Result<()> {
    let off = database.keys_to_confirm().await.context("cannot read the keys")?.len();
    if off > 0 {
        tracing::warn!(
            keys = off,
            "keys are off since the data was restored; `key list` shows them, `key confirm` turns them on"
        );
    }
    Ok(())
}

/// Warns of permissions that the contract does not know any more.
async fn warn_of_permissions(registry: &Registry, catalogue: &Catalogue) {
    for unknown in unknown_permissions(&registry.applications().await, catalogue) {
        tracing::warn!("{unknown}; `app revoke` removes it");
    }
}

/// Returns everything that SIGHUP renews: the certificates, if there are any, and the audit trail.
fn renewals(tls: Option<Arc<Tls>>, audit: AuditHandle) -> Vec<Renewal> {
    let certificates = tls.map(|tls| Renewal {
        what: "certificates",
        renew: Box::new(move || {
            tls.reload();
            Ok(())
        }),
    });
    let reopen = move || {
        audit.reopen();
        Ok(())
    };
    certificates.into_iter().chain([Renewal { what: "audit trail", renew: Box::new(reopen) }]).collect()
}

/// Time for background work to stop: twice the time that the store waits for another program that
/// holds the database.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same for the engine, which itself waits 10 s for effects in progress.
const ENGINE_PATIENCE: Duration = Duration::from_secs(15);

/// Stores pending changes and last uses, and writes the lines of acts: once a second until
/// `stopped`, then until all changes are stored and have their lines.
async fn settle(context: Arc<OperatorContext>, stopped: BoxFuture<'static, ()>) {
    let mut uses_due = context.clock.now().plus(USES_EVERY);
    until(stopped, async {
        loop {
            let _ = context.registry.settle().await;
            context.write_lines().await;
            if uses_due <= context.clock.now() {
                uses_due = context.clock.now().plus(USES_EVERY);
                store_uses(&context).await;
            }
            context.clock.sleep_until(context.clock.now().plus(SETTLE_EVERY)).await;
        }
    })
    .await;
    store_uses(&context).await;
    while let Durability::Owed(_) = context.registry.settle().await {
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    context.write_lines().await;
}

/// Stores the last uses of secrets. If that fails, the next use of each secret is stored.
async fn store_uses(context: &OperatorContext) {
    if let Err(error) = context.registry.store_uses().await {
        tracing::warn!(%error, "the last uses of keys are not on the disk");
    }
}

/// Interval at which the last uses of secrets are stored.
const USES_EVERY: Duration = Duration::from_mins(1);

/// Interval between two attempts to store pending changes while the server runs.
const SETTLE_EVERY: Duration = Duration::from_secs(1);

/// Pause between two attempts to store pending revocations while the server stops.
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

/// The signals that a server listens for.
pub(crate) struct Signals {
    stop: StopSignals,
    hangup: Hangup,
}

impl Signals {
    /// Starts to listen for the signals.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { stop: StopSignals::listen()?, hangup: Hangup::listen()? })
    }
}

/// The signals that stop the program: SIGINT and SIGTERM.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn listen() -> io::Result<Self> {
        // A write beyond the file size limit then fails, and does not end the process.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
