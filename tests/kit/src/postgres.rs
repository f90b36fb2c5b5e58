//! Servers of PostgreSQL. Each listens on a socket in its folder, runs as another user if this
//! process is root's, and ends with it.

use crate::relay::{LinkRelay, LinkState};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// `nobody`, if this process is root's.
const NOBODY: u32 = 65_534;

const PATIENCE: Duration = Duration::from_secs(120);

const INIT: [&str; 5] = ["--username=tests", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"];

#[derive(Debug)]
pub struct TestPostgres {
    server: Server,
    _folder: TempDir,
}

impl TestPostgres {
    /// Starts a server that loses data if the machine stops. Returns `None` if PostgreSQL is not
    /// installed.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&["fsync=off"])
    }

    #[must_use]
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        let started = Self::launch(settings);
        if started.is_none() {
            leave_out();
        }
        started
    }

    pub fn share(server: &'static OnceLock<Option<Self>>) -> Option<&'static Self> {
        let server = server.get_or_init(|| Self::launch(&["fsync=off"])).as_ref();
        if server.is_none() {
            leave_out();
        }
        server
    }

    fn launch(settings: &[&str]) -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("pg-").tempdir().expect("a temporary folder");
        let mut server = Server::make(programs, folder.path().to_owned()).expect("a folder can be given away");
        finish(server.initdb()).expect("initdb runs");
        let settings: Vec<_> = ["max_connections=500"].iter().chain(settings).map(|&setting| setting.into()).collect();
        server.begin(&settings).expect("a shell can be started");
        Some(Self { server, _folder: folder })
    }

    /// Returns the URL under which a schema of its own comes first.
    pub async fn schema(&self) -> Result<String> {
        // Tests know a store by this name, whichever server it is on.
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let name = format!("s{}", SCHEMAS.fetch_add(1, Relaxed));
        self.server.until("SELECT 1", "1").await.context("the server does not start")?;
        self.server.query(&format!("CREATE SCHEMA {name}")).await?;
        Ok(format!("{}&options=-csearch_path%3D{name}", self.url()))
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        socket(&self.server.folder)
    }

    /// Keeps the transaction open until the result is dropped.
    pub async fn begin(&self) -> Client {
        self.begin_at(&self.url(), "SELECT pg_current_xact_id()").await
    }

    /// Keeps the transaction of `sql` open until the result is dropped.
    pub async fn begin_at(&self, url: &str, sql: &str) -> Client {
        let client = connect(url).await.expect("the server runs");
        client.batch_execute(&format!("BEGIN; {sql}")).await.expect("a statement");
        client
    }

    /// Returns 0 if the statement has no rows.
    pub async fn count(&self, url: &str, sql: &str) -> i64 {
        let first = query(url, sql).await.expect("a statement");
        if first.is_empty() { 0 } else { first.parse().expect("a number") }
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }
}

/// Two servers, one of which is the synchronous standby of the other.
#[derive(Debug)]
pub struct PostgresPair {
    servers: [Server; 2],
    replication: [LinkRelay; 2],
    primary: usize,
}

impl PostgresPair {
    /// Returns `None` if PostgreSQL is not installed.
    pub async fn start(folder: &Path) -> Result<Option<Self>> {
        let Some(programs) = programs() else { return Ok(None) };
        let [a, b] = ["a", "b"].map(|name| Server::make(programs.clone(), folder.join(name)));
        let servers = [a?, b?];
        let [a, b] = servers.each_ref().map(|server| LinkRelay::start(socket(&server.folder)));
        let mut pair = Self { servers, replication: [a.await?, b.await?], primary: 0 };
        let initdb = pair.servers[0].initdb();
        spawn_blocking(|| finish(initdb)).await??;
        pair.begin(0).await?;
        pair.remake_standby().await?;
        Ok(Some(pair))
    }

    #[must_use]
    pub fn sockets(&self) -> [PathBuf; 2] {
        self.servers.each_ref().map(|server| socket(&server.folder))
    }

    /// Goes past any relay.
    #[must_use]
    pub fn url(&self) -> String {
        let [a, b] = self.servers.each_ref().map(|server| encode(&server.folder));
        format!("postgres://tests@{a},{b}/postgres")
    }

    /// Returns the first column of the first row.
    pub async fn query(&self, sql: &str) -> Result<String> {
        Ok(self.servers[self.primary].query(sql).await?)
    }

    /// Makes no checkpoint, and does not wait for the standby.
    pub async fn restart_immediately(&mut self) -> Result<()> {
        self.servers[self.primary].end().await?;
        self.begin(self.primary).await
    }

