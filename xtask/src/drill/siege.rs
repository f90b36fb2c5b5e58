//! `cargo xtask drill siege`: the answers that a client gets while others stall on thousands of
//! connections, and the cost for the program; Linux.
//!
//! Each siege has its own program, which ends with the siege. Besiegers come from addresses of the
//! loopback network, the client from 127.0.0.1, with a new connection for each request. Start at
//! [`run`]; `besiegers` are the clients that stall.

mod besiegers;

use crate::serving::{self, PATIENCE, WATCHED, exchange, quantile};
use anyhow::{Context, Result, ensure};
use besiegers::{Camp, Stall};
use driver::Start;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Time from one request of the client to the next.
const PACE: Duration = Duration::from_millis(20);

/// A call of a tool.
const SMALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_devices","arguments":{"limit":1}}}"#;

/// A request with a large answer that costs little.
const LARGE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Siege {
    /// Connections that stall at the same time, from 25 addresses
    #[arg(long, default_value_t = 5_000)]
    connections: u32,
    /// Connections that read their answers slowly
    #[arg(long, default_value_t = 100)]
    readers: u32,
    /// Requests of the client in each siege
    #[arg(long, default_value_t = 400)]
    requests: u32,
    /// Use this program in place of a new optimised build
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs each siege, at each limit on open files, and prints the results.
pub(crate) fn run(root: &Path, siege: &Siege) -> Result<()> {
    let needed = u64::from(siege.connections) + 500;
    let files = raise();
    ensure!(files >= needed, "the limit on open files is {files}; {needed} are needed: raise it with `ulimit -Hn`");
    let program = serving::program(root, siege.program.as_deref(), "cloudphone")?;
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
    ensure!(broken.is_empty(), "the program failed in a siege:\n{}", broken.join("\n"));
    println!("\nevery request of the client was answered");
    Ok(())
}

const HEADS: &str = "   p50 ms    p99 ms  failed  stalled  refused  peak MiB";

/// The results of a siege.
struct SiegeOutcome {
    /// Milliseconds for each request of the client that was answered, in ascending order.
    took: Vec<f64>,
    /// The failure of each other request.
    failed: Vec<String>,
    /// Connections that were stalled at the end.
    stalled: usize,
    /// Connections that the program closed because of a limit.
    refused: u64,
    /// Highest memory use of the program, in KiB.
    peak: u64,
    /// Answers to besiegers that should not occur.
    told: Vec<String>,
    panicked: bool,
}

impl SiegeOutcome {
    fn row(&self) -> String {
        let Self { took, failed, stalled, refused, peak, told: _, panicked: _ } = self;
        let (half, most, peak) = (quantile(took, 0.5), quantile(took, 0.99), peak / 1024);
        format!("{half:9.1} {most:9.1} {:7} {stalled:8} {refused:8} {peak:9}", failed.len())
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let first = |what: &str, all: &[String]| all.first().map(|one| format!("{} {what}, as in: {one}", all.len()));
        let failed = first("requests of the client failed", &self.failed);
        let told = first("answers that should not occur", &self.told);
        let panicked = self.panicked.then(|| "the program panicked".to_owned());
        [failed, told, panicked].into_iter().flatten()
    }
}

/// Runs one siege against its own program.
async fn besiege(
    program: &Path,
    home: &Path,
    lower: &str,
    stall: Option<Stall>,
    siege: &Siege,
) -> Result<SiegeOutcome> {
    let _ = fs::remove_dir_all(home);
    fs::create_dir_all(home)?;
    let start = Start::new(program, home).after(lower).flags(&WATCHED).flags(&["--sim-devices", "1000"]);
    let running = start.ready().await?;
    let key = serving::key(&running, "siege").await?;
    let request = key.request(SMALL, "connection: close\r\n");
    let camp = match stall {
        None => None,
        Some(stall) => {
            let many = if stall == Stall::Readers { siege.readers } else { siege.connections };
            let answer = key.request(&format!("[{}]", [LARGE; 50].join(",")), "");
            Some(Camp::pitch(stall, many, running.address, answer).await)
        }
    };
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for _ in 0..siege.requests {
        let begin = Instant::now();
        match timeout(PATIENCE, exchange(running.address, &request)).await {
            Ok(Ok(_)) => took.push(begin.elapsed().as_secs_f64() * 1e3),
            Ok(Err(error)) => failed.push(format!("{error:#}")),
            Err(_) => failed.push("no answer in 10 s".to_owned()),
        }
        sleep(PACE).await;
    }
    took.sort_by(f64::total_cmp);
    let refused = running.metric("connections_refused_total").await?;
    let refused = refused.context("no count of refused connections among the metrics")?;
    let (stalled, told) = camp.map_or((0, Vec::new()), Camp::strike);
    let peak = running.memory("VmHWM")?;
    let log = running.log()?;
    Ok(SiegeOutcome { took, failed, stalled, refused, peak, told, panicked: log.contains("panicked") })
}

/// Raises the limit on open files of this process as far as possible, and returns it.
fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
