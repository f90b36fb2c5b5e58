//! The server: builds all parts at start, serves, and stops in order.

use crate::hangup::Renewal;
use crate::open_files;
use crate::service::{Service, Setup, required};
use crate::timekeeping;
use crate::welcome::{Demo, DemoKey};
use anyhow::{Context, Result, anyhow, bail};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::clock::Clock;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_core::random::Random;
use toolwarrant_core::registry::Kept;
use toolwarrant_http::Endpoint;
use toolwarrant_http::edge::{self, ConnectionLimiter, HostOriginPolicy, Limits, Responder, Tls, TrustedProxies};
use toolwarrant_http::monitor::Monitor;
use toolwarrant_operator::cli::{EdgeOptions, Flags, ServeOptions};
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::flags::{ADMIN_LISTEN, DATA, LISTEN, MAX_CONNECTIONS, TLS_CERT, TLS_KEY};
use toolwarrant_operator::keeping::AuditKeeper;
use toolwarrant_operator::metrics::{ServiceStatus, StatusSources};
use toolwarrant_operator::socket::OperatorSocket;
use toolwarrant_operator::{Background, Check, Config, Names, OpenedData, OperatorContext};
use toolwarrant_store::Recovery;
use toolwarrant_tasks::engine::{Engine, Parts};

/// What the author of a service sets for its program, apart from the service itself.
pub(crate) struct Identity {
    /// The names of the service.
    pub(crate) names: Names,
    /// What the first start creates and prints.
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
    /// The commands that make an application with a key, where there is none.
    first_steps: Option<String>,
    /// What SIGHUP renews.
    pub(crate) renewals: Vec<Renewal>,
    engine: Arc<Engine>,
    background: Vec<BoxFuture<'static, ()>>,
    context: Arc<OperatorContext>,
    keeper: AuditKeeper,
    socket: OperatorSocket,
    monitor: Option<(Monitor, Arc<ServiceStatus>)>,
    /// Keeps the folder locked while the server runs.
    folder: DataFolder,
}

/// Maximum number of tasks in flight.
const TASKS_MAX: usize = 100_000;

impl Server {
    /// Listens, opens the data folder, makes the service and, in a new folder, the demo keys.
    ///
    /// # Errors
    /// A part cannot be started. The message names the flag that helps.
    pub(crate) async fn start<H: Handlers, F: Flags, C>(
        identity: Identity,
        serve: ServeOptions,
        data: &Path,
        (flags, config): (F, Config),
        compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H, C>>,
    ) -> Result<Self> {
        let Identity { names, demo, checks } = identity;
        let ServeOptions {
            listen,
            admin_listen,
            public_url,
            allow_hosts,
            allow_origins,
            demo: wanted,
            allow_core_dumps: _,
            edge,
            audit,
        } = serve;
        let (tls, proxies, limits) = edge_of(edge)?;
        let (names, random) = (Arc::new(names), Random::System);
        if admin_listen == Some(listen) && listen.port() != 0 {
            bail!("--{LISTEN} and --{ADMIN_LISTEN} are both {listen}; each needs a port of its own");
        }
        let monitor = match admin_listen {
            Some(address) => {
                let policy = HostOriginPolicy::keyless(public_url.as_deref(), &allow_hosts)?;
                let status = Arc::new(ServiceStatus::new(Arc::clone(&names), Clock::system().now()));
                let monitor = Monitor::listen(address, policy, status.clone()).await;
                Some((monitor.map_err(|error| cannot_listen(ADMIN_LISTEN, address, &error))?, status))
            }
            None => None,
        };
        let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(LISTEN, listen, &error))?;
        let bound = listener.local_addr().context("cannot read the address that is listened on")?;
        if let Some(why) = in_clear(bound, tls.as_ref()) {
            tracing::warn!("{why}");
        }
        let policy = HostOriginPolicy::new(bound, public_url.as_deref(), &allow_hosts, &allow_origins)?;

