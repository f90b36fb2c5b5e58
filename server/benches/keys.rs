//! What applications and keys cost: `cargo bench --package cloudphone --bench keys`.
//!
//! With 10 and with 10,000 applications of one key each, on a disk: what it takes to make the last of them, to open the folder
//! at a start, and to find out who sent a request.

use anyhow::{Context, Result};
use cloudphone::phones::contract::CATALOGUE;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolwarrant_core::access::{Credentials, Grants};
use toolwarrant_core::clock::Clock;
use toolwarrant_core::keyring::KeyRing;
use toolwarrant_core::random::Random;
use toolwarrant_core::registry::{KeyPrefixes, NewApplication, Registry};
use toolwarrant_store::sqlite::{OpenOptions, Sqlite};

/// Repetitions of each measurement; the median counts.
const ROUNDS: usize = 15;

/// Lookups that are timed together.
const LOOKUPS: u32 = 20_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("applications  key made ms  start ms  lookup ns  unknown key ns");
    for count in [10, 10_000] {
        let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let folder = home.path().join("bench.db");
        let registry = open(&folder).await?;
        let (mut made, mut last) = (Vec::new(), None);
        for number in 0..count {
            let name = format!("application {number}");
            let new = NewApplication {
                name,
                permissions: Vec::new(),
                grants: Grants::everything(),
                requests_per_minute: 300,
            };
            let id = registry.create(new).await?;
            let begin = Instant::now();
            let key = registry.issue_key(&id, None).await?;
            made.push(begin.elapsed());
            last = Some(key);
        }
        made.drain(..made.len().saturating_sub(ROUNDS));
        drop(registry);
        let (mut starts, mut found, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        let last = last.context("a key")?;
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let registry = open(&folder).await?;
            starts.push(begin.elapsed());
            found.push(lookups(&registry, &last.key_id, last.secret.expose()));
            unknown.push(lookups(&registry, "cpk_0000000000000000", "cps_0"));
        }
        let [made, start] = [made, starts].map(|times| median(times).as_secs_f64() * 1e3);
        let [found, unknown] = [found, unknown].map(|times| median(times).as_secs_f64() * 1e9 / f64::from(LOOKUPS));
        println!("{count:>12}  {made:>11.2}  {start:>8.1}  {found:>9.0}  {unknown:>14.0}");
    }
    Ok(())
}

async fn open(database: &Path) -> Result<Registry> {
    let (random, clock) = (Random::System, Clock::system());
    let keyring = KeyRing::new("bench", &[7; 32], random.clone());
    let store = Arc::new(Sqlite::open(OpenOptions { path: database, former_resource: "device", lock: () })?);
    let prefixes = KeyPrefixes { id: "cpk_", secret: "cps_" };
    Registry::open(store, &CATALOGUE, prefixes, keyring, clock, random)
        .await
        .context("a folder that was written just now")
}

fn lookups(registry: &Registry, key_id: &str, secret: &str) -> Duration {
    let (access, clock) = (registry.access(), Clock::system());
    let begin = Instant::now();
    for _ in 0..LOOKUPS {
        let _ = black_box(access.authenticate(black_box(Credentials { key_id, secret }), &clock));
    }
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
