//! Two servers of PostgreSQL in one folder, one of which is the standby of the other. They listen
//! on sockets there, run as another user if this process is root's, and end with it.

use crate::relay::{LinkRelay, LinkState};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// `nobody`, if this process is root's.
const NOBODY: u32 = 65_534;

const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct PostgresPair {
    programs: PathBuf,
    folders: [PathBuf; 2],
    replication: [LinkRelay; 2],
    running: [Option<Child>; 2],
    primary: usize,
    /// The primary acknowledges a commit only after the standby has it.
    is_synchronous: bool,
}

impl PostgresPair {
    /// Returns `None` if PostgreSQL is not installed.
    pub async fn start(folder: &Path, is_synchronous: bool) -> Result<Option<Self>> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("postgres").exists());
        let Some(programs) = programs.max() else { return Ok(None) };
        let folders = ["a", "b"].map(|name| folder.join(name));
        for folder in &folders {
            fs::create_dir(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
            if is_root() {
                chown(folder, Some(NOBODY), Some(NOBODY))?;
            }
        }
        let [a, b] = folders.each_ref().map(|folder| LinkRelay::start(socket(folder)));
        let replication = [a.await?, b.await?];
        let mut pair = Self { programs, folders, replication, running: [None, None], primary: 0, is_synchronous };
        pair.run(0, "initdb", &["--username=tests", "--auth=trust", "--encoding=UTF8", "--locale=C"]).await?;
        pair.begin(0).await?;
        pair.remake_standby().await?;
        Ok(Some(pair))
    }

    #[must_use]
    pub fn sockets(&self) -> [PathBuf; 2] {
        self.folders.each_ref().map(|folder| socket(folder))
    }

    /// Goes past any relay.
    #[must_use]
    pub fn url(&self) -> String {
        let [a, b] = self.folders.each_ref().map(|folder| folder.to_string_lossy().replace('/', "%2F"));
        format!("postgres://tests@{a},{b}/postgres")
    }

    pub async fn query(&self, sql: &str) -> Result<String> {
        self.query_at(self.primary, sql).await
    }

    /// Makes no checkpoint, and does not wait for the standby.
    pub async fn restart_immediately(&mut self) -> Result<()> {
        self.end(self.primary).await?;
        self.begin(self.primary).await
    }

    pub async fn fail_over(&mut self) -> Result<()> {
        self.end_primary().await?;
        self.promote().await
    }

    pub async fn end_primary(&mut self) -> Result<()> {
        self.end(self.primary).await
    }

    pub async fn promote(&mut self) -> Result<()> {
        let standby = 1 - self.primary;
        self.query_at(standby, "SELECT pg_promote()").await?;
        self.primary = standby;
        Ok(())
    }

    /// Waits until the new one follows.
    pub async fn remake_standby(&mut self) -> Result<()> {
        let standby = 1 - self.primary;
        self.end(standby).await?;
        self.join_replication();
        let data = self.folders[standby].join("data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let host = format!("--host={}", self.folders[self.primary].display());
        self.run(standby, "pg_basebackup", &[&host, "--username=tests", "--checkpoint=fast"]).await?;
        File::create(data.join("standby.signal"))?;
        self.begin(standby).await?;
        self.standby_follows().await
    }

    pub async fn standby_follows(&self) -> Result<()> {
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        self.until(self.primary, sql, "1").await.context("the standby does not follow")
    }

    pub fn cut_replication(&self) {
        self.replication[self.primary].set(LinkState::Cut);
    }

    /// Ends a cut.
    pub fn join_replication(&self) {
        self.replication[self.primary].set(LinkState::Open);
    }

    async fn query_at(&self, server: usize, sql: &str) -> Result<String> {
        let folder = &self.folders[server];
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "tests", "-d", "postgres", "-h"]).arg(folder);
        let output = command.args(["-c", sql]).kill_on_drop(true).output().await?;
        ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    async fn until(&self, server: usize, sql: &str, answer: &str) -> Result<()> {
        let found = timeout(PATIENCE, async {
            while self.query_at(server, sql).await.ok().as_deref() != Some(answer) {
                sleep(Duration::from_millis(100)).await;
            }
        });
        found.await.with_context(|| log(&self.folders[server]))
    }

    async fn run(&self, server: usize, program: &str, flags: &[&str]) -> Result<()> {
        let mut command = self.command(&self.programs.join(program));
        let output = command.args(flags).arg("-D").arg(self.folders[server].join("data")).output().await?;
        ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    async fn begin(&mut self, server: usize) -> Result<()> {
        let folder = &self.folders[server];
        // The shell ends the server when its standard input ends, as it does with this process.
        let script = "\"$@\" & server=$!; read -r _; kill -QUIT $server; wait $server";
        let upstream = self.replication[1 - server].port;
        let followed = format!("primary_conninfo=host=127.0.0.1 port={upstream} user=tests");
        let names = if self.is_synchronous { "a,b" } else { "" };
        let name = ["a", "b"][server];
        let log = File::options().create(true).append(true).open(folder.join("log"))?;
        let mut command = self.command(Path::new("/bin/sh"));
        command.args(["-c", script, "sh"]).arg(self.programs.join("postgres")).arg("-D").arg(folder.join("data"));
        command.arg("-c").arg(format!("unix_socket_directories={}", folder.display()));
        command.args(["-c", "listen_addresses=", "-c", "shared_buffers=64MB", "-c", "max_connections=200"]);
        command.args(["-c", "wal_retrieve_retry_interval=500ms"]);
        command.args(["-c", "wal_keep_size=256MB", "-c", &followed, "-c", &format!("cluster_name={name}")]);
        command.arg("-c").arg(format!("synchronous_standby_names={names}"));
        let child = command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).spawn()?;
        self.running[server] = Some(child);
        self.until(server, "SELECT 1", "1").await.context("a server does not start")
    }

    /// Makes no checkpoint.
    async fn end(&mut self, server: usize) -> Result<()> {
        if let Some(mut child) = self.running[server].take() {
            drop(child.stdin.take());
            child.wait().await?;
        }
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir("/").stdin(Stdio::null());
        command
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

fn socket(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.5432")
}

fn log(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(10).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
