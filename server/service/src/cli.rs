//! The command line. Every flag is also an environment variable, `CLOUDPHONE_` and its name.

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use cloudphone::admin::{Command, Fleet};
use cloudphone::app::Config;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use std::net::SocketAddr;
use std::path::PathBuf;
use tracing_subscriber::filter::LevelFilter;

/// Serves cloud phones to AI agents over the Model Context Protocol.
///
/// Without a command it serves 24 simulated phones on http://127.0.0.1:8080/mcp; its first start prints two keys to try it with.
/// The other commands are for the operator, and work whether a server runs or not.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Top>,

    #[command(flatten)]
    serve: Serve,

    /// Folder for what outlives the program: tasks, applications, keys, the audit trail
    #[arg(long, global = true, env = "CLOUDPHONE_DATA", value_name = "DIR", default_value = "data", value_parser = folder)]
    data: PathBuf,

    /// Answer with JSON, for programs
    #[arg(long, global = true, env = "CLOUDPHONE_JSON")]
    json: bool,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
enum Top {
    /// Serve; this is what happens without a command
    Serve(Serve),
    #[command(flatten)]
    Operate(Command),
}

/// How to serve.
#[derive(Clone, Debug, Args)]
struct Serve {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "CLOUDPHONE_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080",
          value_parser = address)]
    listen: SocketAddr,

    /// Address for /healthz, /readyz and /metrics, which ask for no key: keep it off public networks. Without it there are none
    #[arg(long, env = "CLOUDPHONE_ADMIN_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    admin_listen: Option<SocketAddr>,

    /// URL at which clients reach this server, where that is not the address it listens on
    #[arg(long, env = "CLOUDPHONE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,

    /// Host name that requests may be addressed to, beside the public URL's; may be repeated
    #[arg(long, env = "CLOUDPHONE_ALLOW_HOST", value_name = "HOST", value_delimiter = ',')]
    allow_host: Vec<String>,

    /// Origin of web pages that may call this server, such as https://example.com; may be repeated
    #[arg(long, env = "CLOUDPHONE_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// Whether phones may be told to use a proxy in a private network; simulated phones have none to protect
    #[arg(long, env = "CLOUDPHONE_ALLOW_PRIVATE_PROXY", value_name = "BOOL", default_value_t = true,
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_private_proxy: bool,

    /// Number of simulated phones
    #[arg(long, env = "CLOUDPHONE_SIM_DEVICES", value_name = "N", default_value = "24",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    sim_devices: u32,

    /// Seed of the simulated phones: the same seed gives the same fleet
    #[arg(long, env = "CLOUDPHONE_SIM_SEED", value_name = "N", default_value = "1")]
    sim_seed: u64,

    #[command(flatten)]
    log: Log,
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Log {
    /// What to log, on standard error: off, error, warn, info, debug or trace, each with those before it
    #[arg(long = "log", env = "CLOUDPHONE_LOG", value_name = "LEVEL", default_value_t = Log::default().level)]
    pub(crate) level: LevelFilter,

    /// Lines for people, or a JSON object a line
    #[arg(long = "log-format", env = "CLOUDPHONE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LevelFilter::INFO, format: LogFormat::Text }
    }
}

/// What the command line comes to.
#[derive(Debug)]
pub(crate) enum Task {
    /// Serve.
    Serve {
        /// How.
        config: Config,
        /// And with what log.
        log: Log,
    },
    /// Carry out one command of an operator.
    Operate {
        /// The data folder.
        data: PathBuf,
        /// The simulated phones, where no server runs that has them.
        fleet: Fleet,
        /// The command.
        command: Command,
        /// Whether the answer is for a program.
        json: bool,
    },
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, as in 127.0.0.1:8080")
}

/// It need not be there yet.
fn folder(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Err("it is a file; a folder is expected") } else { Ok(path) }
}

impl From<Arguments> for Task {
    fn from(Arguments { command, serve, data, json }: Arguments) -> Self {
        let fleet = Fleet { devices: serve.sim_devices, seed: serve.sim_seed };
        match command {
            Some(Top::Operate(command)) => Self::Operate { data, fleet, command, json },
            Some(Top::Serve(serve)) => Self::Serve { log: serve.log, config: config(serve, data) },
            None => Self::Serve { log: serve.log, config: config(serve, data) },
        }
    }
}

fn config(serve: Serve, data: PathBuf) -> Config {
    let Serve {
        listen,
        admin_listen,
        public_url,
        allow_host,
        allow_origin,
        allow_private_proxy,
        sim_devices,
        sim_seed,
        log: _,
    } = serve;
    // A variable that is set to nothing, as compose files like to have it, says nothing.
    let said = |text: &String| !text.is_empty();
    Config {
        listen,
        admin_listen,
        public_url: public_url.filter(said),
        allow_hosts: allow_host.into_iter().filter(said).collect(),
        allow_origins: allow_origin.into_iter().filter(said).collect(),
        proxy_hosts: if allow_private_proxy { ProxyHosts::PublicAndPrivate } else { ProxyHosts::Public },
        data,
        sim_devices,
        sim_seed,
    }
}