        let folder = DataFolder::open(data, &names)?;
        let OpenedData { registry, keyring, database, clock } =
            OpenedData::open(&folder, &names, H::CATALOGUE, &random).await?;
        let off = database.unconfirmed_keys().await.context("cannot read the keys")?.len();
        if off > 0 {
            tracing::warn!(
                keys = off,
                "keys are off since the data folder was restored; `key list` shows them, `key confirm` turns them on"
            );
        }
        let setup = Setup { flags, config, folder: &folder, clock: clock.clone(), random: random.clone() };
        let Service { handlers, executor, inventory, own, upstreams, background, serves, hint, .. } = compose(setup)?;
        let demo = Demo { hint, ..demo };
        let trail = folder.join(AUDIT);
        let audit = AuditKeeper::start(&trail, &keyring, clock.clone(), database.clone(), audit).await;
        let (audit, keeper) =
            audit.with_context(|| format!("cannot write to {}; --{DATA} names another folder", trail.display()))?;
        let engine = Engine::start(Parts {
            store: database.clone(),
            executor: required(executor, H::CATALOGUE)?,
            keyring,
            clock: clock.clone(),
            random: random.clone(),
            max_in_flight: TASKS_MAX,
        });
        let engine = engine.await.context("cannot read the tasks in flight")?;
        let process = u32::from_le_bytes(random.bytes()?);
        // What is printed into a file or a pipe may be collected and kept, which is no place for secrets.
        let keys = match wanted || io::stdout().is_terminal() {
            true => demo.keys(&registry, H::CATALOGUE).await?,
            false => Vec::new(),
        };
        let first_steps = match registry.is_empty().await {
            true => Some(demo.first_steps(names.program, H::CATALOGUE, folder.path())),
            false => None,
        };
        let kept = engine.kept_nonces().await.context("cannot read the nonces of signed requests")?;
        let nonces = Nonces::starting(clock.clone(), kept).since(database.restored_at());
        let pipeline = Pipeline::new(handlers, registry.access(), audit, engine.clone(), nonces, clock.clone());
        let limiter = ConnectionLimiter::behind(proxies, limits);
        let (requests, audit) = (pipeline.counts(), pipeline.audit_handle());
        let url = public_url.unwrap_or_else(|| url_of(bound, tls.as_ref()));
        let endpoint = Arc::new(Endpoint::new(pipeline, policy, limits, base_path(&url), process));
        let socket = OperatorSocket::open(folder.path())?;
        if let Some((_, status)) = &monitor {
            let (database, engine, limiter) = (database.clone(), engine.clone(), limiter.clone());
            let audit = audit.clone();
            status.set_serving(StatusSources { database, engine, requests, audit, limiter, upstreams });
        }
        let context = Arc::new(OperatorContext {
            names: Arc::clone(&names),
            catalogue: H::CATALOGUE,
            registry,
            store: database,
            inventory,
            own,
            checks: checks.into(),
            folder: folder.path().to_owned(),
            clock,
            audit: Some(audit.clone()),
        });
        let certificates = tls.clone().map(|tls| Renewal {
            what: "certificates",
            renew: Box::new(move || {
                tls.reload();
                Ok(())
            }),
        });
        let trail = {
            let audit = audit.clone();
            let reopen = move || {
                audit.reopen();
                Ok(())
            };
            Renewal { what: "audit trail", renew: Box::new(reopen) }
        };
        let renewals = certificates.into_iter().chain([trail]).collect();
        Ok(Self {
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
            renewals,
            engine,
            background,
            context,
            keeper,
            socket,
            monitor,
            folder,
        })
    }

    /// The URL at which clients reach the server, without a slash at its end.
    fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// What the server prints at start.
    pub(crate) fn welcome(&self) -> String {
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
        let _ = writeln!(out, "Tasks, applications and keys are in {folder}.\nCtrl-C stops it.");
        out
    }

    /// Answers requests and drives tasks until `stop`. Then it answers held polls and requests in flight, waits for running effects,
    /// and flushes the audit. Tasks that are still in flight continue at the next start.
    ///
    /// # Errors
    /// Something was taken away from an application or a key that could not be stored.
    pub(crate) async fn serve(self, stop: impl Future<Output = ()>) -> Result<()> {
        let Self {
            listener,
            endpoint,
            limiter,
            tls,
            engine,
            background,
            context,
            keeper,
            socket,
            monitor,
            folder,
            keys,
            ..
        } = self;
        // Their secrets have been printed.
        drop(keys);
        let background = Background::start(background);
        let keeper = keeper.spawn();
        let (stopped, stopping) = oneshot::channel::<()>();
        let runner = tokio::spawn(Arc::clone(&engine).run(async { drop(stopping.await) }));
        let operators = tokio::spawn(socket.serve(Arc::clone(&context)));
        let keeping = {
            let context = Arc::clone(&context);
            tokio::spawn(async move {
                let time = timekeeping::keep(context.clock.clone(), context.store.clone());
                tokio::join!(context.registry.settle_on(), time);
            })
        };
        let closing = async {
            stop.await;
            monitor.iter().for_each(|(_, status)| status.set_stopping());
            engine.close();
        };
        edge::serve(listener, endpoint, limiter, tls, closing).await;
        operators.abort();
        let _ = operators.await;
        drop(stopped);
        if runner.await.is_err() {
            tracing::error!("the task that drives the engine panicked");
        }
        background.end().await;
        keeper.finish().await;
        keeping.abort();
        let _ = keeping.await;
        timekeeping::record(&context.clock, &*context.store).await;
        let settled = settle(&context).await;
        drop(context);
        if let Some((monitor, status)) = monitor {
            monitor.close().await;
            status.release().await;
        }
        drop(folder);
        settled
    }
}

