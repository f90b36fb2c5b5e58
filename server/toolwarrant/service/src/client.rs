//! Carries out the commands of a client: passes the tools of the contract to them, and prints their
//! results.

use anyhow::{Context, Result};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use toolwarrant_client::{Called, ClientCommand, ClientError, ClientNames, ToolShape, call, sign};
use toolwarrant_core::catalogue::{Catalogue, HttpDef, ToolDef};
use toolwarrant_operator::render;

/// The exit code of a refused call that may succeed later: `EX_TEMPFAIL` of sysexits.h.
const TRY_AGAIN: u8 = 75;

/// Carries out one command.
pub(crate) fn run(command: &ClientCommand, names: &ClientNames, catalogue: &'static Catalogue) -> Result<ExitCode> {
    match command {
        ClientCommand::Bridge(options) => Ok(options.bridge(names)),
        ClientCommand::Call(options) => {
            let connection = options.connect.connection(names)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("cannot start the async runtime")?;
            let tools: Vec<_> = catalogue.tools.iter().map(shape).collect();
            match runtime.block_on(call(&connection, &tools, options)) {
                Ok(Called { result, succeeded }) => {
                    let is_terminal = std::io::stdout().is_terminal();
                    print(&if is_terminal { render::json(&result) } else { format!("{result}\n") });
                    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
                }
                Err(error) => {
                    tell(&error.to_string());
                    let ClientError { retryable, .. } = error;
                    Ok(if retryable { TRY_AGAIN.into() } else { ExitCode::FAILURE })
                }
            }
        }
        ClientCommand::Sign(options) => {
            let signed = sign(options, &options.key.open(names)?.latest())?;
            if options.show {
                tell(&signed.canonical);
            }
            print(&signed.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn shape(tool: &ToolDef) -> ToolShape {
    let route = tool.http.as_ref().map(|HttpDef { method, path }| (*method, *path));
    ToolShape { name: tool.name, input_schema: tool.input_schema, route, reads: tool.hints.read_only }
}

/// Prints `text`. A closed standard output is no error.
fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a message for people. A closed standard error is no error.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", render::plain(text));
}
