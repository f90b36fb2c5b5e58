//! Checks a model of the protocol by which replicas share a store. Prints a row for the protocol,
//! and for it without each of its safeguards. `-- trace MUTANT` prints the shortest counterexample.

mod model;
mod state;

use model::{Cluster, Mutant, Mutant::*, Step};
use stateright::{Checker, HasDiscoveries, Model, Path};
use std::{process::ExitCode, time::Instant};

const MODELS: [Mutant; 15] = [
    Sound, NoGate, TrueClocks, NoOwner, NoOwnStep, AtOnce, OldClock, KeepRows, CoolApart, NewNumber, Blind, Believe,
    Alone, LateJoin, LongPause,
];

/// The models in which no property may break.
const SAFE: [Mutant; 3] = [Sound, TrueClocks, NoOwnStep];

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(2) else {
        println!("model      broken property                   steps    states depth seconds");
        return ExitCode::from(u8::from(MODELS.map(|mutant| report(mutant, 3)).contains(&false)));
    };
    let Some(mutant) = MODELS.into_iter().find(|mutant| format!("{mutant:?}") == name) else {
        eprintln!("no model has the name `{name}`");
        return ExitCode::from(2);
    };
    let (property, steps) = check(Cluster { mutant, replicas: 3 }, 0).0.unwrap_or(("nothing", Vec::new()));
    steps.iter().enumerate().for_each(|(at, step)| println!("{:>3}  {step:?}", at + 1));
    println!("broken: {property}");
    ExitCode::SUCCESS
}

/// Checks a model and prints its row. Returns true if the result is as expected.
fn report(mutant: Mutant, replicas: usize) -> bool {
    let start = Instant::now();
    let (broken, [examples, states, depth]) = check(Cluster { mutant, replicas }, 0);
    let (property, steps) = broken.as_ref().map_or(("-", 0), |(property, steps)| (*property, steps.len()));
    let (name, seconds) = (format!("{mutant:?}"), start.elapsed().as_secs_f32());
    println!("{name:<10} {property:<33} {steps:>5} {states:>9} {depth:>5} {seconds:>7.1}");
    if SAFE.contains(&mutant) { broken.is_none() && examples == 2 } else { broken.is_some() }
}

/// Checks a model up to a depth; 0 is no limit. Returns the property that broke with the steps to
/// it, and the numbers of examples and states, and the depth. The checker may overwrite the
/// shortest counterexample with a later one, so this looks for a shorter one until there is none.
fn check(cluster: Cluster, depth: usize) -> (Option<(&'static str, Vec<Step>)>, [usize; 3]) {
    let checker = cluster.checker().finish_when(HasDiscoveries::AnyFailures).target_max_depth(depth).spawn_bfs().join();
    let found = checker.discoveries().into_iter().map(|(name, path)| (name, Path::into_actions(path)));
    let is_failure = |name| cluster.property(name).expectation.discovery_is_failure();
    let (broken, examples): (Vec<_>, Vec<_>) = found.partition(|(name, _)| is_failure(name));
    let broken = broken.into_iter().min_by_key(|(name, steps)| (steps.len(), *name));
    let shorter = broken.as_ref().map(|(_, steps)| check(cluster, steps.len() + 1));
    let sizes = [examples.len(), checker.unique_state_count(), checker.max_depth()];
    shorter.filter(|(broken, _)| broken.is_some()).unwrap_or((broken, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_holds_with_two_replicas_a_restart_and_a_failover() {
        assert!(report(Sound, 2));
    }

    #[test]
    fn the_protocol_breaks_without_a_safeguard() {
        let unsafe_ones = MODELS.into_iter().filter(|mutant| !SAFE.contains(mutant));
        unsafe_ones.for_each(|mutant| assert!(report(mutant, 3), "{mutant:?}"));
    }
}