/// Stores what was taken away and is not on the disk, for as long as a stop may take.
async fn settle(context: &OperatorContext) -> Result<()> {
    let mut tries = 0;
    while let Kept::Owed(why) = context.registry.settle().await {
        if tries == SETTLE_TRIES {
            bail!(
                "what was taken away is not on the disk ({why}), and is back after the next start: take it away again"
            );
        }
        tries += 1;
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    Ok(())
}

/// How often a stop tries to store what was taken away, and the pause in between: some 5 s, as long as the store waits for another
/// program that holds the database.
const SETTLE_TRIES: u32 = 25;
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

/// What clients are served with: a certificate, proxies that are believed, and limits.
fn edge_of(options: EdgeOptions) -> Result<(Option<Arc<Tls>>, TrustedProxies, Limits)> {
    let EdgeOptions { tls_cert, tls_key, trust_proxies, max_connections, max_connections_per_address } = options;
    let tls = match (tls_cert, tls_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Tls::load(certificate, key)?),
        _ => bail!("--{TLS_CERT} and --{TLS_KEY} go together; give both, or neither"),
    };
    let [connections, connections_per_address] = [max_connections, max_connections_per_address].map(|n| n as usize);
    let asked = Limits { connections, connections_per_address, ..Limits::default() };
    let open_files = open_files::raise();
    let limits = asked.within(open_files);
    if limits.connections < connections {
        let connections = limits.connections;
        tracing::warn!(
            connections,
            open_files,
            "the limit on open files leaves fewer connections than --{MAX_CONNECTIONS}"
        );
    }
    Ok((tls, TrustedProxies::new(&trust_proxies)?, limits))
}

/// What an operator has to know of a listener whose clients others than this machine can overhear.
fn in_clear(bound: SocketAddr, tls: Option<&Arc<Tls>>) -> Option<String> {
    let overheard = tls.is_none() && !bound.ip().to_canonical().is_loopback();
    let advice = format!("--{TLS_CERT} and --{TLS_KEY} encrypt them, or a proxy in front does");
    overheard.then(|| format!("keys and answers cross the network in clear at {bound}; {advice}"))
}

fn url_of(bound: SocketAddr, tls: Option<&Arc<Tls>>) -> String {
    format!("{}://{bound}", if tls.is_some() { "https" } else { "http" })
}

/// The path of a URL, without a slash at its end.
fn base_path(url: &str) -> &str {
    let after = url.split_once("://").map_or("", |(_, after)| after);
    after.find('/').map_or("", |at| after[at..].trim_end_matches('/'))
}

fn cannot_listen(flag: &str, address: SocketAddr, error: &io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there",
        io::ErrorKind::PermissionDenied => "ports below 1024 are for privileged programs",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => return anyhow!("cannot listen on {address}: {error}; choose another with --{flag}"),
    };
    anyhow!("cannot listen on {address}: {why}; choose another with --{flag}")
}

/// The signals that stop the program: SIGINT and SIGTERM.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Starts to listen for the signals.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn listen() -> io::Result<Self> {
        // A write beyond the limit on the size of files then fails, and ends nobody.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
