//! The commands of a client, and the program that is only a bridge.
//!
//! No flag takes a secret: every user of a machine can see a command line, and shells store it in
//! their history.

use crate::api_key::KeySource;
use crate::bridge::bridge;
use crate::connection::Connection;
use crate::error::{SetupError, complain};
use crate::server_url::ServerUrl;
use clap::builder::{OsStringValueParser, Resettable, TypedValueParser};
use clap::{Args, FromArgMatches, Subcommand};
use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

/// The commands of a client.
#[derive(Clone, Debug, Subcommand)]
pub enum ClientCommand {
    /// Connect a client that cannot set headers: JSON-RPC on standard input and output
    Bridge(ConnectOptions),
    /// Call a tool of a running server, and print its result
    Call(CallOptions),
    /// Print the headers that sign a request under /v1
    Sign(SignOptions),
}

/// The server, and the key for its requests.
#[derive(Clone, Debug, Args)]
pub struct ConnectOptions {
    /// URL of the server's endpoint: https, or http to this machine
    #[arg(long, value_name = "URL", default_value = ServerUrl::USUAL)]
    url: String,

    /// The place of the key.
    #[command(flatten)]
    pub key: KeyOptions,
}

/// The place of the key.
#[derive(Clone, Debug, Args)]
pub struct KeyOptions {
    /// File with the key, readable by its owner only; used instead of the variable with a key
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    key_file: Option<PathBuf>,
}

/// The options of a call.
#[derive(Clone, Debug, Args)]
pub struct CallOptions {
    /// The tool
    pub tool: String,

    /// Its arguments; NAME=@FILE reads the text from a file, NAME=@- from standard input
    #[arg(value_name = "NAME=VALUE")]
    pub arguments: Vec<String>,

    /// Call its route under /v1, with a signed request
    #[arg(long)]
    pub v1: bool,

    /// Wait for the end of the call's task, if it makes one, and print the task
    #[arg(long)]
    pub wait: bool,

    /// The server, and the key.
    #[command(flatten)]
    pub connect: ConnectOptions,
}

/// The options of a signature.
#[derive(Clone, Debug, Args)]
pub struct SignOptions {
    /// The method, such as GET
    pub method: String,

    /// The path and the query as sent, from /v1 on; or the whole URL
    pub target: String,

    /// The value of the header Idempotency-Key, which is signed too
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub idempotency_key: Option<String>,

    /// File with the body, exactly as it is sent; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,

    /// Time of signing in Unix seconds, 10 digits; the current time if left out
    #[arg(long, value_name = "SECONDS")]
    pub timestamp: Option<String>,

    /// Nonce, 16 to 64 of A-Z a-z 0-9 _ -; a random one if left out
    #[arg(long, allow_hyphen_values = true)]
    pub nonce: Option<String>,

    /// Print the canonical request, which is the signed text, on standard error
    #[arg(long)]
    pub show: bool,

    /// The place of the key.
    #[command(flatten)]
    pub key: KeyOptions,
}

#[derive(Clone, Debug)]
pub struct ClientNames {
    pub program: String,
    pub bridge: String,
    pub operator: String,
    pub version: &'static str,
    /// The prefix of environment variables: `PRINT_SHOP_`.
    pub environment: String,
    pub read_permission: Option<String>,
    pub resources: Vec<String>,
}

impl ClientCommand {
    #[must_use]
    pub fn augment(command: clap::Command, names: &ClientNames) -> clap::Command {
        let command = Self::augment_subcommands(command);
        let command = command.mut_subcommand("bridge", |bridge| names.describe_bridge(bridge));
        let command = command.mut_subcommand("call", |call| {
            let environment = names.key_help();
            let ends = "Exits with 0 if the call succeeded and, with --wait, its task did too; with 75 if it was refused and a repeat can \
                        help; with 1 otherwise. It prints a failure on standard error, as `code: message` with its other fields below. With --json it \
                        prints one JSON document on standard output: the result, or the failure.";
            names.with_environment(call.long_about(None)).after_long_help(format!("{ends}\n\n{environment}"))
        });
        command.mut_subcommand("sign", |sign| {
            let curl = format!(
                "curl takes the headers unchanged:\n\n  {} sign GET /v1/tasks/TASK_ID | curl -H @- http://127.0.0.1:8080/v1/tasks/TASK_ID",
                names.program
            );
            names.with_environment(sign.long_about(None)).after_long_help(format!("{curl}\n\n{}", names.key_help()))
        })
    }
}

