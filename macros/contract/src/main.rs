//! The program `toolwarrant`: the command line of a contract's author.

use clap::{Parser, Subcommand};
use std::env;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use toolwarrant_common::{escape_line, escape_text};
use toolwarrant_contract::{GateAnswer, GateCommand, GateContext, VerifyOptions, execute, expand, today, verify};
use toolwarrant_reader::{Mode, generate, load};

/// The work of a contract's author: generated files, the check of changes, new tools, releases.
#[derive(Parser)]
#[command(name = NAME, version)]
struct Arguments {
    /// Folder of the contract
    #[arg(long, value_name = "DIR", default_value = "spec", global = true)]
    spec: PathBuf,
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
    },
    /// Print the code that is generated from the contract
    Expand,
    /// Compare contracts, and say whom a change hurts
    #[command(subcommand)]
    Contract(ContractCommand),
}

#[derive(Subcommand)]
enum ContractCommand {
    /// Compare the contract of a running server with a record of it, and say whom a change hurts
    #[command(
        after_long_help = "Exits with 0 if no change is risky or breaking, with 1 if one is, and with 2 if nothing was compared. \
                           It needs no key. With --json it prints one JSON document."
    )]
    Verify(VerifyOptions),
    #[command(flatten)]
    Gate(GateCommand),
}

const NAME: &str = "toolwarrant";

const NOT_COMPARED: u8 = 2;

fn main() -> ExitCode {
    let Arguments { spec, command } = Arguments::parse();
    // Messages name the folder, and a path such as `package/../spec` is hard to read.
    let folder = spec.canonicalize().map_err(|_| {
        format!("there is no folder {}; choose another with --spec", escape_line(&spec.to_string_lossy()))
    });
    let done = match command {
        AuthorCommand::Gen { check } => {
            let mode = if check { Mode::Check } else { Mode::Write };
            let made = folder.and_then(|folder| generate(&folder, mode).map_err(|error| error.to_string()));
            made.map(|made| (format!("{made}\n"), 0))
        }
        AuthorCommand::Expand => {
            let contract = folder.and_then(|folder| load(&folder).map_err(|report| report.to_string()));
            contract.map(|contract| (expand(&contract), 0))
        }
        AuthorCommand::Contract(ContractCommand::Gate(command)) => {
            let (folder, package) = (folder.unwrap_or(spec), env::current_dir().unwrap_or_default());
            let context = GateContext { folder: &folder, package: &package, today: &today() };
            let GateAnswer { text, code } = execute(&command, context);
            Ok((text, code))
        }
        AuthorCommand::Contract(ContractCommand::Verify(options)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime.map(|runtime| runtime.block_on(verify(&options))) {
                Ok(Ok(done)) => Ok(done),
                Ok(Err(error)) if options.json => Ok((error.json(), NOT_COMPARED)),
                Ok(Err(error)) => return complain(&error.to_string(), NOT_COMPARED),
                Err(error) => Err(format!("cannot start the async runtime: {error}")),
            }
        }
    };
    let written = done.and_then(|(text, code)| match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write to standard output: {error}")),
        _ => Ok(code),
    });
    written.map_or_else(|why| complain(&why, 1), ExitCode::from)
}

fn complain(why: &str, code: u8) -> ExitCode {
    eprintln!("{NAME}: {}", escape_text(why));
    code.into()
}
