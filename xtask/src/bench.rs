//! `cargo xtask bench`: runs the bench `requests` of the product section by section, which measures
//! the cost of a request and defines the limits.

use crate::cargo::{cargo, step};
use anyhow::Result;
use clap::ValueEnum;
use std::path::Path;

/// The choice of sections.
#[derive(clap::Args)]
pub(crate) struct Sections {
    /// Sections to measure; by default all of them, which takes about ten minutes
    sections: Vec<Section>,
}

/// A section of the bench. Its name is the name in the bench.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Section {
    /// Instructions, allocations and clock readings of each operation, and its largest functions;
    /// needs valgrind (2 min)
    Instructions,
    /// Tasks that a replica on PostgreSQL accepts per second from 64 clients, compared with SQLite
    /// (1 min)
    Writes,
    /// CPU time and waits of each operation compared with the baseline, with 1 and 32 connections
    /// (50 s)
    Load,
    /// The time until the program serves, with many devices and keys (20 s)
    Start,
}

pub(crate) fn run(root: &Path, Sections { sections }: &Sections) -> Result<()> {
    let names: Vec<_> = sections.iter().filter_map(ValueEnum::to_possible_value).collect();
    let mut arguments = vec!["bench", "--quiet", "--locked", "--package", "cloudphone", "--bench", "requests", "--"];
    arguments.extend(names.iter().map(clap::builder::PossibleValue::get_name));
    step(cargo(root), &arguments).map(drop)
}
