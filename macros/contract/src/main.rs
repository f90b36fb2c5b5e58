//! The program `toolwarrant`: the command line of a contract's author. Run it in the folder of the
//! package that has the contract.

use clap::{Args, Parser, Subcommand};
use std::env;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use toolwarrant_common::escape_text;
use toolwarrant_contract::{
    GateAnswer, GateCommand, GateContext, NotCompared, VerifyOptions, execute, expand, today, verify,
};
use toolwarrant_reader::{Mode, generate, load};

/// The work of a contract's author: generated files, the check of changes, new tools, releases.
#[derive(Parser)]
#[command(name = NAME, version)]
struct Arguments {
    #[command(subcommand)]
    command: AuthorCommand,
}

#[derive(Subcommand)]
enum AuthorCommand {
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
    /// Compare contracts, and say whom a change hurts
    Contract(ContractGroup),
}

#[derive(Args)]
struct ContractGroup {
    #[command(subcommand)]
    verb: ContractVerb,
    #[command(flatten)]
    folder: ContractFolder,
}

#[derive(Subcommand)]
enum ContractVerb {
    /// Compare the contract of a running server with a record of it, and say whom a change hurts
    #[command(
        after_long_help = "Exits with 0 if no change is risky or breaking, with 1 if one is, and with 2 if nothing was compared. \
                           It needs no key. With --json it prints one JSON document."
    )]
    Verify(VerifyOptions),
    #[command(flatten)]
    Gate(GateCommand),
}

/// The folder of the contract.
#[derive(Args)]
struct ContractFolder {
    /// Folder of the contract
    #[arg(long, value_name = "DIR", default_value = "spec", global = true)]
    spec: PathBuf,
}

const NAME: &str = "toolwarrant";

/// The exit code if nothing was compared.
const NOT_COMPARED: u8 = 2;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        AuthorCommand::Gen { check, folder } => {
            let mode = if check { Mode::Check } else { Mode::Write };
            folder
                .find()
                .and_then(|path| generate(&path, mode).map_err(|error| error.to_string()))
                .map(|made| (format!("{made}\n"), 0))
        }
        AuthorCommand::Expand { folder } => {
            let contract = folder.find().and_then(|path| load(&path).map_err(|report| report.to_string()));
            contract.map(|contract| (expand(&contract), 0))
        }
        AuthorCommand::Contract(ContractGroup { verb: ContractVerb::Gate(command), folder }) => {
            let folder = folder.spec.canonicalize().unwrap_or(folder.spec);
            let package = env::current_dir().unwrap_or_default();
            let context = GateContext { folder: &folder, package: &package, today: &today() };
            let GateAnswer { text, code } = execute(&command, context);
            Ok((text, code))
        }
        AuthorCommand::Contract(ContractGroup { verb: ContractVerb::Verify(options), .. }) => match run(&options) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) if options.json => Ok((error.json(), NOT_COMPARED)),
            Ok(Err(error)) => return complain(&error.to_string(), NOT_COMPARED),
            Err(error) => Err(format!("cannot start the async runtime: {error}")),
        },
    };
    let written = done.and_then(|(text, code)| match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to standard output: {error}")),
        _ => Ok(code),
    });
    written.map_or_else(|why| complain(&why, 1), ExitCode::from)
}

fn run(options: &VerifyOptions) -> io::Result<Result<(String, u8), NotCompared>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(verify(options)))
}

/// Says why a command failed, and returns its exit code.
fn complain(why: &str, code: u8) -> ExitCode {
    eprintln!("{NAME}: {}", escape_text(why));
    code.into()
}

impl ContractFolder {
    /// Returns the path of the folder, which exists.
    fn find(&self) -> Result<PathBuf, String> {
        let none = |_| format!("there is no folder {}; choose another with --spec", self.spec.display());
        // Messages name the folder, and a path such as `package/../spec` is hard to read.
        self.spec.canonicalize().map_err(none)
    }
}
