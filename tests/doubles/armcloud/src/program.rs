//! The command line, the ports, and the first line of the output, which reports them.

use crate::adb;
use crate::control::{self, Control};
use crate::host;
use crate::journal::Journal;
use crate::net;
use crate::switches;
use crate::tools;
use crate::wire::{self, Port};
use crate::world::World;
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Simulates VMOS Cloud and VSPhone (/vcpcloud/api/padApi, /vsphone/api/padApi) on this machine,
/// with an adb server in front of the same phones.
///
/// The first line on stdout is JSON: the `url` of the platform, the address of the `adb` server,
/// the `control` URL of switches, state and journal, the keys of the account, and the first `pads`.
/// `armcloud-double act --control URL ACTION SERIAL` is a program for an operator:
/// it does `start`, `stop`, `restart`, `status`, `set-proxy` or `clear-proxy` for a phone.
#[derive(Debug, Parser)]
#[command(name = "armcloud-double", version)]
struct Flags {
    /// The platform's address, in 127.0.0.0/8
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The adb server's address, in 127.0.0.0/8
    #[arg(long, default_value = "127.0.0.1:0")]
    adb_listen: SocketAddr,
    /// The number of pads
    #[arg(long, default_value_t = 12)]
    pads: usize,
    /// Appends the journal to this file
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Sets a switch of `src/switches.rs` for all pads from the start; VALUE is JSON
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// Runs the phone's tool if the program was started under its name.
pub(crate) fn run() -> ExitCode {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = Path::new(&name).file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let arguments: Vec<String> = arguments.collect();
    if tools::is_tool(&name) {
        return tools::run(&name, &arguments);
    }
    match arguments.as_slice() {
        [word, tool, arguments @ ..] if word == "tool" => return tools::run(tool, arguments),
        [word, arguments @ ..] if word == "act" => return host::run(arguments),
        _ => {}
    }
    match serve(Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("armcloud-double: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn serve(flags: Flags) -> Result<()> {
    let Flags { listen, adb_listen, pads, journal, set } = flags;
    for (flag, address) in [("listen", listen), ("adb-listen", adb_listen)] {
        let is_own = address.ip().is_loopback() && address.is_ipv4();
        ensure!(is_own, "`--{flag} {address}` must be an address of 127.0.0.0/8");
    }
    ensure!(pads <= 60_000, "`--pads {pads}` must be at most 60000");
    let port = Port::take(listen).with_context(|| format!("cannot listen at {listen}"))?;
    let control = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let adb = Port::take(adb_listen).with_context(|| format!("cannot listen at {adb_listen}"))?;
    let opened = |path: &PathBuf| File::options().create(true).append(true).open(path);
    let file = journal.as_ref().map(opened).transpose().context("cannot open the journal")?;
    let folder = TempDir::new()?;
    let urls = (format!("http://{}", port.address()), format!("http://{}/double", control.local_addr()?));
    let journal = Journal::new(file);
    let world = Arc::new(World::new(pads, journal, (urls.1.clone(), adb.address()), folder.path().to_owned()));
    world.switches().set(None, from_flags(&set)?);
    let (closed, is_closed) = watch::channel(false);
    let (open, is_open) = watch::channel(false);
    let first = [port.listen()?, adb.listen()?];
    open.send_replace(true);
    let hello = hello(&world, &urls);
    let of_control = Control { world: world.clone(), closed, is_open };
    let controlled = axum::serve(control, control::router(of_control)).into_future();
    writeln!(std::io::stdout(), "{hello}")?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = keep_open(&world, [port, adb], first, is_closed, open) => ended,
        ended = controlled => Ok(ended?),
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

async fn keep_open(
    world: &Arc<World>,
    [port, adb]: [Port; 2],
    mut listeners: [TcpListener; 2],
    mut is_closed: watch::Receiver<bool>,
    open: watch::Sender<bool>,
) -> Result<()> {
    loop {
        let [over_http, over_adb] = listeners;
        tokio::select! {
            () = net::serve_each(over_http, |stream| wire::serve(world.clone(), stream)) => {}
            () = net::serve_each(over_adb, |stream| adb::serve(world.clone(), stream)) => {}
            closed = is_closed.wait_for(|closed| *closed) => drop(closed?),
        }
        open.send_replace(false);
        is_closed.wait_for(|closed| !closed).await?;
        listeners = [port.listen()?, adb.listen()?];
        open.send_replace(true);
    }
}

fn from_flags(set: &[String]) -> Result<switches::Set> {
    let mut written = Map::new();
    for flag in set {
        let (name, value) = flag.split_once('=').with_context(|| format!("`--set {flag}` must be NAME=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        written.insert(name.to_owned(), value);
    }
    switches::Set::deserialize(Value::Object(written)).context("--set")
}

fn hello(world: &World, (url, control): &(String, String)) -> Value {
    let truth = world.truth();
    let codes: Vec<&str> = truth.pads.iter().take(12).map(|pad| pad.code.as_str()).collect();
    json!({
        "url": url, "adb": world.adb.to_string(), "control": control, "access_key": world.access_key, "secret_key": world.secret_key, "pads": codes,
    })
}
