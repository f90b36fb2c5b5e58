//! The cost of tasks in flight: `cargo bench --package cloudphone --bench in_flight`. Linux.
//!
//! Measures three figures with 10, 10,000, 100,000 and 1,000,000 tasks in flight on a disk. The
//! first is the time until a new process knows all of them, the second the memory that it then has
//! per task, including caches. The third is the time of a look at a task that is due. A look reads
//! the task, reads its target, and waits on.

use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinSet;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_sqlite::Sqlite;
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::{Facts, Sent};
use toolwarrant_tasks::store::{Acceptance, Advance, CallFacts, Identity, NewTask, TaskStore};
use toolwarrant_tasks::task::{Phase, Probe, Reading, Task, TaskId, TaskPolicy, UpstreamAnswer, Verdict};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// The number of tasks that are due; all others wait for an hour.
const DUE: u64 = 1_000;

/// The number of looks at each of them.
const ROUNDS: u32 = 20;

/// The number of tasks that are written at a time.
const TOGETHER: usize = 512;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    if let (Some("measure"), Some(data)) = (arguments.next().as_deref(), arguments.next()) {
        return measure(Path::new(&data)).await;
    }
    println!("in flight  start ms  bytes a task  µs a look");
    for count in [10, 10_000, 100_000, 1_000_000] {
        let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let data = home.path();
        fill(data, count).await?;
        let measured = Command::new(std::env::current_exe()?).arg("measure").arg(data).status()?;
        ensure!(measured.success(), "with {count} tasks");
    }
    Ok(())
}

/// Measures the cost of the tasks in flight of that folder in a new process.
async fn measure(data: &Path) -> Result<()> {
    let (clock, target) = (Clock::manual(NOW), Arc::new(Target::default()));
    let (before, begin) = (memory()?, Instant::now());
    let parts = Parts {
        store: Arc::new(Sqlite::open(&data.join("bench.db"), ())?),
        executor: target.clone(),
        catalogue: None,
        keyring: KeyRing::new("bench", &[7; 32], Random::System),
        clock: clock.clone(),
        random: Random::System,
        max_in_flight: usize::MAX,
    };
    let engine = Engine::start(parts).await?;
    let (start, bytes, count) = (begin.elapsed(), memory()?.saturating_sub(before), engine.in_flight() as u64);

    let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
    let begin = Instant::now();
    for round in 1..=u64::from(ROUNDS) {
        while target.looks.load(Relaxed) < round * count.min(DUE) {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        clock.advance(Duration::from_secs(3));
    }
    let look = begin.elapsed().as_secs_f64() * 1e6 / (f64::from(ROUNDS) * count.min(DUE) as f64);
    runner.abort();
    println!("{count:>9}  {:>8.1}  {:>12}  {look:>9.1}", start.as_secs_f64() * 1e3, bytes / count);
    Ok(())
}

/// A target that cannot be read, and answers so at once.
#[derive(Debug, Default)]
struct Target {
    looks: AtomicU64,
}

impl Executor for Target {
    fn facts(&self, _: &Write) -> Facts {
        Facts::default()
    }

    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Err(Unreadable("dark".into())) })
    }

    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::NotSent("refused".into()) })
    }

    fn look_up<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async { Err(Unreadable("dark".into())) })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        self.looks.fetch_add(1, Relaxed);
        Box::pin(async {
            Reading { verdict: Verdict::Unreadable, expected: "198.51.100.7".into(), observed: "dark".into() }
        })
    }
}

/// Stores `count` tasks: some are being verified now, the others begin in an hour.
async fn fill(data: &Path, count: u64) -> Result<()> {
    let keyring = KeyRing::new("bench", &[7; 32], Random::System);
    let store = Arc::new(Sqlite::open(&data.join("bench.db"), ())?);
    let mut writing = JoinSet::new();
    for number in 0..count {
        let id = TaskId::from_bytes(u128::from(number).to_be_bytes());
        let at = if number < DUE { NOW } else { NOW.plus(Duration::from_hours(1)) };
        let policy = TaskPolicy {
            probe: Some(Probe { name: "exit_ip".to_owned(), baseline: true }),
            idempotent: true,
            settle_seconds: 3_600,
            deadline_seconds: 7_200,
        };
        let new = NewTask {
            marks: Vec::new(),
            id,
            identity: Identity {
                application: "app_0123456789abcdef".to_owned(),
                key: None,
                fingerprint: [0; 32],
                resource: "device".to_owned(),
                target: format!("target-{number:09}"),
            },
            tool: "set_proxy".to_owned(),
            sealed: keyring.seal(&id.to_string(), r#"{"host":"proxy.example.com","port":1080}"#)?,
            policy: policy.clone(),
            call: CallFacts::default(),
            at,
        };
        let store = Arc::clone(&store);
        writing.spawn(async move {
            let accepted = store.accept(new).await?;
            ensure!(matches!(accepted, Acceptance::Fresh { .. }), "{accepted:?}");
            if number < DUE {
                let (phase, outcome, wake_at) = (Phase::Verifying, Some((UpstreamAnswer::Ok, NOW)), Some(NOW));
                let task = Task { phase, outcome, wake_at, attempts: 1, left: true, ..Task::new(policy, NOW) };
                let (entries, what) = (Vec::new(), "sent".to_owned());
                store.advance(Advance { id, version: 0, task, entries, what: what.into(), at: NOW }).await?;
            }
            Ok(())
        });
        if writing.len() >= TOGETHER
            && let Some(written) = writing.join_next().await
        {
            written??;
        }
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    Ok(())
}

/// Returns the memory of this process that is in use, in bytes.
fn memory() -> Result<u64> {
    let pages: Option<u64> =
        fs::read_to_string("/proc/self/statm")?.split(' ').nth(1).and_then(|text| text.parse().ok());
    Ok(pages.unwrap_or(0) * 4_096)
}
