//! A replica with its supervisor, which starts it again whenever it ends, and the faults that can
//! happen to it. Its run waits until it leads.

use crate::harness::program::binary;
use driver::{HttpAnswer, LinkRelay, LinkState, PostgresPair, Process, ProgramOperator, Start, get};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The pause of the supervisor after an end that nobody asked for.
const RESTART: Duration = Duration::from_millis(100);

/// Time for an answer of a monitor.
const PATIENCE: Duration = Duration::from_secs(2);

/// The words of `/readyz` while a run waits.
const WAITS: &str = "leads, and this one waits";

/// A way in which a link fails.
#[derive(Clone, Copy)]
pub(super) enum Outage {
    Cut,
    Stall,
}

/// A run, which waits or leads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// The process id.
    id: u32,
    leads_since: Option<Instant>,
}

/// A replica.
pub(super) struct Replica {
    pub(super) name: String,
    home: PathBuf,
    /// The program of the next run.
    program: Mutex<PathBuf>,
    pub(super) data: PathBuf,
    /// The links to both servers.
    links: [LinkRelay; 2],
    flags: Vec<String>,
    /// The address of its monitor.
    monitor: SocketAddr,
    /// `None` while none lives.
    run: watch::Sender<Option<Run>>,
    /// The pause before the next start, if someone has ended the run; `None` if it ends by itself.
    rest: Mutex<Option<Duration>>,
    ends_as_leader: AtomicU64,
}

impl Replica {
    /// Makes a replica, and the links to both servers. `before` is the program of its first run, if
    /// that is another one.
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

    /// Lets later runs have the program of this checkout.
    pub(super) fn upgrade(&self) {
        *self.program.lock().expect("no panic") = binary();
    }

    /// Runs a command of the program in its folder, whether it runs or not.
    pub(super) async fn operate(&self, line: &str) -> (i32, String) {
        let operator = ProgramOperator { program: self.program(), data: self.data.clone() };
        let store = self.flags.last().expect("the store is the last flag");
        operator.run(line.split(' ').chain(["--store", store])).await.expect("the program runs")
    }

    /// Starts a run.
    pub(super) fn spawn(&self) -> Process {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        Start::new(self.program(), &self.home).flags(&flags).spawn().expect("it starts")
    }

    /// Starts run after run. Announces the address of each that leads, and withdraws it at the end.
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

    /// Returns the number of leaders that nobody has ended.
    pub(super) fn count_ends_as_leader(&self) -> u64 {
        self.ends_as_leader.load(Relaxed)
    }

    /// Returns the log of all runs.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Returns the answer of `/readyz`; `None` if nobody answers.
    pub(super) async fn readiness(&self) -> Option<HttpAnswer> {
        timeout(PATIENCE, get(&format!("http://{}/readyz", self.monitor))).await.ok()?.ok()
    }

    /// Returns true if its run leads and is ready, and false if it waits for that.
    pub(super) async fn leads(&self) -> Option<bool> {
        let HttpAnswer { status, body, .. } = self.readiness().await?;
        (status == 200 || body.contains(WAITS)).then_some(status == 200)
    }

    /// Returns the time since which its run leads. One that stands still may have been replaced.
    pub(super) fn leads_since(&self) -> Option<Instant> {
        self.run.borrow().as_ref().and_then(|run| run.leads_since)
    }

    /// Kills the run. Its supervisor waits for that time before it starts the next one.
    pub(super) async fn kill(&self, rest: Duration) {
        self.end("KILL", rest).await;
    }

    /// Stops the run as planned, and waits for its end.
    pub(super) async fn stop(&self, rest: Duration) {
        self.end("TERM", rest).await;
    }

    async fn end(&self, name: &str, rest: Duration) {
        let id = self.wait_until_it_lives().await;
        *self.rest.lock().expect("no panic") = Some(rest);
        drop(driver::signal(id, name));
        let mut run = self.run.subscribe();
        run.wait_for(|run| run.as_ref().is_none_or(|run| run.id != id)).await.expect("the sender is ours");
    }

    /// Returns the process id of the run, once there is one.
    async fn wait_until_it_lives(&self) -> u32 {
        let mut run = self.run.subscribe();
        let run = run.wait_for(Option::is_some).await.expect("the sender is ours");
        run.as_ref().map_or(0, |run| run.id)
    }

    /// Lets the process stand still.
    pub(super) async fn pause(&self, time: Duration) {
        let id = self.wait_until_it_lives().await;
        drop(driver::signal(id, "STOP"));
        sleep(time).await;
        // A kill may have ended it meanwhile.
        if self.run.borrow().as_ref().is_some_and(|run| run.id == id) {
            drop(driver::signal(id, "CONT"));
        }
    }

    /// Lets the links to both servers fail.
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
