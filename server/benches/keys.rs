//! What applications and keys cost: `cargo bench --package cloudphone --bench keys`.
//!
//! With 10 and with 10,000 applications of one key each, on a disk: what it takes to make the last of them, to open the folder
//! at a start, and to find out who sent a request.

use anyhow::{Context, Result};
use axum::http::HeaderMap;
use cloudphone::clock::Clock;
use cloudphone::data::DataFolder;
use cloudphone::framework::access::Grants;
use cloudphone::framework::registry::{NewApplication, Registry};
use cloudphone::phones::contract::CATALOGUE;
use cloudphone::random::Random;
use cloudphone::store::sqlite::Sqlite;
use cloudphone::vault::Vault;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Repetitions of each measurement; the median counts.
const ROUNDS: usize = 15;

/// Lookups that are timed together.
const LOOKUPS: u32 = 20_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("applications  key made ms  start ms  lookup ns  unknown key ns");
    for count in [10, 10_000] {
        let home = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let folder = DataFolder::open(&home.path().join("data"))?;
        let registry = open(&folder).await?;
        let (mut made, mut last) = (Vec::new(), HeaderMap::new());
        for number in 0..count {
            let name = format!("application {number}");
            let new = NewApplication { name, permissions: Vec::new(), grants: Grants::All, requests_per_minute: 300 };
            let id = registry.create(new).await?;
            let begin = Instant::now();
            let key = registry.issue_key(&id, None).await?;
            made.push(begin.elapsed());
            last = headers(&key.key_id, key.secret.expose())?;
        }
        made.drain(..made.len().saturating_sub(ROUNDS));
        drop(registry);
        let (mut starts, mut found, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        let stranger = headers("cpk_0000000000000000", "cps_0")?;
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let registry = open(&folder).await?;
            starts.push(begin.elapsed());
            found.push(lookups(&registry, &last));
            unknown.push(lookups(&registry, &stranger));
        }
        let [made, start] = [made, starts].map(|times| median(times).as_secs_f64() * 1e3);
        let [found, unknown] = [found, unknown].map(|times| median(times).as_secs_f64() * 1e9 / f64::from(LOOKUPS));
        println!("{count:>12}  {made:>11.2}  {start:>8.1}  {found:>9.0}  {unknown:>14.0}");
    }
    Ok(())
}

async fn open(folder: &DataFolder) -> Result<Registry> {
    let (random, clock) = (Random::System, Clock::system());
    let vault = Vault::new(&folder.master_key(&random)?, random.clone());
    let store = Arc::new(Sqlite::open(folder)?);
    Registry::open(store, &CATALOGUE, vault, clock, random).await.context("a folder that was written just now")
}

fn headers(key_id: &str, secret: &str) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", key_id.parse()?);
    headers.insert("x-api-secret", secret.parse()?);
    Ok(headers)
}

fn lookups(registry: &Registry, headers: &HeaderMap) -> Duration {
    let (access, now) = (registry.access(), Clock::system().now());
    let begin = Instant::now();
    for _ in 0..LOOKUPS {
        let _ = black_box(access.authenticate(black_box(headers), now));
    }
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
