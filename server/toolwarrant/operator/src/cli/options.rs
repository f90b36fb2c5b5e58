//! The flags of a server, and those of every command.

use crate::flags;
use crate::keeping::AuditOptions;
use crate::place::{StoreOptions, file};
use crate::socket::OperatorGroups;
use clap::{ArgGroup, Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use toolwarrant_core::act::{CLAIM_MAX, Claims};
use toolwarrant_core::toolsets::{StdioApplication, Toolsets};
use tracing::level_filters::LevelFilter;

/// The addresses of a server, and the host names and origins that may use it.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Address to listen on; with port 0, the system chooses a free port
    #[arg(long = flags::LISTEN, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,

    /// Address for /healthz, /readyz and /metrics, which need no key: keep it off public networks.
    /// Off by default
    #[arg(long = flags::ADMIN_LISTEN, value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,

    /// Address at which the console stays open, beyond this machine with --tls-cert and
    /// --public-url alone; by default, it opens a port of this machine for its first link
    #[arg(long = flags::CONSOLE_LISTEN, value_name = "ADDRESS:PORT", value_parser = address)]
    pub console_listen: Option<SocketAddr>,

    /// URL at which clients reach this server, if that is not the address it listens on
    #[arg(long = flags::PUBLIC_URL, value_name = "URL")]
    pub public_url: Option<String>,

    /// Host name that requests may be addressed to, in addition to the public URL's; may be
    /// repeated
    #[arg(long = flags::ALLOW_HOST, value_name = "HOST", value_delimiter = ',')]
    pub allow_hosts: Vec<String>,

    /// Origin of web pages that may call this server, such as https://example.com; may be repeated
    #[arg(long = flags::ALLOW_ORIGIN, value_name = "ORIGIN", value_delimiter = ',')]
    pub allow_origins: Vec<String>,

    /// Create demo applications at the first start and print their keys, even if standard output is
    /// not a terminal
    #[arg(long = flags::DEMO)]
    pub demo: bool,

    /// Allow core dumps of this server, which contain its secrets, and allow debuggers to attach to
    /// it
    #[arg(long)]
    pub allow_core_dumps: bool,

    /// True to print one line of JSON at the start, instead of the text for people.
    #[arg(skip)]
    pub json: bool,

    /// TLS, proxies and the number of connections.
    #[command(flatten)]
    pub edge: EdgeOptions,

    /// Retention of the audit trail.
    #[command(flatten)]
    pub audit: AuditOptions,

    /// The groups of operators.
    #[command(flatten)]
    pub groups: OperatorGroups,

    /// The toolsets of every application.
    #[arg(skip)]
    pub toolsets: Toolsets,

    /// The application that standard input belongs to, if this process is a bridge too.
    #[arg(skip)]
    pub stdio: Option<StdioApplication>,
}

/// TLS, proxies and the number of connections.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("both-tls").args(["tls_cert", "tls_key"]).multiple(true))]
pub struct EdgeOptions {
    /// Certificate of this server in PEM format, followed by its intermediates: the server then
    /// accepts only TLS. Read again when the file changes
    #[arg(long = flags::TLS_CERT, value_name = "FILE", value_parser = file)]
    pub tls_cert: Option<PathBuf>,

    /// Key of the certificate, in PEM format
    #[arg(long = flags::TLS_KEY, value_name = "FILE", value_parser = file)]
    pub tls_key: Option<PathBuf>,

    /// Reverse proxy that names the client of every request in Forwarded or X-Forwarded-For; may be
    /// repeated. The server ignores these headers from other addresses
    #[arg(long = flags::TRUST_PROXY, value_name = "ADDRESS[/BITS]", value_delimiter = ',')]
    pub trust_proxies: Vec<String>,

    /// Maximum number of open connections; lower if the system allows fewer open files
    #[arg(long = flags::MAX_CONNECTIONS, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,

    /// Maximum number of open connections per address; behind a trusted proxy, of requests in
    /// flight per client
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections_per_address: u32,
}

/// Level and format of the log.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogOptions {
    /// Level of the log, on standard error: off, error, warn, info, debug or trace; each includes
    /// those before it
    #[arg(long = "log", value_name = "LEVEL", default_value_t = LogOptions::default().level)]
    pub level: LevelFilter,

    /// Format of the log: text for people, or one JSON object per line
    #[arg(long = "log-format", value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { level: LevelFilter::INFO, format: LogFormat::Text }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

pub(super) const DATA_DEFAULT: &str = "data";

/// The flags of every command.
#[derive(Debug, Args)]
pub(super) struct CommonFlags {
    /// Folder for stored data: tasks, applications, keys, the audit trail. If it is not set, and
    /// there is none here, commands use that of stdio in the home folder, or else that of the
    /// installed service, in /var/lib
    #[arg(long = flags::DATA, global = true, value_name = "DIR", default_value = DATA_DEFAULT, value_parser = folder)]
    pub(super) data: PathBuf,

    /// The place of the data.
    #[command(flatten)]
    pub(super) store: StoreOptions,

    /// Configuration file in TOML with a key for each flag of the server; read at the start, not at
    /// SIGHUP
    #[arg(long = flags::CONFIG, global = true, value_name = "FILE", value_parser = file)]
    pub(super) config: Option<PathBuf>,

    /// Answer with JSON, for programs; a server prints one line when it listens: its URLs, and the
    /// keys that it created
    #[arg(long = flags::JSON, global = true)]
    pub(super) json: bool,

    /// Folder of the sockets for groups of operators; by default RUNTIME_DIRECTORY, and for
    /// commands /run and the name of the program
    #[arg(long = flags::OPERATOR_SOCKETS, global = true, value_name = "DIR", value_parser = folder)]
    pub(super) operator_sockets: Option<PathBuf>,

    /// Socket of the server that carries the command out, instead of the first that can be opened
    #[arg(long = flags::SOCKET, global = true, value_name = "FILE", value_parser = file)]
    pub(super) socket: Option<PathBuf>,

    /// Name to record with a change, next to the user's
    #[arg(long = flags::AS, global = true, value_name = "NAME", value_parser = claim)]
    pub(super) claimed_name: Option<String>,

    /// Reason to record with a change
    #[arg(long = flags::REASON, global = true, value_name = "TEXT", value_parser = claim)]
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug)]
pub struct WayToServer {
    /// The only socket to use.
    pub socket: Option<PathBuf>,
    /// The folder of the sockets for groups.
    pub groups: PathBuf,
    /// True if the command line names the data folder. Then no socket of a group is used, and the
    /// command may make the folder.
    pub data_given: bool,
    pub claims: Claims,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, as in 127.0.0.1:8080")
}

/// Parses a claim. The server would cut a longer one.
fn claim(text: &str) -> Result<String, String> {
    match text.chars().nth(CLAIM_MAX) {
        None => Ok(text.to_owned()),
        Some(_) => Err(format!("expected at most {CLAIM_MAX} characters")),
    }
}

fn folder(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Err("it is a file; a folder is expected") } else { Ok(path) }
}
