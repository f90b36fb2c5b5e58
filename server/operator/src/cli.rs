//! The command line of a service: the flags of its server, and the commands of its operator.
//!
//! The command line follows the names and the catalogue of the service. It has a command for each resource, knows the permissions,
//! and reads each flag from an environment variable of the same name as well. A service adds its own flags with a [`Flags`] type.

mod reference;

use crate::command::{OperatorCommand, TargetCommand};
use crate::flags;
use crate::keeping::AuditOptions;
use crate::maintain::MaintainerCommand;
use crate::names::Names;
use crate::own::OwnCommand;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use toolwarrant_client::{ClientCommand, ClientNames};
use toolwarrant_core::catalogue::{Catalogue, PermissionDef, ToolDef};
use tracing::level_filters::LevelFilter;

/// The flags that a service adds: any type that derives `clap::Args`.
pub trait Flags: Args + Clone + Send + 'static {}

impl<T: Args + Clone + Send + 'static> Flags for T {}

/// The flags of a service that adds none.
#[derive(Clone, Debug, Args)]
pub struct NoFlags {}

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation<F> {
    /// Run the server.
    Serve {
        /// Addresses, and who may use them.
        serve: ServeOptions,
        /// The service's own flags.
        flags: F,
        /// The data folder.
        data: PathBuf,
        /// Level and format of the log.
        log: LogOptions,
    },
    /// Carry out one operator command.
    Operate {
        /// The command.
        command: OperatorCommand,
        /// What to ask before it is carried out.
        question: Option<String>,
        /// The service's own flags.
        flags: F,
        /// The data folder.
        data: PathBuf,
        /// Whether to print JSON instead of text.
        json: bool,
    },
    /// Carry out one command of a client.
    Connect(ClientCommand),
    /// Carry out one command of a maintainer.
    Maintain(MaintainerCommand),
}

/// The addresses of a server, and the host names and origins that may use it.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Address to listen on; port 0 takes a free one
    #[arg(long = flags::LISTEN, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,

    /// Address for /healthz, /readyz and /metrics, which ask for no key: keep it off public networks. Without it there are none
    #[arg(long = flags::ADMIN_LISTEN, value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,

    /// URL at which clients reach this server, where that is not the address it listens on
    #[arg(long = flags::PUBLIC_URL, value_name = "URL")]
    pub public_url: Option<String>,

    /// Host name that requests may be addressed to, beside the public URL's; may be repeated
    #[arg(long = flags::ALLOW_HOST, value_name = "HOST", value_delimiter = ',')]
    pub allow_hosts: Vec<String>,

    /// Origin of web pages that may call this server, such as https://example.com; may be repeated
    #[arg(long = flags::ALLOW_ORIGIN, value_name = "ORIGIN", value_delimiter = ',')]
    pub allow_origins: Vec<String>,

    /// Make demo applications at the first start and print their keys, also where standard output is no terminal
    #[arg(long = flags::DEMO)]
    pub demo: bool,

    /// Let the system dump the memory of this server, with the secrets in it, and debuggers attach to it
    #[arg(long = flags::ALLOW_CORE_DUMPS)]
    pub allow_core_dumps: bool,

    /// TLS, proxies and the number of connections.
    #[command(flatten)]
    pub edge: EdgeOptions,

    /// How much of the audit trail is kept.
    #[command(flatten)]
    pub audit: AuditOptions,
}

/// TLS, proxies and the number of connections.
#[derive(Clone, Debug, Args)]
pub struct EdgeOptions {
    /// Certificate of this server in PEM format, with those up to a root: it then speaks TLS alone. Read again when it changes
    #[arg(long = flags::TLS_CERT, value_name = "FILE", value_parser = file)]
    pub tls_cert: Option<PathBuf>,

    /// Key of the certificate, in PEM format
    #[arg(long = flags::TLS_KEY, value_name = "FILE", value_parser = file)]
    pub tls_key: Option<PathBuf>,

    /// Reverse proxy that says in Forwarded or X-Forwarded-For who asks, on every request; may be repeated. Nobody else is believed
    #[arg(long = flags::TRUST_PROXY, value_name = "ADDRESS[/BITS]", value_delimiter = ',')]
    pub trust_proxies: Vec<String>,

    /// Open connections in all; fewer where the system allows fewer open files
    #[arg(long = flags::MAX_CONNECTIONS, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,

    /// Open connections of one address; behind a trusted proxy, requests in flight of one client
    #[arg(
        long = flags::MAX_CONNECTIONS_PER_ADDRESS,
        value_name = "N",
        default_value = "256",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_connections_per_address: u32,
}

/// Level and format of the log.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogOptions {
    /// What to log, on standard error: off, error, warn, info, debug or trace, each with those before it
    #[arg(long = "log", value_name = "LEVEL", default_value_t = LogOptions::default().level)]
    pub level: LevelFilter,

    /// Lines for people, or a JSON object a line
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
#[expect(missing_docs, reason = "the documentation would repeat the help of the flag")]
pub enum LogFormat {
    Text,
    Json,
}

