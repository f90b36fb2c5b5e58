//! Commands of whoever maintains a service. They work on the sources, so no data folder and no server is asked.
//!
//! Those on a contract are part of a program with the feature `maintain` alone: they need the code generator, which no server that is
//! deployed does.

#[cfg(feature = "maintain")]
mod contract;

use clap::Subcommand;
use toolwarrant_core::catalogue::Catalogue;

/// What a maintainer can ask.
#[derive(Clone, Debug, Subcommand)]
pub enum MaintainerCommand {
    /// A command on the contract.
    #[cfg(feature = "maintain")]
    #[command(flatten)]
    Contract(contract::ContractCommand),
    /// Print all flags with their variables, defaults and help, in Markdown
    Flags,
}

/// Carries a command out; answers with what to print. `flags` makes the reference of the service's flags.
///
/// # Errors
/// The mistakes of the contract, the files that are stale, or what cannot be written.
#[cfg_attr(
    not(feature = "maintain"),
    expect(unused_variables, reason = "only commands on a contract need the catalogue")
)]
pub fn maintain(
    catalogue: &Catalogue,
    command: &MaintainerCommand,
    flags: impl FnOnce() -> String,
) -> Result<String, String> {
    match command {
        #[cfg(feature = "maintain")]
        MaintainerCommand::Contract(command) => contract::execute(catalogue, command),
        MaintainerCommand::Flags => Ok(flags()),
    }
}
