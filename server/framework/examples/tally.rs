//! What the records of a call cost beside its work: its charge, its place and line in the audit, its counts.
//!
//! `tally` prints how many calls of one application are recorded a second, by one thread and by two at once. `tally N` records N calls
//! with one thread and prints nothing, for who counts instructions: take the difference of two runs.

use serde_json::value::RawValue;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant_core::audit::{Audit, AuditParts, Line};
use toolwarrant_core::clock::Clock;
use toolwarrant_core::counts::Requests;
use toolwarrant_core::keyring::KeyRing;
use toolwarrant_core::limit::Window;
use toolwarrant_core::random::Random;

mod contract {
    //! The print shop's contract, written against this crate alone.
    toolwarrant_macros::contract!("../../tests/print_shop/spec", runtime = ::toolwarrant_core);
}

/// Calls of a thread in a round: so few that the audit's writer mostly sleeps, which is another thread.
const CALLS: usize = 500;

/// Rounds, of which the fastest counts: other programs use the machine, too.
const ROUNDS: usize = 4_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tally-{}", std::process::id()));
    let outcome = run(&folder, std::env::args().nth(1));
    fs::remove_dir_all(&folder)?;
    outcome
}

fn run(folder: &Path, calls: Option<String>) -> Result<(), Box<dyn Error>> {
    let (key, clock) = (KeyRing::new("tally", &[7; 32], Random::System).chain_key(), Clock::system());
    let audit = Audit::start(AuditParts { folder, key, clock: clock.clone(), anchor: None })?;
    let (window, counts) = (Window::new(u32::MAX), Requests::new(&contract::CATALOGUE));
    let arguments = RawValue::from_string(r#"{"printer_id":"p-0000000017"}"#.to_owned())?;
    let records = Records { audit, window, counts, clock, arguments };
    if let Some(calls) = calls {
        (0..calls.parse()?).for_each(|_| records.call());
        return Ok(());
    }
    let [alone, together] = [1, 2].map(|threads| records.fastest(threads));
    let a_second = |threads: f64, took: Duration| threads * CALLS as f64 / took.as_secs_f64();
    let [alone, together] = [a_second(1.0, alone), a_second(2.0, together)];
    println!("one thread {alone:.0} calls/s, two threads {together:.0} calls/s, ratio {:.2}", together / alone);
    Ok(())
}

/// What calls are recorded in.
struct Records {
    audit: Audit,
    window: Window,
    counts: Requests,
    clock: Clock,
    arguments: Box<RawValue>,
}

impl Records {
    /// Records one call, as the pipeline does.
    fn call(&self) {
        let Self { audit, window, counts, clock, arguments } = self;
        let (now, Some(tool)) = (clock.now(), contract::CATALOGUE.tools.first()) else { return };
        let admitted = window.admit(now, 1).is_ok();
        let slot = loop {
            match audit.reserve() {
                Some(slot) => break slot,
                None => thread::yield_now(),
            }
        };
        slot.write(&Line {
            time: now,
            request_id: "01997c6e-8f5a-7b3e-9d64-3b1f0c2a5e77",
            application: "app_7f3a09c1d2e4b586",
            key_id: "tlk_4e1b7a90c3d2f658",
            tool: tool.name,
            target: Some("p-0000000017"),
            arguments: Some(arguments),
            outcome: if admitted { "ok" } else { "rate_limited" },
            calls: 1,
        });
        counts.ended(tool, "ok", clock.now().since(now));
    }

    /// The shortest time in which so many threads have made their calls, from when the first has begun until the last is done.
    fn fastest(&self, threads: usize) -> Duration {
        let arrived = AtomicUsize::new(0);
        let round = |round: usize| {
            arrived.fetch_add(1, Relaxed);
            while arrived.load(Relaxed) < threads * (round + 1) {
                thread::yield_now();
            }
            let began = Instant::now();
            (0..CALLS).for_each(|_| self.call());
            (began, Instant::now())
        };
        let spans: Vec<Vec<_>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| (0..ROUNDS).map(round).collect())).collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
        });
        let of_round = |round: usize| {
            let began = spans.iter().map(|spans| spans[round].0).min()?;
            Some(spans.iter().map(|spans| spans[round].1).max()? - began)
        };
        (0..ROUNDS).filter_map(of_round).min().unwrap_or_default()
    }
}
