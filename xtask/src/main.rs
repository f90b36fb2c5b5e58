//! The maintainer's commands. `cargo xtask --help` lists them; each verb has its own file.

mod bench;
mod deny;
mod drill;
mod fuzz;
mod r#gen;
mod graph;
mod interop;
mod lines;
mod modules;
mod python;
mod rules;
mod serving;
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
    /// Write anew spec/generated (a JSON file a tool, tools.md, errors.md, schemas for editors), tests/RULES.md,
    /// docs/flags.md and the tables of README.md and ARCHITECTURE.md; ends with a table of how long the texts are that agents read, in
    /// characters and in tokens
    Gen {
        /// Write nothing; fail if something would change
        #[arg(long)]
        check: bool,
    },
    /// The crates and what each uses; fails where the architecture does not hold
    Graph,
    /// The lines of Rust that are neither blank nor comment, by crate: code, tests, benches and examples
    Lines {
        /// Another checkout
        folder: Option<PathBuf>,
    },
    /// Advisories, licences, versions and sources of all that Cargo.lock names, by deny.toml; needs Python, git, tar and xz
    Deny,
    /// Format, lints, crate graph, generated files, all tests, the usual worlds of `drill soak`; ends with a count
    Test,
    /// Does what CONTRIBUTING.md says on a copy of the repository, and compares what it shows
    Walk,
    /// What a request costs, beside a handler that only returns the same bytes, and how that grows; fails beyond a limit; Linux
    Bench(bench::Sections),
    /// What the program and its engine withstand, tried for minutes
    #[command(subcommand)]
    Drill(drill::Drill),
    /// The program under signed requests that schemathesis makes of the OpenAPI document; fails where an answer is not as the document
    /// says; needs Python
    Fuzz(fuzz::Cases),
    /// Official clients of the protocol and its conformance suite against the program; needs Python and Node.js
    Interop,
}

fn main() -> Result<()> {
    match Arguments::parse().verb {
        Verb::Gen { check } => r#gen::run(&root(), check),
        Verb::Graph => graph::run(&root()),
        Verb::Lines { folder } => lines::run(&folder.unwrap_or_else(root)),
        Verb::Deny => deny::run(&root()),
        Verb::Test => test::run(&root()),
        Verb::Walk => walk::run(&root()),
        Verb::Bench(sections) => bench::run(&root(), &sections),
        Verb::Drill(drill) => drill::run(&root(), drill),
        Verb::Fuzz(cases) => fuzz::run(&root(), cases),
        Verb::Interop => interop::run(&root()),
    }
}

/// Returns the folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}
