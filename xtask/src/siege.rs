//! `cargo xtask siege`: what a client sees of the program while others stall on thousands of connections, and what that costs; Linux.
//!
//! Each siege has a program of its own, which is ended with it. Besiegers come from addresses of the loopback network, the client from
//! 127.0.0.1, each request on a connection of its own. Start at [`run`]; `besiegers` are those who stall.

mod besiegers;

use crate::test::step;
use anyhow::{Context, Result, anyhow, bail, ensure};
use besiegers::{Camp, Stall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Time from one request of the client to the next.
const PACE: Duration = Duration::from_millis(20);

/// Time in which a request must be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// A call of a tool.
const SMALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{"limit":1}}}"#;

/// What has an answer of many bytes that costs little.
const LARGE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// How much.
#[derive(clap::Args)]
pub(crate) struct Siege {
    /// Connections that stall at a time, from 25 addresses
    #[arg(long, default_value_t = 5_000)]
    connections: u32,
    /// Connections that read their answers slowly
    #[arg(long, default_value_t = 100)]
    readers: u32,
    /// Requests of the client in each siege
    #[arg(long, default_value_t = 400)]
    requests: u32,
    /// A program that is built already, in place of an optimised one that is built now
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Lays each siege, at each limit on open files, and prints what came of it.
pub(crate) fn run(root: &Path, siege: &Siege) -> Result<()> {
    let needed = u64::from(siege.connections) + 500;
    let files = raise();
    ensure!(files >= needed, "the limit on open files is {files}; {needed} are needed: raise it with `ulimit -Hn`");
    let program = match &siege.program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None => {
            step(root, &["build", "--release", "--locked", "--package", "cloudphone", "--bin", "cloudphone"])?;
            root.join("target/release/cloudphone")
        }
    };
    let home = root.join("target/siege");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let limits = [("1024", "ulimit -n 1024"), ("1024, raised", "ulimit -Sn 1024")];
    println!("\n{:13} {:16} {HEADS}", "open files", "siege");
    let mut broken = Vec::new();
    for (files, lower) in limits {
        for stall in [None, Some(Stall::Silent), Some(Stall::Heads), Some(Stall::Bodies), Some(Stall::Readers)] {
            let seen = runtime.block_on(besiege(&program, &home, lower, stall, siege))?;
            let name = stall.map_or("nobody", Stall::name);
            println!("{files:13} {name:16} {}", seen.row());
            broken.extend(seen.faults().map(|fault| format!("{name} at {files}: {fault}")));
        }
    }
    let _ = fs::remove_dir_all(&home);
    ensure!(broken.is_empty(), "a siege did harm:\n{}", broken.join("\n"));
    println!("\nthe client was answered each time");
    Ok(())
}

const HEADS: &str = "   p50 ms    p99 ms  failed  stalled  refused  peak MiB";

/// What came of a siege.
struct Seen {
    /// Milliseconds for each request of the client that was answered, in ascending order.
    took: Vec<f64>,
    /// What was wrong with each other request.
    failed: Vec<String>,
    /// Connections that stalled at the end.
    stalled: usize,
    /// Connections that the program closed for a limit.
    refused: u64,
    /// Most memory of the program at any time, in KiB.
    peak: u64,
    /// What besiegers were told that nobody should be.
    told: Vec<String>,
    panicked: bool,
}

impl Seen {
    fn row(&self) -> String {
        let Self { took, failed, stalled, refused, peak, told: _, panicked: _ } = self;
        let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
        let (half, most, peak) = (at(0.5), at(0.99), peak / 1024);
        format!("{half:9.1} {most:9.1} {:7} {stalled:8} {refused:8} {peak:9}", failed.len())
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let first = |what: &str, all: &[String]| all.first().map(|one| format!("{} {what}, as in: {one}", all.len()));
        let failed = first("requests of the client failed", &self.failed);
        let told = first("answers that nobody should get", &self.told);
        let panicked = self.panicked.then(|| "the program panicked".to_owned());
        [failed, told, panicked].into_iter().flatten()
    }
}

