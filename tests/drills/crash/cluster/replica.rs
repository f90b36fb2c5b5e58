//! A replica with its supervisor, which starts it again whenever it ends, and the faults that can
//! happen to it.

use crate::harness::program::binary;
use driver::{LinkRelay, LinkState, PostgresPair, Process, ProgramOperator, Start};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The pause of the supervisor after an end that nobody asked for.
const RESTART: Duration = Duration::from_millis(100);

/// A way in which a link fails.
#[derive(Clone, Copy)]
pub(in crate::drills::crash) enum Outage {
    Cut,
    Stall,
}

/// A run that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::drills::crash) struct Run {
    /// The process id.
    id: u32,
    pub(in crate::drills::crash) address: SocketAddr,
    /// The base URL of its monitor.
    pub(in crate::drills::crash) monitor: String,
}

/// A replica.
pub(in crate::drills::crash) struct Replica {
    pub(in crate::drills::crash) name: String,
    home: PathBuf,
    /// The program of the next run.
    program: Mutex<PathBuf>,
    pub(in crate::drills::crash) data: PathBuf,
    /// The links to both servers.
    links: [LinkRelay; 2],
    flags: Vec<String>,
    /// `None` while no run serves.
    serves: watch::Sender<Option<Run>>,
    /// The pause before the next start, if someone has ended the run; `None` if it ends by itself.
    rest: Mutex<Option<Duration>>,
    ends_by_itself: AtomicU64,
}

impl Replica {
    /// Makes a replica, and the links to both servers. `before` is the program of its first run, if
    /// that is another one.
    pub(in crate::drills::crash) async fn make(
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
        // No other test binds this address, so the port stays free while the replica is down.
        let echo = TcpListener::bind(format!("127.77.0.{number}:0")).and_then(|free| free.local_addr());
        let echo = echo.expect("a free port");
        let [a, b] = links.each_ref().map(|link| link.port);
        let flags = format!(
            "--config {} --echo-listen {echo} --echo-url http://{echo} --admin-listen 127.0.0.1:0 --drain-seconds 1 \
             --replica {name} --store postgres://tests@127.0.0.1:{a},127.0.0.1:{b}/postgres",
            config.display()
        );
        let flags = flags.split(' ').map(str::to_owned).collect();
        let (serves, rest) = (watch::Sender::new(None), Mutex::new(None));
        let program = Mutex::new(before.unwrap_or_else(binary));
        Self {
            program,
            data: home.join("data"),
            name,
            home,
            links,
            flags,
            serves,
            rest,
            ends_by_itself: AtomicU64::new(0),
        }
    }

    fn program(&self) -> PathBuf {
        self.program.lock().expect("no panic").clone()
    }

    /// Lets later runs have the program of this checkout.
    pub(super) fn upgrade(&self) {
        *self.program.lock().expect("no panic") = binary();
    }

    /// Runs a command of the program in its folder.
    pub(super) async fn operate(&self, line: &str) -> (i32, String) {
        let operator = ProgramOperator { program: self.program(), data: self.data.clone() };
        operator.run(line.split(' ')).await.expect("the program runs")
    }

    /// Starts a run.
    pub(in crate::drills::crash) fn spawn(&self) -> Process {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        Start::new(self.program(), &self.home).flags(&flags).spawn().expect("it starts")
    }

    /// Starts run after run. Announces the address of each, and withdraws it at the end.
    pub(in crate::drills::crash) async fn supervise(
        self: Arc<Self>,
        announce: impl Fn(Option<SocketAddr>, Option<SocketAddr>) + Send,
    ) {
        loop {
            let mut run = self.spawn();
            // Without the store, a start fails.
            if let Ok(greeting) = run.greeting().await {
                let text = |name: &str| greeting[name].as_str().expect("a greeting");
                let address = text("listens").parse().expect("an address");
                let id = run.id().expect("nobody has waited for its end");
                announce(Some(address), None);
                self.serves.send_replace(Some(Run { id, address, monitor: text("monitor").to_owned() }));
                let _ = run.end().await;
                self.serves.send_replace(None);
                announce(None, Some(address));
                let rest = self.rest.lock().expect("no panic").take();
                self.ends_by_itself.fetch_add(u64::from(rest.is_none()), Relaxed);
                sleep(rest.unwrap_or(RESTART)).await;
            } else {
                sleep(RESTART).await;
            }
        }
    }

    /// Returns the number of runs that nobody has ended.
    pub(in crate::drills::crash) fn count_ends_by_itself(&self) -> u64 {
        self.ends_by_itself.load(Relaxed)
    }

    /// Returns the log of all runs.
    pub(in crate::drills::crash) fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Returns the run that serves now.
    pub(in crate::drills::crash) fn run(&self) -> Option<Run> {
        self.serves.borrow().clone()
    }

    /// Returns the run, once it serves.
    pub(in crate::drills::crash) async fn wait_until_it_serves(&self) -> Run {
        let mut serves = self.serves.subscribe();
        let serves = serves.wait_for(Option::is_some).await.expect("the sender is ours");
        serves.clone().expect("it does")
    }

    /// Kills the run. Its supervisor waits for that time before it starts the next one.
    pub(in crate::drills::crash) async fn kill(&self, rest: Duration) {
        self.end("KILL", rest).await;
    }

    /// Stops the run as planned, and waits for its end.
    pub(in crate::drills::crash) async fn stop(&self, rest: Duration) {
        self.end("TERM", rest).await;
    }

    async fn end(&self, name: &str, rest: Duration) {
        let run = self.wait_until_it_serves().await;
        *self.rest.lock().expect("no panic") = Some(rest);
        drop(driver::signal(run.id, name));
        let mut serves = self.serves.subscribe();
        serves.wait_for(|serves| serves.as_ref() != Some(&run)).await.expect("the sender is ours");
    }

    /// Runs a command in the folder of a replica that does not run.
    pub(in crate::drills::crash) async fn operate_alone(&self, line: &str) -> (i32, String) {
        let store = self.flags.last().expect("the store is the last flag");
        self.operate(&format!("{line} --store {store}")).await
    }

    /// Lets the process stand still.
    pub(in crate::drills::crash) async fn pause(&self, time: Duration) {
        let run = self.wait_until_it_serves().await;
        drop(driver::signal(run.id, "STOP"));
        sleep(time).await;
        // A kill may have ended it meanwhile.
        if self.run().as_ref() == Some(&run) {
            drop(driver::signal(run.id, "CONT"));
        }
    }

    /// Lets the links to both servers fail.
    pub(in crate::drills::crash) async fn cut(&self, outage: Outage, time: Duration) {
        let state = match outage {
            Outage::Cut => LinkState::Cut,
            Outage::Stall => LinkState::Stalled,
        };
        self.links.iter().for_each(|link| link.set(state));
        sleep(time).await;
        self.links.iter().for_each(|link| link.set(LinkState::Open));
    }
}
