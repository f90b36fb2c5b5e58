//! Commands for the maintainer of a service. They work on the sources, so they do not need a data
//! folder or a server.
//!
//! The commands on a contract are part of a program only with the feature `maintain`: they need the
//! code generator, which a deployed server does not contain.

#[cfg(feature = "maintain")]
pub(crate) mod contract;

use clap::Subcommand;
use toolwarrant_core::catalogue::Catalogue;

/// A command of a maintainer.
#[derive(Clone, Debug, Subcommand)]
pub enum MaintainerCommand {
    /// A command on the contract.
    #[cfg(feature = "maintain")]
    #[command(flatten)]
    Contract(contract::ContractCommand),
    /// Print all flags with their variables, defaults and help, in Markdown
    Flags,
}

/// Carries out a command and returns the text to print with the exit code. `flags` makes the
/// reference of the service's flags.
///
/// # Errors
/// The mistakes of the contract, the stale files, or the file that cannot be written.
#[cfg_attr(
    not(feature = "maintain"),
    expect(unused_variables, reason = "only commands on a contract need the catalogue")
)]
pub fn maintain(
    catalogue: &Catalogue,
    command: &MaintainerCommand,
    flags: impl FnOnce() -> String,
) -> Result<(String, u8), String> {
    match command {
        #[cfg(feature = "maintain")]
        MaintainerCommand::Contract(command) => contract::execute(catalogue, command),
        MaintainerCommand::Flags => Ok((flags(), 0)),
    }
}
