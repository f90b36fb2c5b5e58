//! The server of PostgreSQL: its figures, and its stalls.

use anyhow::{Context, Result, ensure};
use kit::TestPostgres;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const TICK: Duration = Duration::from_millis(10);

pub(super) struct Postgres {
    server: TestPostgres,
    url: String,
    runtime: Runtime,
}

struct ServerProcess {
    id: u32,
    /// Includes its children that have ended.
    used: Duration,
}

impl Postgres {
    pub(super) fn start() -> Result<Option<Self>> {
        let Some(server) = TestPostgres::start_with(&[]) else { return Ok(None) };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let url = runtime.block_on(server.schema())?;
        Ok(Some(Self { server, url, runtime }))
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    pub(super) fn count(&self, sql: &str) -> i64 {
        self.runtime.block_on(self.server.count(&self.url, sql))
    }

    pub(super) fn cpu(&self) -> Result<Duration> {
        Ok(self.processes()?.iter().map(|process| process.used).sum())
    }

    /// Ends when the processes go on.
    pub(super) fn stall(&self, seconds: u64) -> Result<Child> {
        let ids: Vec<_> = self.processes()?.iter().map(|process| process.id.to_string()).collect();
        let ids = ids.join(" ");
        let script = format!("kill -STOP {ids}; sleep {seconds}; kill -CONT {ids}");
        Ok(Command::new("sh").args(["-c", &script]).spawn()?)
    }

    fn processes(&self) -> Result<Vec<ServerProcess>> {
        let socket = self.server.socket();
        let file: PathBuf = socket.with_file_name("data").join("postmaster.pid");
        let first: u32 = fs::read_to_string(file)?.lines().next().context("an id")?.parse()?;
        let mut processes = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // The process may have ended meanwhile.
            let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((_, figures)) = text.rsplit_once(") ") else { continue };
            let figures: Vec<&str> = figures.split(' ').collect();
            let figure = |place: usize| figures.get(place).and_then(|figure| figure.parse::<u32>().ok()).unwrap_or(0);
            if id == first || figure(1) == first {
                processes.push(ServerProcess { id, used: TICK * (11..=14).map(figure).sum::<u32>() });
            }
        }
        processes.sort_by_key(|process| process.id != first);
        ensure!(!processes.is_empty(), "PostgreSQL has ended");
        Ok(processes)
    }
}
