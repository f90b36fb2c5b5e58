//! The server of PostgreSQL and its figures.

use anyhow::{Context, Result, ensure};
use kit::TestPostgres;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const TICK: Duration = Duration::from_millis(10);

pub(crate) struct Postgres {
    server: TestPostgres,
    url: String,
    runtime: Runtime,
}

impl Postgres {
    pub(crate) fn start() -> Result<Option<Self>> {
        let Some(server) = TestPostgres::start_with(&[]) else { return Ok(None) };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let url = runtime.block_on(server.schema())?;
        Ok(Some(Self { server, url, runtime }))
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.runtime.block_on(self.server.count(&self.url, sql))
    }

    /// Includes the children of its processes that have ended.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let socket = self.server.socket();
        let file: PathBuf = socket.with_file_name("data").join("postmaster.pid");
        let first: u32 = fs::read_to_string(file)?.lines().next().context("an id")?.parse()?;
        let mut used = Duration::ZERO;
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // The process may have ended meanwhile.
            let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((_, figures)) = text.rsplit_once(") ") else { continue };
            let figures: Vec<&str> = figures.split(' ').collect();
            let figure = |place: usize| figures.get(place).and_then(|figure| figure.parse::<u32>().ok()).unwrap_or(0);
            if id == first || figure(1) == first {
                used += TICK * (11..=14).map(figure).sum::<u32>();
            }
        }
        ensure!(!used.is_zero(), "PostgreSQL has ended");
        Ok(used)
    }
}
