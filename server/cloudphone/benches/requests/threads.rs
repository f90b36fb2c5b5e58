//! Two threads compared with one: calls of the endpoint in this process, without connections. The
//! two threads call for one application, then for one application each; each thread has its own
//! device. For comparison: the speed of two threads on this machine that share nothing.

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
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant::contract::PermissionSet;
use toolwarrant::testing::{Key, Tenant, TestServer, serve_by};
use toolwarrant::{Clock, Service, Setup};
use toolwarrant_http::Router;
use tower_service::Service as _;

/// The least work of two threads, as a ratio to one.
const GATE: f64 = 1.8;
const ROUNDS: usize = 9;
const SPAN: Duration = Duration::from_millis(300);

/// The number of calls between two looks at the time.
const TOGETHER: u32 = 50;

pub(crate) fn run() -> Result<Missed> {
    let home = folder::home()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (server, keys) = runtime.block_on(server(home.path().to_owned()))?;
    let [first, second] = &keys;
    let call = |key, n: usize| caller(server.router.clone(), key, 1 + n as u32);
    let shared = |n: usize| call(first, n);
    let apart = |n: usize| call(if n == 0 { first } else { second }, n);
    let loops = |_: usize| Ok(compute);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let calls = [on_threads(1, shared)?, on_threads(2, shared)?, on_threads(2, apart)?];
        rounds.push((calls, [on_threads(1, loops)?, on_threads(2, loops)?]));
    }
    println!("{:28}  {:>14}  {:>14}  ratio  at least", "thousands a second", "one thread", "two threads");
    let row = |what: &str, rates: &dyn Fn(&Round) -> [f64; 2], least: &str| {
        let of = |n: usize| median(rounds.iter().map(|round| rates(round)[n]).collect());
        let ratio = median(rounds.iter().map(rates).map(|[one, two]| two / one).collect());
        println!("{what:28}  {:14.1}  {:14.1}  {ratio:5.2}  {least}", of(0) / 1e3, of(1) / 1e3);
        ratio
    };
    let mut missed = Missed::new();
    for (what, two) in [("one application", 1), ("two applications", 2)] {
        let ratio = row(&format!("get_device, {what}"), &|(calls, _)| [calls[0], calls[two]], &GATE.to_string());
        if ratio < GATE {
            missed.push(format!("{what}: two threads do {ratio:.2} times what one does, at least {GATE}"));
        }
    }
    row("computation alone", &|(_, loops)| *loops, "-");
    Ok(missed)
}

/// The rates of one round: calls of one thread, of two for one application, and of two for two
/// applications; then plain computation of one thread and of two.
type Round = ([f64; 3], [f64; 2]);

/// Returns the number of runs of the work per second on all threads together. `work` gets the
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

/// Takes about as long as a call, without a shared cache line.
fn compute() -> Result<()> {
    let mut word = black_box(17_u64);
    for _ in 0..10_000 {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    }
    black_box(word);
    Ok(())
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
