//! The listeners of a server.

use crate::manager::keep_watchdog;
use crate::open_files;
use anyhow::{Context, Result, anyhow, bail};
use rustix::system::uname;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use toolwarrant_base::clock::Clock;
use toolwarrant_http::edge::{ConnectionLimiter, HostOriginPolicy, Limits, Tls, TrustedProxies, public_host};
use toolwarrant_http::monitor::Monitor;
use toolwarrant_operator::Names;
use toolwarrant_operator::cli::{EdgeOptions, ServeOptions};
use toolwarrant_operator::flags::{
    ADMIN_LISTEN, CONSOLE_LISTEN, LISTEN, MAX_CONNECTIONS, PUBLIC_URL, TLS_CERT, TLS_KEY,
};
use toolwarrant_operator::metrics::ServiceStatus;

pub(crate) struct Listening {
    pub(crate) bound: SocketAddr,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) limits: Limits,
    pub(crate) limiter: Arc<ConnectionLimiter>,
    pub(crate) policy: HostOriginPolicy,
    pub(crate) url: String,
    pub(crate) status: Arc<ServiceStatus>,
    /// Reports to the service manager until this is dropped.
    pub(crate) watchdog: JoinSet<()>,
    pub(crate) monitor: Option<Monitor>,
    pub(crate) console: Option<ConsoleSocket>,
}

/// The place of a console that stays open.
pub(crate) struct ConsoleSocket {
    pub(crate) socket: TcpSocket,
    /// The name of the server in links, beyond this machine.
    pub(crate) public: Option<(String, Arc<Tls>)>,
}

impl Listening {
    /// Takes the address as well, which then refuses connections.
    pub(crate) async fn open(serve: &ServeOptions, names: &Arc<Names>) -> Result<(TcpSocket, Self)> {
        let &ServeOptions { listen, admin_listen, console_listen, ref edge, ref public_url, .. } = serve;
        let ServeOptions { allow_hosts, allow_origins, .. } = serve;
        let public_url = public_url.as_deref();
        let (tls, proxies, limits) = edge_of(edge)?;
        refuse_shared_ports(&[(LISTEN, Some(listen)), (ADMIN_LISTEN, admin_listen), (CONSOLE_LISTEN, console_listen)])?;
        let status = Arc::new(ServiceStatus::new(Arc::clone(names), Clock::system().now()));
        let watchdog = keep_watchdog(status.clone());
        let machine = uname().nodename().to_string_lossy().into_owned();
        let monitor = match admin_listen {
            Some(address) => {
                let policy = HostOriginPolicy::keyless(public_url, allow_hosts)?.with_machine(&machine);
                let monitor = Monitor::listen(address, policy, status.clone()).await;
                Some(monitor.map_err(|error| cannot_listen(ADMIN_LISTEN, address, &error))?)
            }
            None => None,
        };
        let console = console_listen.map(|address| take_console(address, tls.as_ref(), public_url));
        let console = console.transpose()?;
        let socket = take_address(listen).map_err(|error| cannot_listen(LISTEN, listen, &error))?;
        let bound = socket.local_addr().context("cannot read the address that is listened on")?;
        if let Some(why) = in_clear(bound, tls.as_ref()) {
            tracing::warn!("{why}");
        }
        let policy = HostOriginPolicy::new(bound, public_url, allow_hosts, allow_origins)?;
        let policy = policy.with_machine(&machine);
        let url = public_url.map_or_else(|| url_of(bound, tls.as_ref()), str::to_owned);
        let limiter = ConnectionLimiter::behind(proxies, limits);
        Ok((socket, Self { bound, tls, limits, limiter, policy, url, status, watchdog, monitor, console }))
    }

    /// Returns the URL without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }
}

fn refuse_shared_ports(addresses: &[(&str, Option<SocketAddr>)]) -> Result<()> {
    let given: Vec<_> = addresses.iter().filter_map(|(flag, address)| Some((flag, (*address)?))).collect();
    for (n, (flag, one)) in given.iter().enumerate() {
        let meets = |other: &SocketAddr| {
            let is_everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
            one.port() == other.port() && one.port() != 0 && (one.ip() == other.ip() || is_everywhere)
        };
        if let Some((other, address)) = given[n + 1..].iter().find(|(_, other)| meets(other)) {
            bail!("--{flag} {one} and --{other} {address} share a port; each needs one of its own");
        }
    }
    Ok(())
}

fn take_console(address: SocketAddr, tls: Option<&Arc<Tls>>, public_url: Option<&str>) -> Result<ConsoleSocket> {
    let public = match (address.ip().to_canonical().is_loopback(), tls, public_url) {
        (true, ..) => None,
        (false, Some(tls), Some(url)) => Some((public_host(url)?, Arc::clone(tls))),
        (false, ..) => bail!(
            "--{CONSOLE_LISTEN} {address} is beyond this machine, where the console needs --{TLS_CERT}, --{TLS_KEY} and \
             --{PUBLIC_URL}, whose host its links name; 127.0.0.1:{} needs nothing",
            address.port()
        ),
    };
    let socket = take_address(address).map_err(|error| cannot_listen(CONSOLE_LISTEN, address, &error))?;
    Ok(ConsoleSocket { socket, public })
}

fn take_address(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that an address of connections that have just ended is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

pub(crate) fn listen(socket: TcpSocket, flag: &str) -> Result<TcpListener> {
    let address = socket.local_addr().context("cannot read the address to listen on")?;
    socket.listen(BACKLOG).map_err(|error| cannot_listen(flag, address, &error))
}

/// As many as Linux usually allows.
const BACKLOG: u32 = 4_096;

fn edge_of(options: &EdgeOptions) -> Result<(Option<Arc<Tls>>, TrustedProxies, Limits)> {
    let EdgeOptions { tls_cert, tls_key, trust_proxies, max_connections, max_connections_per_address } =
        options.clone();
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

pub(crate) fn in_clear(bound: SocketAddr, tls: Option<&Arc<Tls>>) -> Option<String> {
    let overheard = tls.is_none() && !bound.ip().to_canonical().is_loopback();
    let advice = format!("--{TLS_CERT} and --{TLS_KEY} encrypt them, or a proxy in front does");
    overheard.then(|| format!("keys and answers cross the network in clear at {bound}; {advice}"))
}

pub(crate) fn url_of(bound: SocketAddr, tls: Option<&Arc<Tls>>) -> String {
    format!("{}://{bound}", if tls.is_some() { "https" } else { "http" })
}

/// Drops a slash at the end.
pub(crate) fn base_path(url: &str) -> &str {
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