/// Lays one siege to a program of its own.
async fn besiege(program: &Path, home: &Path, lower: &str, stall: Option<Stall>, siege: &Siege) -> Result<Seen> {
    let _ = fs::remove_dir_all(home);
    fs::create_dir_all(home)?;
    let mut running = Running::start(program, home, lower)?;
    let key = running.key()?;
    let request = key.request(SMALL, "connection: close\r\n", 1);
    let camp = match stall {
        None => None,
        Some(stall) => {
            let many = if stall == Stall::Readers { siege.readers } else { siege.connections };
            let answer = key.request(LARGE, "", 50);
            Some(Camp::pitch(stall, many, running.address, answer).await)
        }
    };
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for _ in 0..siege.requests {
        let begin = Instant::now();
        match timeout(PATIENCE, exchange(running.address, &request)).await {
            Ok(Ok(())) => took.push(begin.elapsed().as_secs_f64() * 1e3),
            Ok(Err(error)) => failed.push(format!("{error:#}")),
            Err(_) => failed.push("no answer in 10 s".to_owned()),
        }
        sleep(PACE).await;
    }
    took.sort_by(f64::total_cmp);
    let refused = running.refused().await?;
    let (stalled, told) = camp.map_or((0, Vec::new()), Camp::strike);
    let (peak, log) = running.end()?;
    Ok(Seen { took, failed, stalled, refused, peak, told, panicked: log.contains("panicked") })
}

/// Asks, and wants an answer of status 200.
async fn exchange(address: SocketAddr, request: &str) -> Result<()> {
    let answer = read(address, request).await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{}", answer.lines().next().unwrap_or("closed without an answer"));
    Ok(())
}

async fn read(address: SocketAddr, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// A program that serves. Dropping it ends it.
struct Running {
    program: PathBuf,
    home: PathBuf,
    child: Child,
    /// Kept, so that what the program prints has a reader.
    _out: BufReader<ChildStdout>,
    address: SocketAddr,
    monitor: SocketAddr,
}

/// Credentials of an application that may ask a lot.
struct Key {
    id: String,
    secret: String,
}

impl Key {
    /// A request with so many of these messages.
    fn request(&self, message: &str, headers: &str, times: usize) -> String {
        let body = if times == 1 { message.to_owned() } else { format!("[{}]", vec![message; times].join(",")) };
        let (Self { id, secret }, length) = (self, body.len());
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-api-key: {id}\r\n\
             x-api-secret: {secret}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
    }
}

impl Running {
    fn start(program: &Path, home: &Path, lower: &str) -> Result<Self> {
        let script = format!(r#"{lower} && exec "$0" "$@""#);
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(program).args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(["--sim-devices", "1000", "--data"]).arg(home.join("data"));
        let mut child = command.stdout(Stdio::piped()).stderr(fs::File::create(home.join("log"))?).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("its output")?);
        let (mut address, mut monitor, mut line) = (None, None, String::new());
        while !line.contains("Ctrl-C") {
            line.clear();
            if out.read_line(&mut line)? == 0 {
                let _ = child.wait();
                bail!("the program does not start: {}", fs::read_to_string(home.join("log"))?);
            }
            let at = |mark: &str| {
                line.trim().rsplit_once(mark).and_then(|(_, rest)| rest.trim_end_matches("/mcp").parse().ok())
            };
            monitor = monitor.or(at("/metrics are at http://"));
            address = address.or(at(" at http://").filter(|_| line.contains(" serves ")));
        }
        let (Some(address), Some(monitor)) = (address, monitor) else {
            bail!("the program does not say where it listens")
        };
        Ok(Self { program: program.to_owned(), home: home.to_owned(), child, _out: out, address, monitor })
    }

    /// Makes a key, with an application of its own.
    fn key(&self) -> Result<Key> {
        self.operate(&["app", "create", "siege", "--permission", "device", "--requests-per-minute", "1000000"])?;
        self.operate(&["device", "assign", "siege", "--all"])?;
        let made = self.operate(&["key", "create", "siege"])?;
        let text = |name: &str| made[name].as_str().map(str::to_owned).with_context(|| format!("{name} in {made}"));
        Ok(Key { id: text("key_id")?, secret: text("secret")? })
    }

    fn operate(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.program);
        let output = command.args(arguments).arg("--json").arg("--data").arg(self.home.join("data")).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Connections that were closed for a limit.
    async fn refused(&self) -> Result<u64> {
        let ask = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let page = timeout(PATIENCE, read(self.monitor, ask)).await.context("no metrics in 10 s")??;
        let value = page
            .lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| line.split_once("_connections_refused_total ").map(|(_, value)| value));
        value
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| anyhow!("no count of refused connections among the metrics"))
    }

    /// Ends the program: its peak of memory in KiB, and its log.
    fn end(&mut self) -> Result<(u64, String)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        self.child.kill()?;
        self.child.wait()?;
        Ok((peak.context("VmHWM")?, fs::read_to_string(self.home.join("log"))?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raises the limit on open files of this program as far as it may, and returns it.
fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
