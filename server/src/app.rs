//! Composition: what the program is made of, put together once at start, and how it stops.

use crate::clock::Clock;
use crate::framework::access::{Access, Application, Grants, NewKey};
use crate::framework::audit::Audit;
use crate::framework::catalogue::PermissionSet;
use crate::framework::pipeline::Pipeline;
use crate::framework::tasks::NoTasks;
use crate::framework::transport::Endpoint;
use crate::framework::transport::edge::{self, Doorkeeper, Limits};
use crate::phones::contract::{CATALOGUE, Contract, Permission};
use crate::phones::devices::Phones;
use crate::phones::proxy_hosts::ProxyHosts;
use crate::phones::upstream::sim::Sim;
use anyhow::{Context, Result, anyhow};
use axum::Router;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// URL at which clients reach the server, if that is another.
    pub public_url: Option<String>,
    /// Further host names that requests may be addressed to.
    pub allow_hosts: Vec<String>,
    /// Origins of web pages that may call.
    pub allow_origins: Vec<String>,
    /// Folder for what outlives a request.
    pub data: PathBuf,
    /// Number of simulated phones.
    pub sim_devices: u32,
    /// Seed of the simulated phones.
    pub sim_seed: u64,
}

/// A server that listens, and has not begun to answer.
#[derive(Debug)]
pub struct App {
    listener: TcpListener,
    router: Router,
    url: String,
    devices: u32,
    keys: Vec<DemoKey>,
}

/// A key that was made for trying the server out.
#[derive(Debug)]
pub struct DemoKey {
    /// The application's name.
    pub application: &'static str,
    /// What the application may do.
    pub permissions: &'static str,
    /// Key id and secret.
    pub key: NewKey,
}

/// The applications that every start makes: name, what they may do, and the same in words.
const DEMO: [(&str, PermissionSet, &str); 2] = [
    ("demo", Permission::Device.grants().and(Permission::Stream.grants()), "device, stream"),
    ("demo-read", Permission::DeviceRead.grants(), "device_read"),
];

impl App {
    /// Listens, opens the data folder and makes the demo keys.
    ///
    /// # Errors
    /// What cannot be had, and which flag chooses another.
    pub async fn start(config: Config) -> Result<Self> {
        let Config { listen, public_url, allow_hosts, allow_origins, data, sim_devices, sim_seed } = config;
        let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))?;
        let bound = listener.local_addr().context("cannot read the address that is listened on")?;
        let door =
            Doorkeeper::new(bound, public_url.as_deref(), &allow_hosts, &allow_origins).map_err(|why| anyhow!(why))?;
        let audit = data.join("audit");
        let audit = Audit::start(&audit)
            .with_context(|| format!("cannot write to {}; choose another folder with --data", audit.display()))?;

        let clock = Clock::system();
        let sim = Sim::new(sim_seed, sim_devices, clock.clone(), &random()?);
        let access = Access::new(random()?);
        let mut keys = Vec::new();
        for (name, permissions, words) in DEMO {
            let limit = CATALOGUE.service.requests_per_minute;
            let application = Arc::new(Application::new(name, name, permissions, Grants::All, limit));
            let key = access.issue_key(&application).context("cannot make a key")?;
            keys.push(DemoKey { application: name, permissions: words, key });
        }
        let handlers = Contract(Phones::new(Arc::new(sim), ProxyHosts::PublicAndPrivate, clock.clone()));
        let pipeline = Pipeline::new(handlers, access, audit, Arc::new(NoTasks), clock);
        let router = Endpoint::new(pipeline, door, Limits::default(), u32::from_le_bytes(random()?)).router();
        let url = public_url.unwrap_or_else(|| format!("http://{bound}"));
        Ok(Self { listener, router, url, devices: sim_devices, keys })
    }

    /// The URL at which clients reach the server, without a path.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// The demo keys.
    #[must_use]
    pub fn keys(&self) -> &[DemoKey] {
        &self.keys
    }

    /// What a person who starts the server reads first: where it is, the keys, and a line to paste.
    #[must_use]
    pub fn welcome(&self) -> String {
        let mut out = format!(
            "cloudphone {} serves {} simulated phones at {}/mcp\n\n",
            env!("CARGO_PKG_VERSION"),
            self.devices,
            self.url()
        );
        for DemoKey { application, permissions, key } in &self.keys {
            let _ = writeln!(out, "application {application} may {permissions}");
            let _ = writeln!(out, "  X-Api-Key:    {}\n  X-Api-Secret: {}", key.key_id, key.secret.expose());
        }
        if let Some(DemoKey { key, .. }) = self.keys.first() {
            let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{"limit":3}}}"#;
            let _ = write!(
                out,
                "\nTry it:\n\n  curl {}/mcp -H 'Content-Type: application/json' \\\n    -H 'X-Api-Key: {}' \\\n    \
                 -H 'X-Api-Secret: {}' \\\n    -d '{call}'\n\n\
                 These keys end with this process. Ctrl-C stops it.\n",
                self.url(),
                key.key_id,
                key.secret.expose()
            );
        }
        out
    }

    /// Answers until `stop`, then finishes what is in flight and flushes the audit.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        edge::serve(self.listener, self.router, Limits::default(), stop).await;
    }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there",
        io::ErrorKind::PermissionDenied => "ports below 1024 are for privileged programs",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => return anyhow!("cannot listen on {address}: {error}; choose another with --listen"),
    };
    anyhow!("cannot listen on {address}: {why}; choose another with --listen")
}

/// Random bytes from the operating system.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system has no randomness: {error}"))?;
    Ok(bytes)
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
