//! A server: what it is made of, put together once at start, and how it stops.

use crate::service::{Service, Setup};
use crate::welcome::{Demo, DemoKey};
use anyhow::{Context, Result, anyhow};
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use toolwarrant_core::audit::Audit;
use toolwarrant_core::clock::Clock;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_core::random::Random;
use toolwarrant_http::edge::{self, ConnectionLimiter, HostOriginPolicy, Limits};
use toolwarrant_http::monitor::Monitor;
use toolwarrant_http::{Endpoint, Router};
use toolwarrant_operator::cli::Flags;
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::metrics::{Probes, Sources};
use toolwarrant_operator::socket::OperatorSocket;
use toolwarrant_operator::{Check, Names, OpenedData, OperatorContext};
use toolwarrant_tasks::engine::{Engine, Parts};

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address for those who watch the program, if any.
    pub admin_listen: Option<SocketAddr>,
    /// URL at which clients reach the server, if that is another.
    pub public_url: Option<String>,
    /// Further host names that requests may be addressed to.
    pub allow_hosts: Vec<String>,
    /// Origins of web pages that may call.
    pub allow_origins: Vec<String>,
    /// Folder for what outlives a request.
    pub data: PathBuf,
}

/// What a server is beside the service that it serves.
pub(crate) struct Identity {
    /// What it calls itself.
    pub(crate) names: Names,
    /// What its first start makes and shows.
    pub(crate) demo: Demo,
    /// What its doctor looks at.
    pub(crate) checks: Vec<Check>,
}

/// A server that listens, and has not begun to answer.
pub struct Server {
    listener: TcpListener,
    router: Router,
    limiter: Arc<ConnectionLimiter>,
    url: String,
    names: Arc<Names>,
    serves: Option<String>,
    demo: Demo,
    keys: Vec<DemoKey>,
    engine: Arc<Engine>,
    context: Arc<OperatorContext>,
    socket: OperatorSocket,
    monitor: Option<(Monitor, Arc<Probes>)>,
    /// Held as long as the server runs.
    folder: DataFolder,
}

/// Most tasks in flight.
const TASKS_MAX: usize = 100_000;

impl Server {
    /// Listens, opens the data folder, makes the service, and the demo keys if the folder is new.
    ///
    /// # Errors
    /// What cannot be had, and which flag chooses another.
    pub(crate) async fn start<H: Handlers, F: Flags>(
        identity: Identity,
        config: ServeConfig,
        flags: F,
        compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H>>,
    ) -> Result<Self> {
        let Identity { names, demo, checks } = identity;
        let ServeConfig { listen, admin_listen, public_url, allow_hosts, allow_origins, data } = config;
        let (names, clock, random) = (Arc::new(names), Clock::system(), Random::System);
        if admin_listen == Some(listen) && listen.port() != 0 {
            return Err(anyhow!("--listen and --admin-listen are both {listen}; each needs a port of its own"));
        }
        let monitor = match admin_listen {
            Some(address) => {
                let policy =
                    HostOriginPolicy::keyless(public_url.as_deref(), &allow_hosts).map_err(|why| anyhow!(why))?;
                let probes = Arc::new(Probes::new(Arc::clone(&names), clock.now()));
                let monitor = Monitor::listen(address, policy, probes.clone()).await;
                Some((monitor.map_err(|error| cannot_listen("--admin-listen", address, &error))?, probes))
            }
            None => None,
        };
        let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen("--listen", listen, &error))?;
        let bound = listener.local_addr().context("cannot read the address that is listened on")?;
        let policy = HostOriginPolicy::new(bound, public_url.as_deref(), &allow_hosts, &allow_origins)
            .map_err(|why| anyhow!(why))?;