    pub async fn fail_over(&mut self) -> Result<()> {
        self.servers[self.primary].end().await?;
        self.primary = 1 - self.primary;
        self.servers[self.primary].query("SELECT pg_promote()").await?;
        Ok(())
    }

    /// Waits until the new one follows.
    pub async fn remake_standby(&mut self) -> Result<()> {
        let standby = 1 - self.primary;
        self.servers[standby].end().await?;
        self.join_replication();
        let data = self.servers[standby].data();
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let host = format!("--host={}", self.servers[self.primary].folder.display());
        let mut copy = self.servers[standby].command("pg_basebackup");
        copy.args([&*host, "--username=tests", "--checkpoint=fast", "-D"]).arg(&data);
        spawn_blocking(|| finish(copy)).await??;
        File::create(data.join("standby.signal"))?;
        self.begin(standby).await?;
        self.standby_follows().await
    }

    pub async fn standby_follows(&self) -> Result<()> {
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        self.servers[self.primary].until(sql, "1").await.context("the standby does not follow")
    }

    pub fn cut_replication(&self) {
        self.replication[self.primary].set(LinkState::Cut);
    }

    /// Ends a cut.
    pub fn join_replication(&self) {
        self.replication[self.primary].set(LinkState::Open);
    }

    async fn begin(&mut self, server: usize) -> Result<()> {
        let upstream = self.replication[1 - server].port;
        let settings = [
            "max_connections=200".to_owned(),
            "wal_retrieve_retry_interval=500ms".to_owned(),
            "wal_keep_size=256MB".to_owned(),
            format!("primary_conninfo=host=127.0.0.1 port={upstream} user=tests"),
            format!("cluster_name={}", ["a", "b"][server]),
            "synchronous_standby_names=a,b".to_owned(),
        ];
        let server = &mut self.servers[server];
        server.begin(&settings)?;
        server.until("SELECT 1", "1").await.context("a server does not start")
    }
}

#[derive(Debug)]
struct Server {
    programs: PathBuf,
    folder: PathBuf,
    running: Option<Child>,
}

/// The server ends before its folder goes.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.running.take().map(|mut child| child.wait());
    }
}

impl Server {
    fn make(programs: PathBuf, folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(Self { programs, folder, running: None })
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn url(&self) -> String {
        format!("postgres://tests@/postgres?host={}", encode(&self.folder))
    }

    fn initdb(&self) -> Command {
        let mut command = self.command("initdb");
        command.args(INIT).arg("-D").arg(self.data());
        command
    }

    fn begin(&mut self, settings: &[String]) -> Result<()> {
        // The shell ends the server when its standard input ends, as it does with this process.
        let script = "\"$@\" & server=$!; read -r _; kill -QUIT $server; wait $server";
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = self.command("/bin/sh");
        command.args(["-c", script, "sh"]).arg(self.programs.join("postgres")).arg("-D").arg(self.data());
        command.arg("-c").arg(format!("unix_socket_directories={}", self.folder.display()));
        command.args(["-c", "listen_addresses=", "-c", "shared_buffers=64MB"]);
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        self.running = Some(command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).spawn()?);
        Ok(())
    }

    /// Makes no checkpoint.
    async fn end(&mut self) -> Result<()> {
        if let Some(mut child) = self.running.take() {
            // This closes its standard input.
            spawn_blocking(move || child.wait()).await??;
        }
        Ok(())
    }

    async fn query(&self, sql: &str) -> Result<String, Error> {
        query(&self.url(), sql).await
    }

    async fn until(&self, sql: &str, answer: &str) -> Result<()> {
        let found = timeout(PATIENCE, async {
            while self.query(sql).await.ok().as_deref() != Some(answer) {
                sleep(Duration::from_millis(20)).await;
            }
        });
        found.await.with_context(|| log(&self.folder))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir("/").stdin(Stdio::null());
        command
    }
}

/// Returns the first column of the first row, or nothing.
async fn query(url: &str, sql: &str) -> Result<String, Error> {
    let rows = connect(url).await?.simple_query(sql).await?;
    let first = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(first.unwrap_or_default().to_owned())
}

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn finish(mut command: Command) -> Result<()> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Prints a line that `cargo xtask test` reads.
fn leave_out() {
    println!("left out: PostgreSQL is not installed (package postgresql)");
}

fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let number = |folder: &PathBuf| folder.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    folders.filter(|folder| folder.join("postgres").exists()).max_by_key(number)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

fn socket(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.5432")
}

fn encode(folder: &Path) -> String {
    folder.to_string_lossy().replace('/', "%2F")
}

fn log(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(10).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
