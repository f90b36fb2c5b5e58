//! The number of writes accepted per second, and the wait of a client: `cargo bench --package
//! cloudphone --bench writes`.
//!
//! Compares three ways to make a write durable, in turn on the same disk. The engine stores one
//! task with its target lock, sealed and indexed. The others insert one row of the same size: one
//! commits all writes that have arrived, the other each write.

use anyhow::{Context, Result};
use cloudphone::phones::platforms::Platforms;
use cloudphone::phones::port::PlatformName;
use cloudphone::phones::views::Views;
use cloudphone::phones::writes::Writes;
use cloudphone::platforms::simulator::Sim;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolwarrant::base::ignore_poison;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_base::text::Secret;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_core::tasks::{CallFacts, Identity, Tasks, WriteRequest};
use toolwarrant_sqlite::Sqlite;
use toolwarrant_tasks::engine::{Engine, Parts};

const ROUNDS: usize = 3;

const SPAN: Duration = Duration::from_secs(2);

/// In bytes, of a task of the engine: about 610, and entries in two indexes.
const ROW: i64 = 650;

/// Without a common divisor, each target is new.
const FLEET: u64 = 1_000_000;
const STRIDE: u64 = 618_033;

static POLICY: PolicyDef =
    PolicyDef { probe: Some("exit_ip"), baseline: true, idempotent: true, settle_seconds: 15, deadline_seconds: 60 };

type WriteWay = fn(&Path, usize) -> Result<Vec<Duration>>;

const WAYS: [(&str, WriteWay); 3] = [("engine", engine), ("group commit", group), ("commit each", each)];

fn main() -> Result<()> {
    println!("clients  way            writes/s  p50 ms  p99 ms  of group commit  times commit each");
    for clients in [1, 8, 64, 256] {
        let mut seen: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (seen, (_, way)) in seen.iter_mut().zip(WAYS) {
                let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
                seen.extend(way(folder.path(), clients)?);
            }
        }
        let span = SPAN.as_secs_f64() * ROUNDS as f64;
        let rates = seen.each_ref().map(|waits| waits.len() as f64 / span);
        for ((name, _), (mut waits, rate)) in WAYS.iter().zip(seen.into_iter().zip(rates)) {
            waits.sort_unstable();
            let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
            let (p50, p99, of_group, times_each) = (at(0.5), at(0.99), rate / rates[1], rate / rates[2]);
            println!(
                "{clients:7}  {name:13}  {rate:8.0}  {p50:6.2}  {p99:6.2}  {:14.0}%  {times_each:17.1}",
                of_group * 100.0
            );
        }
    }
    Ok(())
}

/// Accepts writes, which are not carried out.
fn engine(folder: &Path, clients: usize) -> Result<Vec<Duration>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (clock, random) = (Clock::system(), Random::System);
    let sim = Arc::new(Sim::new(1, 1, clock.clone(), &[0; 32]));
    let platforms = Platforms::default().with(PlatformName::parse("target")?, sim);
    let keyring = KeyRing::new("bench", &[7; 32], random.clone());
    let engine = runtime.block_on(Engine::start(Parts {
        store: Arc::new(Sqlite::open(&folder.join("bench.db"), ())?),
        executor: Arc::new(Writes::new(Arc::new(platforms), Arc::new(Views::new(clock.clone())))),
        catalogue: None,
        keyring,
        clock: clock.clone(),
        random,
        max_in_flight: usize::MAX,
        lease: None,
    }))?;
    let (next, until) = (Arc::new(AtomicU64::new(0)), Instant::now() + SPAN);
    let client = |_| {
        let (engine, next, clock) = (engine.clone(), next.clone(), clock.clone());
        runtime.spawn(async move {
            let mut waits = Vec::new();
            while Instant::now() < until {
                let target = format!("target-{:09}", next.fetch_add(1, Relaxed) * STRIDE % FLEET);
                let begun = Instant::now();
                let arguments = Secret::new(format!(
                    r#"{{"device_id":"{target}","scheme":"socks5","host":"proxy.example.com","port":1080,"username":"user","password":"password"}}"#
                ));
                let identity = Identity {
                    application: "app_0123456789abcdef".to_owned(),
                    key: None,
                    fingerprint: engine.fingerprint("set_proxy", &arguments),
                    resource: "device".to_owned(),
                    target,
                };
                let (call, now) = (CallFacts::default(), clock.now());
                let write = WriteRequest { identity, tool: "set_proxy", policy: POLICY, call, nonce: None, now };
                let repeat = engine.repeat(&write).await.map_err(|error| anyhow::anyhow!("{error:?}"))?;
                anyhow::ensure!(repeat.is_none(), "each target is new");
                engine.accept(write, arguments).await.map_err(|error| anyhow::anyhow!("{error:?}"))?;
                waits.push(begun.elapsed());
            }
            Ok(waits)
        })
    };
    let clients: Vec<_> = (0..clients).map(client).collect();
    let mut waits = Vec::new();
    for client in clients {
        waits.extend(runtime.block_on(client)??);
    }
    Ok(waits)
}

fn group(folder: &Path, clients: usize) -> Result<Vec<Duration>> {
    let mut db = open(folder)?;
    let (ask, asked): (SyncSender<SyncSender<()>>, Receiver<_>) = sync_channel(1_024);
    let writer = std::thread::spawn(move || -> Result<()> {
        while let Ok(first) = asked.recv() {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let batch: Vec<SyncSender<()>> = std::iter::once(first).chain(asked.try_iter().take(511)).collect();
            for _ in &batch {
                insert(&transaction)?;
            }
            transaction.commit()?;
            for done in batch {
                let _ = done.send(());
            }
        }
        Ok(())
    });
    let waits = on_threads(clients, move || {
        let ask = ask.clone();
        move || {
            let (done, told) = sync_channel(1);
            ask.send(done).context("the writer has ended")?;
            told.recv().context("the writer has ended")
        }
    })?;
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    Ok(waits)
}

fn each(folder: &Path, clients: usize) -> Result<Vec<Duration>> {
    let db = Arc::new(Mutex::new(open(folder)?));
    on_threads(clients, move || {
        let db = Arc::clone(&db);
        move || {
            let mut db = ignore_poison(db.lock());
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            insert(&transaction)?;
            Ok(transaction.commit()?)
        }
    })
}

fn on_threads<W: FnMut() -> Result<()> + Send + 'static>(
    clients: usize,
    client: impl Fn() -> W,
) -> Result<Vec<Duration>> {
    let until = Instant::now() + SPAN;
    let run = |mut write: W| {
        move || -> Result<Vec<Duration>> {
            let mut waits = Vec::new();
            while Instant::now() < until {
                let begun = Instant::now();
                write()?;
                waits.push(begun.elapsed());
            }
            Ok(waits)
        }
    };
    let threads: Vec<_> = (0..clients).map(|_| std::thread::spawn(run(client()))).collect();
    drop(client);
    let mut waits = Vec::new();
    for thread in threads {
        waits.extend(thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
    }
    Ok(waits)
}

fn open(folder: &Path) -> Result<Connection> {
    let db = Connection::open(folder.join("bare.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE row(id INTEGER PRIMARY KEY, body BLOB) STRICT;",
    )?;
    Ok(db)
}

fn insert(db: &Connection) -> Result<()> {
    db.prepare_cached("INSERT INTO row(body) VALUES (randomblob(?1))")?.execute([ROW])?;
    Ok(())
}
