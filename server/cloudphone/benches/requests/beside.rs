//! Each operation compared with the baseline, at full speed on one connection and on many.

use crate::load::{Load, Pace, Stream, load, quantile};
use crate::server::Server;
use crate::wire::{ask, operations, request};
use crate::{Missed, baseline, folder, median};
use anyhow::{Context, Result};
use std::time::Duration;

/// The highest ratio of CPU time per request to that of the baseline, with [`MANY`] connections.
const GATES: [(&str, f64); 4] = [("initialize", 1.3), ("tools/list", 1.3), ("get_device", 1.3), ("list_devices", 1.5)];
const MANY: usize = 32;

/// The number of measurements of the program and of the baseline, taken in turn.
const ROUNDS: usize = 7;
/// The duration of one load.
const SPAN: Duration = Duration::from_millis(300);

/// The results of the program and of the baseline, by rounds.
pub(crate) struct Rounds(pub(crate) Vec<(Load, Load)>);

impl Rounds {
    /// Returns the median of a figure of the program, of the baseline, and of their ratio.
    pub(crate) fn figures(&self, figure: impl Fn(&Load) -> f64) -> [f64; 3] {
        let of = |pick: &dyn Fn(&(Load, Load)) -> f64| median(self.0.iter().map(pick).collect());
        let ratio = |(ours, base): &(Load, Load)| figure(ours) / figure(base);
        [of(&|(ours, _)| figure(ours)), of(&|(_, base)| figure(base)), of(&ratio)]
    }

    /// Returns the waits of all rounds: of the program, of the baseline.
    pub(crate) fn waits(&self) -> [Vec<Duration>; 2] {
        let all = |pick: fn(&(Load, Load)) -> &Load| self.0.iter().flat_map(move |both| &pick(both).waits[0]).copied();
        [all(|(ours, _)| ours).collect(), all(|(_, base)| base).collect()]
    }
}

pub(crate) fn run() -> Result<Missed> {
    println!("operation     connections    req/s  p50 µs  p99 µs  CPU µs/req  baseline  ratio  at most");
    let mut missed = Missed::new();
    each_operation(|name, both| {
        for connections in [1, MANY] {
            let rounds = both(connections, Pace::Closed, SPAN, ROUNDS)?;
            let [rate, ..] = rounds.figures(|load| load.waits[0].len() as f64 / load.span.as_secs_f64());
            let [ours, base, ratio] = rounds.figures(Load::cpu_micros);
            let [mut waits, _] = rounds.waits();
            let (p50, p99) = (quantile(&mut waits, 0.5), quantile(&mut waits, 0.99));
            let gate = GATES.iter().find(|(gated, _)| *gated == name && connections == MANY).map(|(_, gate)| *gate);
            println!(
                "{name:12}  {connections:11}  {rate:7.0}  {p50:6.0}  {p99:6.0}  {ours:10.2}  {base:8.2}  {ratio:5.2}  {:>7}",
                gate.map_or_else(|| "-".to_owned(), |gate| gate.to_string()),
            );
            if let Some(gate) = gate.filter(|gate| ratio > *gate) {
                missed.push(format!("{name}: {ratio:.2} times the CPU time of the baseline, at most {gate}"));
            }
        }
        Ok(())
    })?;
    Ok(missed)
}

/// Loads the program and the baseline in turn. The arguments are the connections, the pace, the
/// duration and the number of rounds.
type Both<'a> = dyn Fn(usize, Pace, Duration, usize) -> Result<Rounds> + 'a;

/// Goes through all operations. `see` gets the name of the operation, and the function that loads
/// the program and its baseline with it.
pub(crate) fn each_operation(mut see: impl FnMut(&str, &Both<'_>) -> Result<()>) -> Result<()> {
    let home = folder::home()?;
    let (data, key) = folder::one(&home)?;
    let program = Server::program(&data, 100)?;
    for (name, message) in operations() {
        let request = request(&key, &message);
        let reply = ask(&program, &request).with_context(|| format!("{name} is not answered"))?;
        let baseline = baseline::start(&reply)?;
        let requests = || request.clone();
        let loaded = |server, connections, pace, span| -> Result<Load> {
            load(server, &[Stream { requests: &requests, form: reply.form()?, connections, pace }], span)
        };
        see(name, &|connections, pace, span, rounds| {
            let round = |_| {
                let ours = loaded(&program, connections, pace, span).with_context(|| name.to_owned())?;
                Ok((ours, loaded(&baseline, connections, pace, span).context("the baseline")?))
            };
            (0..rounds).map(round).collect::<Result<_>>().map(Rounds)
        })?;
    }
    Ok(())
}
