//! The cost of a request: `cargo xtask bench`. `docs/performance.md` explains its tables.
//!
//! The program serves on one core; the load comes from this process, on another. The program is
//! compared with a *baseline*: bare `axum::serve` and a handler that reads the body and returns the
//! same bytes. Both are measured in turn, so that other work of the machine affects both. Figures
//! beyond their limits fail the run.

mod baseline;
mod callgrind;
mod compared;
mod cores;
mod folder;
mod instructions;
mod limits;
mod load;
mod postgres;
mod replica;
mod server;
mod start;
mod wire;
mod writes;

use anyhow::{Context, Result, ensure};
use std::process::ExitCode;
use std::time::Instant;

type Missed = Vec<String>;

type Section = fn() -> Result<Missed>;

/// Run before this process is bound to one core.
const ON_ALL_CORES: [&str; 2] = ["instructions", "writes"];

const SECTIONS: [(&str, Section); 4] =
    [("instructions", instructions::run), ("writes", writes::run), ("load", compared::run), ("start", start::run)];

fn main() -> Result<ExitCode> {
    if replica::is_asked() {
        return Ok(replica::serve());
    }
    // Cargo adds a flag to the arguments.
    let asked: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if asked.first().is_some_and(|first| first == "baseline") {
        return baseline::serve().map(|()| ExitCode::SUCCESS);
    }
    let unknown = asked.iter().find(|name| !SECTIONS.iter().any(|(known, _)| known == name));
    ensure!(
        unknown.is_none(),
        "`{}` is no section; there are {}",
        unknown.map_or("", String::as_str),
        SECTIONS.map(|(name, _)| name).join(", ")
    );
    let mut missed = Missed::new();
    let is_due = |name: &str| asked.is_empty() || asked.iter().any(|one| one == name);
    for (name, run) in SECTIONS.into_iter().filter(|(name, _)| is_due(name)) {
        let begun = Instant::now();
        println!("# {name}\n");
        if !ON_ALL_CORES.contains(&name) {
            cores::keep_for_the_load();
        }
        missed.extend(run().with_context(|| name.to_owned())?);
        println!("\n({name}: {} s)\n", begun.elapsed().as_secs());
    }
    ensure!(missed.is_empty(), "beyond its limit:\n{}", missed.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
