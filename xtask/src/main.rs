//! The maintainer's commands. `cargo xtask --help` lists them; one file a verb.

mod bench;
mod crash;
mod deny;
mod fleet;
mod fuzz;
mod r#gen;
mod graph;
mod hammer;
mod interop;
mod modules;
mod python;
mod rules;
mod serving;
mod siege;
mod soak;
mod test;
mod tokens;
mod walk;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};

/// The maintainer's commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version = None)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Write anew spec/generated (a JSON file a tool, tools.md, errors.md, schemas for editors) and tests/RULES.md; ends with a table
    /// of how long the texts are that agents read, in characters and in tokens
    Gen {
        /// Write nothing; fail if something would change
        #[arg(long)]
        check: bool,
    },
    /// The crates and what each uses; fails where the architecture does not hold
    Graph,
    /// Advisories, licences, versions and sources of all that Cargo.lock names, by deny.toml; needs Python, git, tar and xz
    Deny,
    /// Format, lints, crate graph, dependencies, generated files, all tests, 200,000 worlds of the simulation; ends with a count
    Test,
    /// The engine under simulation, in worlds that their seeds decide; a world that breaks a promise prints its history
    Soak(soak::Worlds),
    /// Does what CONTRIBUTING.md says on a copy of the repository, and compares what it shows
    Walk,
    /// What a request costs, beside a handler that only returns the same bytes, and how that grows; fails beyond a limit; Linux
    Bench(bench::Sections),
    /// The program under load, killed and stopped again and again, and what it is answerable for audited
    Crash(crash::Load),
    /// A client beside thousands of connections that stall: what it sees, and what they cost the program; Linux
    Siege(siege::Siege),
    /// What the program sees of a platform with many pads, at rest, asked a lot, and while it stalls for a time; Linux
    Fleet(fleet::Fleet),
    /// The program under signed requests that schemathesis makes of the OpenAPI document; fails where an answer is not as the document
    /// says; needs Python
    Fuzz(fuzz::Cases),
    /// A million malformed requests, and properties of all that reads what a stranger sends; fails where one makes the server fail
    Hammer(hammer::Blows),
    /// Official clients of the protocol and its conformance suite against the program; needs Python and Node.js
    Interop,
}

fn main() -> Result<()> {
    match Arguments::parse().verb {
        Verb::Gen { check } => r#gen::run(&root(), check),
        Verb::Graph => graph::run(&root()),
        Verb::Deny => deny::run(&root()),
        Verb::Test => test::run(&root()),
        Verb::Soak(worlds) => soak::run(&root(), worlds),
        Verb::Walk => walk::run(&root()),
        Verb::Bench(sections) => bench::run(&root(), &sections),
        Verb::Crash(load) => crash::run(&root(), load),
        Verb::Siege(siege) => siege::run(&root(), &siege),
        Verb::Fleet(fleet) => fleet::run(&root(), &fleet),
        Verb::Fuzz(cases) => fuzz::run(&root(), cases),
        Verb::Hammer(blows) => hammer::run(&root(), blows),
        Verb::Interop => interop::run(&root()),
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}
