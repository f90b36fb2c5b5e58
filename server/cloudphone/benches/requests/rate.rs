//! Each operation at a fixed number of requests per second, compared with the baseline: the share
//! of a core that it takes, and the waits.
//!
//! Requests are sent by schedule, and a wait begins at its scheduled moment, so that a server that
//! stalls does not get fewer requests.

use crate::Missed;
use crate::beside::each_operation;
use crate::load::{Pace, quantile};
use anyhow::Result;
use std::time::Duration;

/// Requests per second.
const RATE: u32 = 10_000;
const CONNECTIONS: usize = 32;
const ROUNDS: usize = 3;
const SPAN: Duration = Duration::from_secs(1);

pub(crate) fn run() -> Result<Missed> {
    println!("{RATE} requests a second on {CONNECTIONS} connections; in brackets the baseline\n");
    println!("operation     a second  share of a core %      ratio  p50 µs              p99 µs");
    each_operation(|name, both| {
        let rounds = both(CONNECTIONS, Pace::PerSecond(RATE), SPAN, ROUNDS)?;
        // Fewer if the machine was too busy; then the other figures are not conclusive.
        let [sent, ..] = rounds.figures(|load| load.waits[0].len() as f64 / load.span.as_secs_f64());
        let [ours, base, ratio] = rounds.figures(|load| load.cpu.as_secs_f64() / load.span.as_secs_f64() * 100.0);
        let [mut waits, mut base_waits] = rounds.waits();
        let mut at = |share| (quantile(&mut waits, share), quantile(&mut base_waits, share));
        let ((p50, base_p50), (p99, base_p99)) = (at(0.5), at(0.99));
        println!(
            "{name:12}  {sent:8.0}  {ours:8.1}  ({base:7.1})  {ratio:7.2}  {p50:7.0}  ({base_p50:7.0})  {p99:7.0}  ({base_p99:7.0})"
        );
        Ok(())
    })?;
    Ok(Missed::new())
}
