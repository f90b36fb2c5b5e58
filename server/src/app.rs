//! Composition: what the program is made of, put together once at start, and how it stops.

use crate::admin::monitor::{Monitor, Sources};
use crate::admin::socket::Door;
use crate::admin::{Fleet, Office, Opened};
use crate::clock::Clock;
use crate::data::DataFolder;
use crate::framework::access::Grants;
use crate::framework::audit::Audit;
use crate::framework::pipeline::Pipeline;
use crate::framework::registry::{NewApplication, NewKey, Registry};
use crate::framework::transport::Endpoint;
use crate::framework::transport::edge::{self, Crowd, Doorkeeper, Limits};
use crate::phones::contract::{CATALOGUE, Contract, Permission};
use crate::phones::devices::Phones;
use crate::phones::proxy_hosts::ProxyHosts;
use crate::phones::writes::Writes;
use crate::random::Random;
use crate::tasks::engine::{Engine, Parts};
use anyhow::{Context, Result, anyhow};
use axum::Router;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct Config {
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
    /// The proxies that phones may be told to use.
    pub proxy_hosts: ProxyHosts,
    /// Folder for what outlives a request.
    pub data: PathBuf,
    /// Number of simulated phones.
    pub sim_devices: u32,
    /// Seed of the simulated phones.
    pub sim_seed: u64,
}

/// A server that listens, and has not begun to answer.
pub struct App {
    listener: TcpListener,
    router: Router,
    crowd: Arc<Crowd>,
    url: String,
    devices: u32,
    keys: Vec<DemoKey>,
    engine: Arc<Engine>,
    office: Arc<Office>,
    door: Door,
    monitor: Option<Monitor>,
    /// Held as long as the server runs.
    folder: DataFolder,
}

/// A key that was made for trying the server out.
struct DemoKey {
    /// The application's name.
    application: &'static str,
    /// What the application may do.
    permissions: String,
    /// Key id and secret.
    key: NewKey,
}

/// The applications that the first start makes, and what they may do.
const DEMO: [(&str, &[Permission]); 2] =
    [("demo", &[Permission::Device, Permission::Stream]), ("demo-read", &[Permission::DeviceRead])];

/// Most tasks in flight.
const ROOM: usize = 100_000;

impl App {
    /// Listens, opens the data folder, and makes the demo keys if it is new.
    ///
    /// # Errors
    /// What cannot be had, and which flag chooses another.
    pub async fn start(config: Config) -> Result<Self> {
        let Config {
            listen,
            admin_listen,
            public_url,
            allow_hosts,
            allow_origins,
            proxy_hosts,
            data,
            sim_devices,
            sim_seed,
        } = config;
        let (clock, random) = (Clock::system(), Random::System);
        if admin_listen == Some(listen) && listen.port() != 0 {
            return Err(anyhow!("--listen and --admin-listen are both {listen}; each needs a port of its own"));
        }
        let monitor = match admin_listen {
            Some(address) => {
                let door = Doorkeeper::keyless(public_url.as_deref(), &allow_hosts).map_err(|why| anyhow!(why))?;
                let monitor = Monitor::listen(address, clock.now(), door).await;
                Some(monitor.map_err(|error| cannot_listen("--admin-listen", address, &error))?)
            }
            None => None,
        };
        let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen("--listen", listen, &error))?;
        let bound = listener.local_addr().context("cannot read the address that is listened on")?;
        let door =
            Doorkeeper::new(bound, public_url.as_deref(), &allow_hosts, &allow_origins).map_err(|why| anyhow!(why))?;