impl KeyOptions {
    pub fn open(&self, names: &ClientNames) -> Result<KeySource, SetupError> {
        KeySource::open(self.key_file.as_deref(), &names.key_variable())
    }
}

impl ConnectOptions {
    pub fn connection(&self, names: &ClientNames) -> Result<Connection, SetupError> {
        // The message does not repeat a wrong URL, which may contain a password.
        let url = self.url.parse().map_err(|why| SetupError(format!("--url: {why}")))?;
        Connection::new(url, self.key.open(names)?)
    }

    #[must_use]
    pub fn bridge(&self, names: &ClientNames) -> ExitCode {
        match self.run_bridge(names) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&names.program, error);
                ExitCode::FAILURE
            }
        }
    }

    fn run_bridge(&self, names: &ClientNames) -> Result<(), SetupError> {
        let connection = self.connection(names)?;
        let about = format!("passes messages on to {} with the key {}", connection.url(), connection.key_id());
        complain(&names.program, about);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| SetupError(error.to_string()))?;
        let done = bridge(connection, &names.program, BTreeMap::new(), tokio::io::stdin(), tokio::io::stdout());
        let done = runtime.block_on(done);
        // Does not wait for a thread that still reads standard input.
        runtime.shutdown_background();
        done.map_err(|error| SetupError(format!("standard input or output: {error}")))
    }
}

#[must_use]
pub fn bridge_program(names: &ClientNames) -> ExitCode {
    let command = clap::Command::new(names.program.clone()).version(names.version);
    let command = names.describe_bridge(ConnectOptions::augment_args(command).about(BRIDGE));
    let mut described = command.clone();
    match ConnectOptions::from_arg_matches(&ignore_empty_variables(command).get_matches()) {
        Ok(options) => options.bridge(names),
        Err(error) => error.format(&mut described).exit(),
    }
}

/// Ignores empty variables, which are common in compose files.
#[must_use]
pub fn ignore_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &clap::Arg| arg.get_env().and_then(env::var_os).is_some_and(|text| text.is_empty());
    let command = command.mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg });
    command.mut_subcommands(ignore_empty_variables)
}

const BRIDGE: &str = "Connect a client that cannot set headers: JSON-RPC on standard input and output";

impl ClientNames {
    fn key_variable(&self) -> String {
        format!("{}KEY", self.environment)
    }

    fn with_environment(&self, command: clap::Command) -> clap::Command {
        command.mut_args(|arg| match arg.get_long() {
            Some(long @ ("url" | "key-file")) => {
                let name = format!("{}{}", self.environment, long.replace('-', "_").to_uppercase());
                arg.env(name)
            }
            _ => arg,
        })
    }

    fn key_help(&self) -> String {
        let Self { operator, .. } = self;
        format!(
            "The key comes from --key-file or from {}, and never from the command line. Both contain KEY_ID:SECRET, or the \
             output of `{operator} key create APPLICATION --json`.",
            self.key_variable()
        )
    }

    fn describe_bridge(&self, command: clap::Command) -> clap::Command {
        let Self { operator, bridge, read_permission, resources, .. } = self;
        let permission = read_permission.as_deref().unwrap_or("PERMISSION");
        let assign: String =
            resources.iter().map(|resource| format!("  {operator} {resource} assign bridge --all\n")).collect();
        let help = format!(
            "{}\n\nThe key is then stored in plain text with the client's configuration. Use a separate key that only reads: it \
             can do no harm, the audit trail lists its calls separately, and it can be revoked alone. On the server's machine:\n\n  \
             {operator} app create bridge --permission {permission}\n{assign}  \
             (umask 077; {operator} key create bridge --json > bridge.key)\n\n\
             On the client's machine, where only its user may read bridge.key:\n\n  {bridge} --key-file bridge.key --url URL\n\n\
             If the server refuses the key, the bridge reads the file again, without a restart. It reports problems on standard \
             error, and to the client as errors that say what to do. It reaches an https server through the proxy of HTTPS_PROXY, if \
             that is set and NO_PROXY does not exempt the host. It uses no other proxy and follows no redirect.",
            self.key_help()
        );
        self.with_environment(command.long_about(None)).after_long_help(help)
    }
}
