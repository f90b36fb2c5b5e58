//! The maintainer's commands. `cargo xtask --help` lists them; each verb has its own file.

/// If the reader has gone, as `head` does, the program ends without a panic.
macro_rules! println {
    () => { crate::print_line(format_args!("")) };
    ($($text:tt)+) => { crate::print_line(format_args!($($text)+)) };
}

mod bench;
mod cargo;
mod contract;
mod crates;
mod drill;
mod files;
mod r#gen;
mod graph;
mod modules;
mod package;
mod rules;
mod test;
mod tokens;
mod walk;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolwarrant_contract::GateCommand;

/// The maintainer's commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version = None)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Write spec/generated (a JSON file for each tool, tools.md, errors.md, schemas for editors),
    /// tests/RULES.md and the table of README.md; ends with a table of the lengths of the texts
    /// that agents read, in characters and in tokens
    Gen {
        /// Do not write; fail if a file would change
        #[arg(long)]
        check: bool,
    },
    /// Check changes of the contract in spec/, accept them, and release them
    #[command(subcommand)]
    Contract(GateCommand),
    /// Print the crates and their dependencies; fails if a rule of the architecture is broken
    Graph,
    /// Check everything that must pass: format, lints, crate graph, packages, generated files,
    /// contract, tests, dependencies and pages; ends with the times, what was left out, and a
    /// count
    Test,
    /// Follow CONTRIBUTING.md on a copy of the repository and docs/service.md in a new folder, and
    /// compare the output with the pages
    Walk {
        /// One of these pages
        page: Option<String>,
    },
    /// Resolve the links of all comments with rustdoc, which compiles all dependencies once more
    Doc,
    /// Measure the cost of a request relative to a handler that only returns the same bytes; fails
    /// beyond a limit; Linux
    Bench(bench::Sections),
    /// Stress the program and its engine for minutes
    #[command(subcommand)]
    Drill(drill::Drill),
    /// Make a tarball, a Debian package, a bundle for hosts, bills of materials and their sums in
    /// dist/, the same bytes for the same commit; needs git, GNU tar and dpkg-dev
    Package,
}

fn main() -> Result<()> {
    let of_cargo = package_variables();
    if !of_cargo.is_empty() {
        return Err(without(&of_cargo).exec().into());
    }
    match Arguments::parse().verb {
        Verb::Gen { check } => r#gen::run(&root(), check),
        Verb::Contract(command) => contract::run(&root(), &command),
        Verb::Graph => graph::run(&root()),
        Verb::Test => test::run(&root()),
        Verb::Walk { page } => walk::run(&root(), page.as_deref()),
        Verb::Doc => {
            let mut cargo = cargo::cargo(&root());
            cargo.env("RUSTDOCFLAGS", "-D warnings");
            let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"];
            cargo::step(cargo, &arguments).map(drop)
        }
        Verb::Bench(sections) => bench::run(&root(), &sections),
        Verb::Drill(drill) => drill::run(&root(), drill),
        Verb::Package => package::run(&root()),
    }
}

/// Returns the variables that cargo sets for the package of a program that it runs. A cargo that
/// inherits them builds some libraries again, and so does the next cargo without them.
fn package_variables() -> Vec<OsString> {
    let is_one = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_str().is_some_and(is_one)).collect()
}

fn without(variables: &[OsString]) -> Command {
    let mut arguments = std::env::args_os();
    let mut command = Command::new(arguments.next().unwrap_or_default());
    command.args(arguments);
    for name in variables {
        command.env_remove(name);
    }
    command
}

fn print_line(line: std::fmt::Arguments<'_>) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        // The exit code of a shell for a program that SIGPIPE has ended.
        std::process::exit(141);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}