        let folder = DataFolder::open(&data, &names)?;
        let OpenedData { registry, vault, database } =
            OpenedData::open(&folder, &names, H::CATALOGUE, clock.clone(), &random).await?;
        let setup = Setup { flags, folder: &folder, clock: clock.clone(), random: random.clone() };
        let Service { handlers, executor, inventory, serves } = compose(setup)?;
        let trail = folder.join(AUDIT);
        let audit = Audit::start(&trail)
            .with_context(|| format!("cannot write to {}; --data names another folder", trail.display()))?;
        let engine = Engine::start(Parts {
            store: database.clone(),
            executor,
            vault,
            clock: clock.clone(),
            random: random.clone(),
            max_in_flight: TASKS_MAX,
        });
        let engine = engine.await.context("cannot read the tasks in flight")?;
        let process = u32::from_le_bytes(random.bytes()?);
        let keys = demo.keys(&registry, H::CATALOGUE).await?;
        let pipeline = Pipeline::new(handlers, registry.access(), audit, engine.clone(), clock.clone());
        let limiter = ConnectionLimiter::new(Limits::default());
        let (requests, backlog) = (pipeline.counts(), pipeline.backlog());
        let router = Endpoint::new(pipeline, policy, Limits::default(), process).router();
        let url = public_url.unwrap_or_else(|| format!("http://{bound}"));
        let socket =
            OperatorSocket::open(folder.path()).map_err(|why| anyhow!("{why}; choose a shorter or another --data"))?;
        if let Some((_, probes)) = &monitor {
            let (database, engine, limiter) = (database.clone(), engine.clone(), limiter.clone());
            probes.serves(Sources { database, engine, requests, backlog, limiter });
        }
        let context = Arc::new(OperatorContext {
            names: Arc::clone(&names),
            catalogue: H::CATALOGUE,
            registry,
            store: database,
            inventory,
            checks: checks.into(),
            folder: folder.path().to_owned(),
            clock,
        });
        Ok(Self { listener, router, limiter, url, names, serves, demo, keys, engine, context, socket, monitor, folder })
    }

    /// The URL at which clients reach the server, without a path.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// What a person who starts the server reads first.
    #[must_use]
    pub fn welcome(&self) -> String {
        let Names { program, version, .. } = *self.names;
        let (url, folder) = (self.url(), self.folder.path().display());
        let serves = self.serves.as_deref().unwrap_or(self.context.catalogue.service.name);
        let mut out = format!("{program} {version} serves {serves} at {url}/mcp\n\n");
        out += &self.demo.text(program, url, &self.keys);
        if let Some((monitor, _)) = &self.monitor {
            let _ = writeln!(out, "/healthz, /readyz and /metrics are at http://{}", monitor.address());
        }
        let _ = writeln!(out, "Tasks, applications and keys are in {folder}.\nCtrl-C stops it.");
        out
    }

    /// Answers and drives tasks until `stop`; then answers what is held or in flight, lets effects under way come to their
    /// end, and flushes the audit. Tasks that have not ended by then go on at the next start.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, router, limiter, engine, context, socket, monitor, folder, .. } = self;
        let (stopped, stopping) = oneshot::channel::<()>();
        let runner = tokio::spawn(Arc::clone(&engine).run(async { drop(stopping.await) }));
        let operators = tokio::spawn(socket.serve(context));
        let closing = async {
            stop.await;
            monitor.iter().for_each(|(_, probes)| probes.stops());
            engine.close();
        };
        edge::serve(listener, router, limiter, closing).await;
        operators.abort();
        let _ = operators.await;
        drop(stopped);
        if runner.await.is_err() {
            tracing::error!("the runner panicked");
        }
        if let Some((monitor, probes)) = monitor {
            monitor.close().await;
            probes.release().await;
        }
        drop(folder);
    }
}

fn cannot_listen(flag: &str, address: SocketAddr, error: &io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there",
        io::ErrorKind::PermissionDenied => "ports below 1024 are for privileged programs",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => return anyhow!("cannot listen on {address}: {error}; choose another with {flag}"),
    };
    anyhow!("cannot listen on {address}: {why}; choose another with {flag}")
}

/// The signals that end the program: SIGINT and SIGTERM.
#[derive(Debug)]
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Begins to listen for them.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn on_signal() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Returns at the next of them.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