/// The flags of every command.
#[derive(Debug, Args)]
struct CommonFlags {
    /// Folder for what outlives the program: tasks, applications, keys, the audit trail
    #[arg(long = flags::DATA, global = true, value_name = "DIR", default_value = "data", value_parser = folder)]
    data: PathBuf,

    /// Answer with JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, as in 127.0.0.1:8080")
}

/// An empty one is filtered out later.
fn file(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

/// The folder need not exist yet.
fn folder(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Err("it is a file; a folder is expected") } else { Ok(path) }
}

/// The command line of one service.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a> {
    /// The names of the service.
    pub names: &'a Names,
    /// Its contract.
    pub catalogue: &'static Catalogue,
    /// One sentence about the service.
    pub about: &'static str,
    /// What the program does without a command, in sentences.
    pub usage: &'static str,
}

impl CommandLine<'_> {
    /// Reads the command line of this process. If it is wrong or asks for help, the process ends with a message.
    #[must_use]
    pub fn parse<F: Flags, C: OwnCommand>(&self) -> Invocation<F> {
        let mut command = self.command::<F, C>();
        let matches = command.get_matches_mut();
        self.invocation::<F, C>(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    /// The reference of all flags with their variables, defaults and help, in Markdown.
    #[must_use]
    pub fn reference<F: Flags, C: OwnCommand>(&self) -> String {
        reference::page(&self.command::<F, C>())
    }

    /// The names that the commands of a client go by.
    #[must_use]
    pub fn client_names(&self) -> ClientNames {
        let Names { program, version, environment, .. } = self.names;
        let reads = |permission: &&PermissionDef| {
            let granted = |tool: &&ToolDef| permission.grants.covers(tool.permission.bit);
            self.catalogue.tools.iter().filter(granted).all(|tool| tool.hints.read_only)
        };
        let read_permission = self.catalogue.permissions.iter().find(reads);
        ClientNames {
            program: (*program).to_owned(),
            bridge: format!("{program} bridge"),
            operator: (*program).to_owned(),
            version,
            environment: environment.clone(),
            read_permission: read_permission.map(|permission| permission.name.to_owned()),
            resources: resources(self.catalogue).into_iter().map(str::to_owned).collect(),
        }
    }

    fn command<F: Flags, C: OwnCommand>(&self) -> clap::Command {
        let (name, about) = (self.names.program, self.about);
        let with_flags = |command| LogOptions::augment_args(F::augment_args(ServeOptions::augment_args(command)));
        // Each type sets its documentation as the help of the command, so the help texts for operators are set last.
        let command = self.with_environment(CommonFlags::augment_args(with_flags(clap::Command::new(name))));
        let serve = self.with_environment(with_flags(clap::Command::new("serve")));
        let serve = serve.about("Serve; this is what happens without a command").long_about(None);
        let command = OperatorCommand::augment_subcommands(command.subcommand(serve));
        let command = MaintainerCommand::augment_subcommands(self.with_client(command));
        let command = command.version(self.names.version);
        let command = command.about(about).long_about(format!("{about}\n\n{}", self.usage));
        // The commands for resources come after those for applications and keys, and those of the service after them.
        let first = ["serve", "app", "key"];
        let names: Vec<_> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        let command = names.iter().enumerate().fold(command, |command, (n, name)| {
            let order = first.iter().position(|known| known == name).unwrap_or(first.len() + 2 + n);
            command.mut_subcommand(name, |known| known.display_order(order))
        });
        let words = HelpWords::of_all(self);
        let command = resources(self.catalogue).into_iter().fold(words.fill(command), |command, resource| {
            let named = TargetCommand::augment_subcommands(clap::Command::new(resource)).long_about(None);
            let named =
                named.about("List {targets}, and decide which application sees them").display_order(first.len());
            let named = named.subcommand_required(true).arg_required_else_help(true);
            command.subcommand(HelpWords { target: resource.to_owned(), ..words.clone() }.fill(named))
        });
        let own = C::augment_subcommands(clap::Command::new(name));
        command.subcommands(own.get_subcommands().map(|own| own.clone().display_order(first.len() + 1)))
    }

    /// Adds the commands of a client. They ask no data folder, so they do not show the flags of every command.
    fn with_client(&self, command: clap::Command) -> clap::Command {
        let common: Vec<_> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
        let hidden: Vec<_> = common.into_iter().map(|arg| arg.hide(true)).collect();
        let command = ClientCommand::augment(command, &self.client_names());
        let names: Vec<_> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        names
            .iter()
            .filter(|name| ClientCommand::has_subcommand(name))
            .fold(command, |command, name| command.mut_subcommand(name, |client| client.args(&hidden)))
    }

    /// Gives each flag its environment variable.
    fn with_environment(&self, command: clap::Command) -> clap::Command {
        command.mut_args(|arg| match arg.get_long() {
            Some(long) => {
                let name = format!("{}{}", self.names.environment, long.replace('-', "_").to_uppercase());
                arg.env(name)
            }
            None => arg,
        })
    }

    fn invocation<F: Flags, C: OwnCommand>(&self, matches: &ArgMatches) -> Result<Invocation<F>, clap::Error> {
        let CommonFlags { data, json } = CommonFlags::from_arg_matches(matches)?;
        let serving = |matches: &ArgMatches| {
            let mut serve = ServeOptions::from_arg_matches(matches)?;
            // An empty environment variable, which is common in compose files, counts as not set.
            let is_set = |text: &String| !text.is_empty();
            serve.public_url = serve.public_url.filter(is_set);
            serve.allow_hosts.retain(is_set);
            serve.allow_origins.retain(is_set);
            let EdgeOptions { tls_cert, tls_key, trust_proxies, .. } = &mut serve.edge;
            trust_proxies.retain(is_set);
            for file in [tls_cert, tls_key] {
                *file = file.take().filter(|file| !file.as_os_str().is_empty());
            }
            let (flags, log) = (F::from_arg_matches(matches)?, LogOptions::from_arg_matches(matches)?);
            Ok::<_, clap::Error>(Invocation::Serve { serve, flags, data: data.clone(), log })
        };
        let mut question = None;
        let command = match matches.subcommand() {
            None => return serving(matches),
            Some(("serve", matches)) => return serving(matches),
            Some((name, inner)) if resources(self.catalogue).contains(&name) => {
                OperatorCommand::Target { resource: name.to_owned(), command: TargetCommand::from_arg_matches(inner)? }
            }
            Some((name, _)) if ClientCommand::has_subcommand(name) => {
                return Ok(Invocation::Connect(ClientCommand::from_arg_matches(matches)?));
            }
            Some((name, _)) if MaintainerCommand::has_subcommand(name) => {
                return Ok(Invocation::Maintain(MaintainerCommand::from_arg_matches(matches)?));
            }
            Some((name, _)) if C::has_subcommand(name) => {
                let own = C::from_arg_matches(matches)?;
                question = own.question();
                let unwritten = |error| clap::Error::raw(clap::error::ErrorKind::Io, error);
                let command = serde_json::to_value(&own).map_err(unwritten)?;
                OperatorCommand::Own { command, patience: own.patience() }
            }
            Some(_) => OperatorCommand::from_arg_matches(matches)?,
        };
        Ok(Invocation::Operate { command, question, flags: F::from_arg_matches(matches)?, data, json })
    }
}

/// The names of the resources of a contract.
pub(crate) fn resources(catalogue: &Catalogue) -> Vec<&'static str> {
    catalogue.resources.iter().map(|resource| resource.name).collect()
}