        let folder = DataFolder::open(&data)?;
        let fleet = Fleet { devices: sim_devices, seed: sim_seed };
        let Opened { office, vault, sim, database } = Opened::open(&folder, fleet, clock.clone(), &random).await?;
        let trail = office.audit();
        let audit = Audit::start(&trail)
            .with_context(|| format!("cannot write to {}; --data names another folder", trail.display()))?;
        let phones = Phones::new(sim.clone(), proxy_hosts, clock.clone());
        let engine = Engine::start(Parts {
            store: Arc::clone(&office.store),
            executor: Arc::new(Writes::new(sim, phones.views())),
            vault,
            clock: clock.clone(),
            random: random.clone(),
            room: ROOM,
        });
        let engine = engine.await.context("cannot read the tasks in flight")?;
        let process = u32::from_le_bytes(random.bytes()?);
        let keys = demo(&office.registry).await?;
        let pipeline =
            Pipeline::new(Contract(Arc::new(phones)), office.registry.access(), audit, engine.clone(), clock);
        let crowd = Crowd::new(Limits::default());
        let (requests, backlog) = (pipeline.counts(), pipeline.backlog());
        let router = Endpoint::new(pipeline, door, Limits::default(), process).router();
        let url = public_url.unwrap_or_else(|| format!("http://{bound}"));
        let door = Door::open(folder.path()).map_err(|why| anyhow!("{why}; choose a shorter or another --data"))?;
        let office = Arc::new(office);
        if let Some(monitor) = &monitor {
            monitor.serves(Sources { database, engine: engine.clone(), requests, backlog, crowd: crowd.clone() });
        }
        Ok(Self { listener, router, crowd, url, devices: sim_devices, keys, engine, office, door, monitor, folder })
    }

    /// The URL at which clients reach the server, without a path.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// What a person who starts the server reads first. At the first start: the keys, and lines to paste.
    #[must_use]
    pub fn welcome(&self) -> String {
        let (version, url, folder) = (env!("CARGO_PKG_VERSION"), self.url(), self.folder.path().display());
        let mut out = format!("cloudphone {version} serves {} simulated phones at {url}/mcp\n\n", self.devices);
        for DemoKey { application, permissions, key } in &self.keys {
            let _ = writeln!(out, "application {application} may {permissions}");
            let _ = writeln!(out, "  X-Api-Key:    {}\n  X-Api-Secret: {}", key.key_id, key.secret.expose());
        }
        if let Some(DemoKey { key: NewKey { key_id, secret }, .. }) = self.keys.first() {
            let secret = secret.expose();
            let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{"limit":3}}}"#;
            let entry = format!(
                r#""cloudphone":{{"type":"http","url":"{url}/mcp","headers":{{"Authorization":"Bearer {key_id}:{secret}"}}}}"#
            );
            let _ = write!(
                out,
                "\nThese secrets are shown this once; `cloudphone key create demo` makes another key.\n\n\
                 Try it:\n\n  curl {url}/mcp -H 'Content-Type: application/json' \\\n    -H 'X-Api-Key: {key_id}' \\\n    \
                 -H 'X-Api-Secret: {secret}' \\\n    -d '{call}'\n\n\
                 Connect a client:\n\n  \
                 Claude Code  claude mcp add --transport http cloudphone {url}/mcp \\\n                 \
                 --header 'Authorization: Bearer {key_id}:{secret}'\n  \
                 Cursor       .cursor/mcp.json  {{\"mcpServers\":{{{entry}}}}}\n  \
                 VS Code      .vscode/mcp.json  {{\"servers\":{{{entry}}}}}\n\n\
                 Then try set_proxy: on phone-0000001 it ends as success, on phone-0000013 as failed_silent, refunded, on\n\
                 phone-0000020 as timeout, on phone-0000023 as failed. `cloudphone task list` shows how each went.\n\n"
            );
        }
        if self.keys.is_empty() {
            out += "`cloudphone key create demo` makes another key, `cloudphone task list` shows how writes went.\n";
        }
        if let Some(monitor) = &self.monitor {
            let _ = writeln!(out, "/healthz, /readyz and /metrics are at http://{}", monitor.address());
        }
        let _ = writeln!(out, "Tasks, applications and keys are in {folder}.\nCtrl-C stops it.");
        out
    }

    /// Answers and drives tasks until `stop`; then answers what is held or in flight, lets effects under way come to their
    /// end, and flushes the audit. Tasks that have not ended by then go on at the next start.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, router, crowd, url: _, devices: _, keys: _, engine, office, door, monitor, folder } = self;
        let (stopped, stopping) = oneshot::channel::<()>();
        let runner = tokio::spawn(Arc::clone(&engine).run(async { drop(stopping.await) }));
        let operators = tokio::spawn(door.serve(office));
        let closing = async {
            stop.await;
            monitor.iter().for_each(Monitor::stops);
            engine.close();
        };
        edge::serve(listener, router, crowd, closing).await;
        operators.abort();
        let _ = operators.await;
        drop(stopped);
        if runner.await.is_err() {
            tracing::error!("the runner panicked");
        }
        if let Some(monitor) = monitor {
            monitor.close().await;
        }
        drop(folder);
    }
}

/// Makes the demo applications with a key each: at the first start, and where that was cut short.
async fn demo(registry: &Registry) -> Result<Vec<DemoKey>> {
    let mut keys = Vec::new();
    let first = registry.is_empty().await;
    for (name, permissions) in DEMO {
        let permissions: Vec<_> = permissions.iter().map(|permission| permission.as_str().to_owned()).collect();
        let application = match registry.find(name).await {
            Ok(known) if registry.keys().await.iter().all(|key| key.application != known.id) => known.id,
            Ok(_) => continue,
            Err(_) if first || !keys.is_empty() => {
                let new = NewApplication {
                    name: name.to_owned(),
                    permissions: permissions.clone(),
                    grants: Grants::All,
                    requests_per_minute: CATALOGUE.service.requests_per_minute,
                };
                registry.create(new).await.context("cannot make the demo applications")?
            }
            Err(_) => continue,
        };
        let key = registry.issue_key(&application, None).await.context("cannot make a key")?;
        keys.push(DemoKey { application: name, permissions: permissions.join(", "), key });
    }
    Ok(keys)
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
