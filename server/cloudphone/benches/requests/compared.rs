//! Each operation compared with the baseline, at full speed on one connection and on many.

use crate::load::{Load, Stream, load, quantile};
use crate::server::Server;
use crate::wire::{ask, operations, request};
use crate::{Missed, baseline, folder, median};
use anyhow::{Context, Result};
use std::time::Duration;

/// Ratio of CPU time per request to the baseline, with [`MANY`] connections.
const GATES: [(&str, f64); 4] = [("initialize", 1.3), ("tools/list", 1.3), ("get_device", 1.3), ("list_devices", 1.5)];
const MANY: usize = 32;

const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(300);

pub(crate) fn run() -> Result<Missed> {
    println!("operation     connections    req/s  p50 µs  p99 µs  CPU µs/req  baseline  ratio  at most");
    let home = folder::home()?;
    let (data, key) = folder::one(&home)?;
    let program = Server::program(&data, 100)?;
    let mut missed = Missed::new();
    for (name, message) in operations() {
        let request = request(&key, &message);
        let reply = ask(&program, &request).with_context(|| format!("{name} is not answered"))?;
        let baseline = baseline::start(&reply)?;
        for connections in [1, MANY] {
            let requests = || request.clone();
            let loaded = |server| -> Result<Load> {
                let stream = Stream { requests: &requests, form: reply.form()?, connections };
                load(server, &stream, SPAN, Duration::ZERO)
            };
            let round = |_| {
                let ours = loaded(&program).with_context(|| name.to_owned())?;
                Ok((ours, loaded(&baseline).context("the baseline")?))
            };
            let rounds = (0..ROUNDS).map(round).collect::<Result<Vec<_>>>()?;
            let gate = GATES.iter().find(|(gated, _)| *gated == name && connections == MANY).map(|(_, gate)| *gate);
            let ratio = show(name, connections, &rounds, gate);
            if let Some(gate) = gate.filter(|gate| ratio > *gate) {
                missed.push(format!("{name}: {ratio:.2} times the CPU time of the baseline, at most {gate}"));
            }
        }
    }
    Ok(missed)
}

fn show(name: &str, connections: usize, rounds: &[(Load, Load)], gate: Option<f64>) -> f64 {
    let of = |figure: &dyn Fn(&(Load, Load)) -> f64| median(rounds.iter().map(figure).collect());
    let rate = of(&|(ours, _)| ours.waits.len() as f64 / ours.span.as_secs_f64());
    let (ours, base) = (of(&|(ours, _)| ours.cpu_micros()), of(&|(_, base)| base.cpu_micros()));
    let ratio = of(&|(ours, base)| ours.cpu_micros() / base.cpu_micros());
    let mut waits: Vec<_> = rounds.iter().flat_map(|(ours, _)| &ours.waits).copied().collect();
    let (p50, p99) = (quantile(&mut waits, 0.5), quantile(&mut waits, 0.99));
    println!(
        "{name:12}  {connections:11}  {rate:7.0}  {p50:6.0}  {p99:6.0}  {ours:10.2}  {base:8.2}  {ratio:5.2}  {:>7}",
        gate.map_or_else(|| "-".to_owned(), |gate| gate.to_string()),
    );
    ratio
}
