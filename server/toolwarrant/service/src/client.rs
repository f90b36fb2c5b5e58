//! Carries out the commands of a client, and prints their results.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use toolwarrant_client::{Called, ClientCommand, ClientNames, ToolShape, call, sign};
use toolwarrant_core::catalogue::{Catalogue, HttpDef, ToolDef};
use toolwarrant_operator::render;

/// `EX_TEMPFAIL` of sysexits.h: a refused call may succeed later.
const TRY_AGAIN: u8 = 75;

/// Prints a failed call as JSON too, with `json`.
pub(crate) fn run(
    command: &ClientCommand,
    json: bool,
    names: &ClientNames,
    catalogue: &'static Catalogue,
) -> Result<ExitCode> {
    match command {
        ClientCommand::Bridge(options) => Ok(options.bridge(names)),
        ClientCommand::Call(options) => {
            let connection = match options.connect.connection(names) {
                Err(error) if json => {
                    print_json(&json!({"code": "setup", "message": error.to_string(), "retryable": false}));
                    return Ok(ExitCode::FAILURE);
                }
                connection => connection?,
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("cannot start the async runtime")?;
            let tools: Vec<_> = catalogue.tools.iter().map(shape).collect();
            match runtime.block_on(call(&connection, &tools, options)) {
                Ok(Called { result, succeeded }) => {
                    print_json(&result);
                    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
                }
                Err(error) => {
                    let fields = error.json();
                    if json {
                        print_json(&fields);
                    } else {
                        let fields = fields.as_object().into_iter().flatten();
                        let other = fields.filter(|(name, _)| !["code", "message"].contains(&name.as_str()));
                        let other = other.map(|(name, value)| format!("\n  {name}: {value}"));
                        tell(&format!("{error}{}", other.collect::<String>()));
                    }
                    Ok(if error.retryable { TRY_AGAIN.into() } else { ExitCode::FAILURE })
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
    let body = tool.body.map(|body| body.field);
    ToolShape { name: tool.name, input_schema: tool.input_schema, route, reads: tool.hints.read_only, body }
}

fn print_json(value: &Value) {
    let is_terminal = std::io::stdout().is_terminal();
    print(&if is_terminal { render::json(value) } else { format!("{value}\n") });
}

/// Ignores a closed standard output.
fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Ignores a closed standard error.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", render::plain(text));
}
