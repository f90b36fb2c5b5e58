//! `cargo xtask drill NAME`: stress tests of the program and its engine that take minutes; each
//! drill has its own file.
//!
//! Some drills are tests that other commands skip; `ignored` runs those.

mod crash;
mod fleet;
mod hammer;
mod ignored;
mod siege;
mod soak;

use anyhow::Result;
use std::path::Path;

/// Which drill.
#[derive(clap::Subcommand)]
pub(crate) enum Drill {
    /// The engine under simulation, in worlds that their seeds decide; a world that breaks a promise prints its history
    Soak(soak::Worlds),
    /// The program under load, killed and stopped again and again, and what it is answerable for audited
    Crash(crash::Load),
    /// A client beside thousands of connections that stall: what it sees, and what they cost the program; Linux
    Siege(siege::Siege),
    /// What the program sees of a platform with many pads, at rest, asked a lot, and while it stalls for a time; Linux
    Fleet(fleet::Fleet),
    /// A million malformed requests, and properties of all that reads what a stranger sends; fails where one makes the server fail
    Hammer(hammer::Blows),
}

/// Runs a drill. Fails if the program or the engine did not pass it.
pub(crate) fn run(root: &Path, drill: Drill) -> Result<()> {
    match drill {
        Drill::Soak(worlds) => soak::run(root, &worlds),
        Drill::Crash(load) => crash::run(root, &load),
        Drill::Siege(siege) => siege::run(root, &siege),
        Drill::Fleet(fleet) => fleet::run(root, &fleet),
        Drill::Hammer(blows) => hammer::run(root, &blows),
    }
}
