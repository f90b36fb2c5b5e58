//! A server of PostgreSQL for tests: in a temporary folder, on a Unix socket. It ends with the
//! process that started it.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::{Client, Error, NoTls};
use toolwarrant_postgres::Address;

#[derive(Debug)]
pub struct TestPostgres {
    folder: TempDir,
    /// Stops the server when its standard input ends, as it does with this process.
    _child: Child,
}

/// `nobody`, if this process is root's.
const NOBODY: u32 = 65_534;

const START_PATIENCE: Duration = Duration::from_secs(60);

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
        let is_root = fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
        let data = folder.path().join("data");
        if is_root {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root may give a folder away");
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        let run = |program: &Path| {
            let mut command = Command::new(program);
            if is_root {
                command.uid(NOBODY).gid(NOBODY);
            }
            command.current_dir("/").stdin(Stdio::null());
            command
        };
        let made = run(&programs.join("initdb"))
            .args(["--username=tests", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .expect("initdb can be started");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let log = File::create(folder.path().join("log")).expect("a file can be made");
        let script = "\"$@\" & server=$!; read -r _; kill -QUIT $server; wait $server";
        let child = run(Path::new("/bin/sh"))
            .args(["-c", script, "sh"])
            .arg(programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "max_connections=500", "-c", "shared_buffers=64MB"])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .arg("-c")
            .arg(format!("unix_socket_directories={}", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("a shell can be started");
        let begun = Instant::now();
        while !folder.path().join(".s.PGSQL.5432").exists() {
            assert!(begun.elapsed() < START_PATIENCE, "the server did not start");
            thread::sleep(Duration::from_millis(20));
        }
        Some(Self { folder, _child: child })
    }

    /// Returns the address under which the schema comes first.
    pub async fn schema(&self) -> Result<Address, Error> {
        // Tests know a store by this name, whichever server it is on.
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let name = format!("s{}", SCHEMAS.fetch_add(1, Relaxed));
        let client = loop {
            // A socket can be there before the server is ready.
            match connect(&self.url()).await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await?;
        Ok(self.address(format!("{}&options=-csearch_path%3D{name}", self.url())))
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Keeps the transaction open until the result is dropped.
    pub async fn begin(&self) -> impl Sized + use<> {
        self.begin_at(&self.address(self.url()), "SELECT pg_current_xact_id()").await
    }

    /// Keeps the transaction of `sql` open until the result is dropped.
    pub async fn begin_at(&self, address: &Address, sql: &str) -> impl Sized + use<> {
        let client = connect(&address.url).await.expect("the server runs");
        client.batch_execute(&format!("BEGIN; {sql}")).await.expect("a statement");
        client
    }

    pub async fn count(&self, address: &Address, sql: &str) -> i64 {
        let client = connect(&address.url).await.expect("the server runs");
        client.query_opt(sql, &[]).await.expect("a statement").map_or(0, |row| row.get(0))
    }

    fn address(&self, url: String) -> Address {
        Address { url, password: None }
    }

    #[must_use]
    pub fn url(&self) -> String {
        let folder = self.folder.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://tests@/postgres?host={folder}")
    }
}

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
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
