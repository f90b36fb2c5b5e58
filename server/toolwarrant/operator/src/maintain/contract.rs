//! Commands on a contract: the files that are generated from it, the code, and the check of its
//! changes.
//!
//! Under `cargo run` the contract is found in the same place as by the macro; otherwise, relative
//! to the working directory. The contract of another service is refused.

use clap::{Args, Subcommand};
use std::env;
use std::path::{Path, PathBuf};
use toolwarrant_base::clock::Clock;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_gate::{GateAnswer, GateCommand, GateContext};
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{Mode, generate, load};

/// The path of the framework in expanded code.
const RUNTIME: &str = "::toolwarrant::runtime";

/// A command on a contract.
#[derive(Clone, Debug, Subcommand)]
pub enum ContractCommand {
    /// Write the files that are generated from the contract: schemas, descriptions and tables
    Gen {
        /// Do not write; fail if a file would change
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        folder: ContractFolder,
    },
    /// Print the code that is generated from the contract
    Expand {
        #[command(flatten)]
        folder: ContractFolder,
    },
}

/// The folder of the contract.
#[derive(Clone, Debug, Args)]
pub struct ContractFolder {
    /// Folder of the contract; by default, the one in the sources of the package that `cargo run`
    /// runs
    #[arg(long, value_name = "DIR", global = true)]
    spec: Option<PathBuf>,
}

/// Carries out a command and returns the text to print with the exit code.
pub(super) fn execute(catalogue: &Catalogue, command: &ContractCommand) -> Result<(String, u8), String> {
    let text = match command {
        ContractCommand::Gen { check, folder } => {
            let mode = if *check { Mode::Check } else { Mode::Write };
            let (path, _) = folder.contract(catalogue)?;
            let generated = generate(&path, mode).map_err(|error| error.to_string())?;
            format!("{generated}\n")
        }
        ContractCommand::Expand { folder } => {
            let (_, contract) = folder.contract(catalogue)?;
            toolwarrant_codegen::expand(&contract, RUNTIME)
        }
    };
    Ok((text, 0))
}

impl ContractFolder {
    /// Carries out a command on the changes of the contract. Returns the text to print with the
    /// exit code.
    pub(crate) fn execute(&self, catalogue: &Catalogue, command: &GateCommand) -> (String, u8) {
        let (path, today) = (self.path(catalogue), Clock::system().wall().to_string());
        // A contract with mistakes was not compared, which has an exit code of its own.
        if load(&path).is_ok()
            && let Err(why) = self.contract(catalogue)
        {
            return (why + "\n", 1);
        }
        let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| path.join(".."), PathBuf::from);
        let context = GateContext { folder: &path, package: &package, today: today.get(..10).unwrap_or(&today) };
        let GateAnswer { text, code } = toolwarrant_gate::execute(command, context);
        (text, code)
    }

    /// Returns the folder and the contract in it, which must be this program's.
    fn contract(&self, catalogue: &Catalogue) -> Result<(PathBuf, Contract), String> {
        let path = self.path(catalogue);
        if !path.is_dir() {
            return Err(format!("there is no folder {}; choose another with --spec", path.display()));
        }
        let contract = load(&path).map_err(|report| report.to_string())?;
        let (found, own) = (&contract.service.name, catalogue.service.name);
        if found != own {
            let path = path.display();
            return Err(format!(
                "{path} has the contract of `{found}`, and this program is `{own}`; choose another folder with --spec"
            ));
        }
        Ok((path, contract))
    }

    fn path(&self, catalogue: &Catalogue) -> PathBuf {
        let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
        let built_from = || package.join(catalogue.source);
        let path = self.spec.clone().unwrap_or_else(built_from);
        // Messages name the folder, and a path such as `package/../spec` is hard to read.
        path.canonicalize().unwrap_or_else(|_| Path::new(&path).to_owned())
    }
}
