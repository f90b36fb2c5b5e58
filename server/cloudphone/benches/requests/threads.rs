//! Two threads compared with one: calls of the endpoint in this process, without connections. The
//! two threads call for one application, then for one application each, and then a server each.
//! Each thread has its own device. Two servers share nothing, so they show what two threads can do
//! on this machine.

use crate::folder;
use crate::wire::get_device;
use crate::{Missed, median};
use anyhow::{Context, Result, ensure};
use axum::body::Body;
use axum::extract::Request;
use cloudphone::phones::contract::Contract;
use cloudphone::phones::devices::Phones;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use cloudphone::phones::writes::Writes;
use cloudphone::platforms::simulator::Sim;
use http_body_util::BodyExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant::contract::PermissionSet;
use toolwarrant::{Clock, Service, Setup};
use toolwarrant_http::Router;
use toolwarrant_testing::{Key, Tenant, TestServer, serve_by};
use tower_service::Service as _;

/// The least work of two threads on one server, as a ratio to two threads on two servers.
const GATE: f64 = 0.9;
const ROUNDS: usize = 9;
const SPAN: Duration = Duration::from_millis(300);

/// The number of calls between two looks at the time.
const TOGETHER: u32 = 50;

pub(crate) fn run() -> Result<Missed> {
    let home = folder::home()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (server, [first, second]) = runtime.block_on(server(home.path().join("one")))?;
    let (other, [third, _]) = runtime.block_on(self::server(home.path().join("other")))?;
    let call = |server: &TestServer, key, n: usize| caller(server.router.clone(), key, 1 + n as u32);
    let shared = |n: usize| call(&server, &first, n);
    let apart = |n: usize| call(&server, if n == 0 { &first } else { &second }, n);
    let alone = |n: usize| if n == 0 { call(&server, &first, n) } else { call(&other, &third, n) };
    let mut rounds: Vec<[f64; 4]> = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push([on_threads(1, shared)?, on_threads(2, shared)?, on_threads(2, apart)?, on_threads(2, alone)?]);
    }
    println!(
        "{:30}  {:>20}  {:>13}  {:>14}  at least",
        "get_device", "thousands a second", "of one thread", "of two servers"
    );
    let mut missed = Missed::new();
    for (n, what) in
        ["one thread", "two threads, one application", "two threads, two applications", "two threads, two servers"]
            .into_iter()
            .enumerate()
    {
        let to = |other: usize| median(rounds.iter().map(|rates| rates[n] / rates[other]).collect());
        let (rate, of_one, of_two) = (median(rounds.iter().map(|rates| rates[n]).collect()), to(0), to(3));
        let gated = n == 1 || n == 2;
        let least = if gated { GATE.to_string() } else { "-".to_owned() };
        println!("{what:30}  {:20.1}  {of_one:13.2}  {of_two:14.2}  {least}", rate / 1e3);
        if gated && of_two < GATE {
            missed.push(format!("{what}: {of_two:.2} times what two servers do, at least {GATE}"));
        }
    }
    Ok(missed)
}

/// Returns the number of calls per second on all threads together. `work` gets the
/// number of the thread.
fn on_threads<W: FnMut() -> Result<()>>(
    count: usize,
    work: impl Fn(usize) -> Result<W> + Copy + Send + Sync,
) -> Result<f64> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|n| {
                scope.spawn(move || -> Result<f64> {
                    let mut work = work(n)?;
                    let (begun, mut done) = (Instant::now(), 0_u32);
                    while begun.elapsed() < SPAN {
                        (0..TOGETHER).try_for_each(|_| work())?;
                        done += TOGETHER;
                    }
                    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
                })
            })
            .collect();
        let rates =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?);
        rates.sum()
    })
}

/// Returns a function that calls get_device and reads the whole answer.
fn caller(mut router: Router, Key { id, secret }: &Key, device: u32) -> Result<impl FnMut() -> Result<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let message = get_device(device).to_string();
    let mut call = move || {
        let request = Request::post("/mcp").header("host", "127.0.0.1").header("content-type", "application/json");
        let request = request.header("x-api-key", id).header("x-api-secret", secret);
        let request = request.body(Body::from(message.clone()))?;
        runtime.block_on(async {
            let answer = router.call(request).await.context("an answer")?;
            Ok::<_, anyhow::Error>((answer.status(), answer.into_body().collect().await?.to_bytes()))
        })
    };
    let (status, body) = call()?;
    let sound = status.is_success() && str::from_utf8(&body)?.contains("capabilities");
    ensure!(sound, "{status}: {}", String::from_utf8_lossy(&body));
    Ok(move || {
        let (_, again) = call()?;
        ensure!(again.len() == body.len(), "another answer: {}", String::from_utf8_lossy(&again));
        Ok(())
    })
}

/// Starts the product on simulated phones, with tasks in memory, the system's clock and an audit on
/// the disk.
async fn server(folder: PathBuf) -> Result<(TestServer, [Key; 2])> {
    let compose = |Setup { clock, .. }: Setup<'_, ()>| {
        let sim = Arc::new(Sim::new(1, 100, clock.clone(), &[0; 32]));
        let phones = Phones::new(sim.clone(), ProxyHosts::Public, clock);
        let executor = Arc::new(Writes::new(sim, phones.views()));
        Service::new(Contract(Arc::new(phones))).executor(executor)
    };
    let tenant = || Tenant { requests_per_minute: u32::MAX, ..Tenant::with(PermissionSet(u64::MAX)) };
    let (server, keys) = serve_by(Clock::system(), compose, vec![tenant(), tenant()], folder).await;
    let keys: Vec<_> = keys.into_iter().flatten().collect();
    Ok((server, keys.try_into().ok().context("a key of each application")?))
}
