//! A service manager, such as systemd, that follows the program, and its journal.

use super::full_disk::limit;
use crate::harness::program::{Program, binary};
use kit::Start;
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

struct Manager(UnixDatagram);

impl Manager {
    /// Returns the lines until one of them is `last`.
    async fn read_until(&self, last: &str) -> Vec<String> {
        let (mut lines, mut buffer) = (Vec::new(), [0; 4096]);
        let reading = async {
            while !lines.iter().any(|line| line == last) {
                let length = self.0.recv(&mut buffer).await.expect("a message");
                lines.extend(String::from_utf8_lossy(&buffer[..length]).lines().map(str::to_owned));
            }
        };
        // Messages of the watchdog come all the time, and are no progress.
        let is_read = timeout(PATIENCE, reading).await.is_ok();
        assert!(is_read, "no {last} after {lines:?}");
        lines
    }

    fn drain(&self) {
        while self.0.try_recv(&mut [0; 4096]).is_ok() {}
    }
}

const WATCHDOG: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_manager_learns_how_the_program_stands_also_with_a_full_disk() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let socket = home.path().join("notify");
    let manager = Manager(UnixDatagram::bind(&socket).expect("a socket"));
    let journal = File::create(home.path().join("log")).and_then(|file| file.metadata()).expect("a file");
    let variables = format!(
        "trap '' XFSZ; export NOTIFY_SOCKET='{}' WATCHDOG_USEC={} JOURNAL_STREAM={}:{}",
        socket.display(),
        WATCHDOG.as_micros(),
        journal.dev(),
        journal.ino()
    );
    let way = || Start::new(binary(), home.path()).flags(&["--admin-listen", "127.0.0.1:0"]).after(&variables);
    let mut program = Program::start_as(Arc::clone(&home), way()).await;

    let start = manager.read_until("READY=1").await;
    let opening = ["STATUS=opens the data", "EXTEND_TIMEOUT_USEC=60000000"];
    assert!(opening.iter().all(|line| start.iter().any(|read| read == line)), "{start:?}");
    let status = format!("STATUS=serves {}", program.url);
    assert!(start.contains(&status), "{start:?}");
    manager.read_until("WATCHDOG=1").await;

    program.signal("HUP").await.expect("it runs");
    let reload = manager.read_until("RELOADING=1").await;
    assert!(reload.iter().any(|line| line.starts_with("MONOTONIC_USEC=")), "{reload:?}");
    manager.read_until("READY=1").await;

    limit(&program, Some(0));
    program.until_ready(503).await;
    manager.drain();
    for _ in 0..3 {
        manager.read_until("WATCHDOG=1").await;
    }
    limit(&program, None);

    program.ask_to_stop().await;
    manager.read_until("STOPPING=1").await;
    program.wait_for_end().await;
    let log = program.log();
    assert!(log.lines().all(|line| line.starts_with('<') && line.as_bytes().get(2) == Some(&b'>')), "{log}");
    assert!(log.starts_with("<6>the server starts version="), "{log}");
    assert!(log.contains("\n<6>the server stops why=\"SIGTERM\" tasks_in_flight=0 uptime_seconds="), "{log}");
}

#[tokio::test]
async fn a_manager_that_reads_nothing_holds_up_no_start_no_call_no_reload_and_no_stop() {
    for fills_at_the_start in [true, false] {
        let home = Arc::new(TempDir::new().expect("a temporary folder"));
        let socket = home.path().join("notify");
        let manager = UnixDatagram::bind(&socket).expect("a socket");
        let fill = || {
            let sender = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
            sender.set_nonblocking(true).expect("a socket that does not wait");
            while sender.send_to(b"STATUS=full", &socket).is_ok() {}
        };
        if fills_at_the_start {
            fill();
        }
        // Each second has 200 messages of the watchdog.
        let variables = format!("export NOTIFY_SOCKET='{}' WATCHDOG_USEC=10000", socket.display());
        let start = Start::new(binary(), home.path()).flags(&["--demo"]).after(&variables);
        let mut program = timeout(PATIENCE, Program::start_as(Arc::clone(&home), start)).await.expect("a start");
        fill();
        for _ in 0..20 {
            program.signal("HUP").await.expect("it runs");
            let page = timeout(PATIENCE, program.call("list_devices", json!({}))).await.expect("in time");
            page.expect("a page");
        }
        program.ask_to_stop().await;
        timeout(PATIENCE, program.wait_for_end()).await.expect("an end");
        drop(manager);
    }
}