/// The words that replace `{...}` in help texts.
#[derive(Clone)]
struct HelpWords {
    /// The noun for what tools act on, in the singular.
    target: String,
    permissions: String,
}

impl HelpWords {
    /// The words for commands that are about every resource.
    fn of_all(CommandLine { catalogue, .. }: &CommandLine<'_>) -> Self {
        let target = match resources(catalogue)[..] {
            [one] => one,
            _ => "target",
        };
        let permissions: Vec<_> = catalogue.permissions.iter().map(|permission| permission.name).collect();
        Self { target: target.to_owned(), permissions: permissions.join(", ") }
    }

    fn text(&self, text: &str) -> String {
        let target = &self.target;
        let text = text.replace("{targets}", &format!("{target}s")).replace("{target}", target);
        text.replace("{TARGET}", &target.to_uppercase()).replace("{permissions}", &self.permissions)
    }

    /// Replaces the words in a command, its arguments and its subcommands.
    fn fill(&self, command: clap::Command) -> clap::Command {
        let command = match command.get_about().map(|about| self.text(&about.to_string())) {
            Some(about) => command.about(about),
            None => command,
        };
        let command = match command.get_long_about().map(|about| self.text(&about.to_string())) {
            Some(about) => command.long_about(about),
            None => command,
        };
        command.mut_args(|arg| self.arg(arg)).mut_subcommands(|inner| self.fill(inner))
    }

    fn arg(&self, arg: clap::Arg) -> clap::Arg {
        let arg = match arg.get_help().map(|help| self.text(&help.to_string())) {
            Some(help) => arg.help(help),
            None => arg,
        };
        let arg = match arg.get_long().filter(|long| long.contains('{')).map(|long| self.text(long)) {
            Some(long) => arg.long(long),
            None => arg,
        };
        match arg.get_value_names().and_then(|names| names.first()).map(|name| self.text(name)) {
            Some(name) => arg.value_name(name),
            None => arg,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use toolwarrant_spec::COMMANDS;

    #[test]
    fn no_resource_can_have_the_name_of_a_command() {
        let commands = OperatorCommand::augment_subcommands(clap::Command::new("program"));
        let commands = ClientCommand::augment_subcommands(MaintainerCommand::augment_subcommands(commands));
        let names: BTreeSet<_> =
            commands.get_subcommands().map(clap::Command::get_name).chain(["help", "serve"]).collect();
        assert_eq!(names, BTreeSet::from(COMMANDS));
    }
}
