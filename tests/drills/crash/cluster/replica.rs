//! A replica with its supervisor, which starts it again whenever it ends, and the faults that can
//! happen to it. Its run waits until it leads.

use crate::harness::program::binary;
use kit::{HttpAnswer, LinkRelay, LinkState, PostgresPair, Process, ProgramOperator, Start, get};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const RESTART: Duration = Duration::from_millis(100);

const PATIENCE: Duration = Duration::from_secs(2);

const WAITS: &str = "leads, and this one waits";

#[derive(Clone, Copy)]
pub(super) enum Outage {
    Cut,
    Stall,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    id: u32,
    leads_since: Option<Instant>,
}

pub(super) struct Replica {
    pub(super) name: String,
    home: PathBuf,
    program: Mutex<PathBuf>,
    pub(super) data: PathBuf,
    links: [LinkRelay; 2],
    flags: Vec<String>,
    monitor: SocketAddr,
    /// `None` while none lives.
    run: watch::Sender<Option<Run>>,
    /// `None` if the run ends by itself.
    rest: Mutex<Option<Duration>>,
    ends_as_leader: AtomicU64,
}

impl Replica {
    /// Uses the program `before` for the first run.
    pub(super) async fn make(
        number: u64,
        folder: &Path,
        servers: &PostgresPair,
        (config, before): (&Path, Option<PathBuf>),
    ) -> Self {
        let name = format!("r{number}");
        let home = folder.join(&name);
        fs::create_dir(&home).expect("a folder");
        let [a, b] = servers.sockets().map(LinkRelay::start);
        let links = [a.await.expect("a port"), b.await.expect("a port")];
        // No other test binds this address, so the ports stay free while the replica is down.
        let free = || TcpListener::bind(format!("127.77.0.{number}:0")).expect("a free port");
        let [echo, monitor] = [free(), free()].map(|free| free.local_addr().expect("an address"));
        let [a, b] = links.each_ref().map(|link| link.port);
        let flags = format!(
            "--config {} --echo-listen {echo} --echo-url http://{echo} --admin-listen {monitor} --replica {name} \
             --store postgres://tests@127.0.0.1:{a},127.0.0.1:{b}/postgres",
            config.display()
        );
        let flags = flags.split(' ').map(str::to_owned).collect();
        Self {
            program: Mutex::new(before.unwrap_or_else(binary)),
            data: home.join("data"),
            name,
            home,
            links,
            flags,
            monitor,
            run: watch::Sender::new(None),
            rest: Mutex::new(None),
            ends_as_leader: AtomicU64::new(0),
        }
    }

    fn program(&self) -> PathBuf {
        self.program.lock().expect("no panic").clone()
    }

    pub(super) fn upgrade(&self) {
        *self.program.lock().expect("no panic") = binary();
    }

    pub(super) async fn operate(&self, line: &str) -> (i32, String) {
        let operator = ProgramOperator { program: self.program(), data: self.data.clone() };
        let store = self.flags.last().expect("the store is the last flag");
        operator.run(line.split(' ').chain(["--store", store])).await.expect("the program runs")
    }

    pub(super) fn spawn(&self) -> Process {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        Start::new(self.program(), &self.home).flags(&flags).spawn().expect("it starts")
    }

    /// Announces the address of each run that leads, and withdraws it at the end.
    pub(super) async fn supervise(self: Arc<Self>, announce: impl Fn(Option<SocketAddr>, Option<SocketAddr>) + Send) {
        loop {
            let mut process = self.spawn();
            let id = process.id().expect("nobody has waited for its end");
            self.run.send_replace(Some(Run { id, leads_since: None }));
            // It greets when it leads. Without the store, a start fails.
            let greeting = process.greeting().await.ok();
            let parse = |greeting: Value| greeting["listens"].as_str().and_then(|text| text.parse().ok());
            let address = greeting.map(|greeting| parse(greeting).expect("an address"));
            if address.is_some() {
                self.run.send_replace(Some(Run { id, leads_since: Some(Instant::now()) }));
                announce(address, None);
            }
            let _ = process.end().await;
            self.run.send_replace(None);
            announce(None, address);
            let rest = self.rest.lock().expect("no panic").take();
            self.ends_as_leader.fetch_add(u64::from(address.is_some() && rest.is_none()), Relaxed);
            sleep(rest.unwrap_or(RESTART)).await;
        }
    }

    /// Leaves out leaders that someone has ended.
    pub(super) fn count_ends_as_leader(&self) -> u64 {
        self.ends_as_leader.load(Relaxed)
    }

    pub(super) async fn readiness(&self) -> Option<HttpAnswer> {
        timeout(PATIENCE, get(&format!("http://{}/readyz", self.monitor))).await.ok()?.ok()
    }

    /// Returns false if the run waits to lead.
    pub(super) async fn leads(&self) -> Option<bool> {
        let HttpAnswer { status, body, .. } = self.readiness().await?;
        (status == 200 || body.contains(WAITS)).then_some(status == 200)
    }

    /// Returns a time even if the run stands still and may have been replaced.
    pub(super) fn leads_since(&self) -> Option<Instant> {
        self.run.borrow().as_ref().and_then(|run| run.leads_since)
    }

    pub(super) async fn kill(&self, rest: Duration) {
        self.end("KILL", rest).await;
    }

    pub(super) async fn stop(&self, rest: Duration) {
        self.end("TERM", rest).await;
    }

    async fn end(&self, name: &str, rest: Duration) {
        let id = self.wait_until_it_lives().await;
        *self.rest.lock().expect("no panic") = Some(rest);
        drop(kit::signal(id, name));
        let mut run = self.run.subscribe();
        run.wait_for(|run| run.as_ref().is_none_or(|run| run.id != id)).await.expect("the sender is ours");
    }

    async fn wait_until_it_lives(&self) -> u32 {
        let mut run = self.run.subscribe();
        let run = run.wait_for(Option::is_some).await.expect("the sender is ours");
        run.as_ref().map_or(0, |run| run.id)
    }

    pub(super) async fn pause(&self, time: Duration) {
        let id = self.wait_until_it_lives().await;
        drop(kit::signal(id, "STOP"));
        sleep(time).await;
        // A kill may have ended it meanwhile.
        if self.run.borrow().as_ref().is_some_and(|run| run.id == id) {
            drop(kit::signal(id, "CONT"));
        }
    }

    pub(super) async fn cut(&self, outage: Outage, time: Duration) {
        let state = match outage {
            Outage::Cut => LinkState::Cut,
            Outage::Stall => LinkState::Stalled,
        };
        self.links.iter().for_each(|link| link.set(state));
        sleep(time).await;
        self.links.iter().for_each(|link| link.set(LinkState::Open));
    }
}
