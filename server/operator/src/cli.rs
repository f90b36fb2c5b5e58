//! The command line of a service: flags to serve with, and every command of its operator.
//!
//! It is made from the service's names and catalogue: a command for each resource, permissions by name, and an environment
//! variable for each flag, which is called as the flag is. A service adds flags of its own as a [`Flags`] type.

use crate::command::{Command, TargetCommand};
use crate::names::Names;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use toolwarrant_core::catalogue::Catalogue;
use tracing::level_filters::LevelFilter;

/// Flags that a service adds: a type that derives `clap::Args`.
pub trait Flags: Args + Clone + Send + 'static {}

impl<T: Args + Clone + Send + 'static> Flags for T {}

/// No flags.
#[derive(Clone, Debug, Args)]
pub struct NoFlags {}

/// What the command line comes to.
#[derive(Debug)]
pub enum Invocation<F> {
    /// Serve.
    Serve {
        /// How.
        serve: Serve,
        /// The service's own flags.
        flags: F,
        /// The data folder.
        data: PathBuf,
        /// What is logged, and how.
        log: Log,
    },
    /// Carry out one command of an operator.
    Operate {
        /// The command.
        command: Command,
        /// The service's own flags.
        flags: F,
        /// The data folder.
        data: PathBuf,
        /// Whether the answer is for a program.
        json: bool,
    },
}

/// Where and to whom a server answers.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,

    /// Address for /healthz, /readyz and /metrics, which ask for no key: keep it off public networks. Without it there are none
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,

    /// URL at which clients reach this server, where that is not the address it listens on
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Host name that requests may be addressed to, beside the public URL's; may be repeated
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub allow_host: Vec<String>,

    /// Origin of web pages that may call this server, such as https://example.com; may be repeated
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<String>,
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, Args)]
pub struct Log {
    /// What to log, on standard error: off, error, warn, info, debug or trace, each with those before it
    #[arg(long = "log", value_name = "LEVEL", default_value_t = Log::default().level)]
    pub level: LevelFilter,

    /// Lines for people, or a JSON object a line
    #[arg(long = "log-format", value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LevelFilter::INFO, format: LogFormat::Text }
    }
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the help of the flag says what they are, and would repeat what stands here")]
pub enum LogFormat {
    Text,
    Json,
}

/// What every command takes.
#[derive(Debug, Args)]
struct Common {
    /// Folder for what outlives the program: tasks, applications, keys, the audit trail
    #[arg(long, global = true, value_name = "DIR", default_value = "data", value_parser = folder)]
    data: PathBuf,

    /// Answer with JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, as in 127.0.0.1:8080")
}

/// It need not be there yet.
fn folder(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Err("it is a file; a folder is expected") } else { Ok(path) }
}

/// The command line of one service.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a> {
    /// What the service calls itself.
    pub names: &'a Names,
    /// What it offers.
    pub catalogue: &'static Catalogue,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// What it does without a command, in sentences.
    pub usage: &'static str,
}

impl CommandLine<'_> {
    /// Reads this process's command line. Where that asks for help or cannot be read, the process ends with a message.
    #[must_use]
    pub fn parse<F: Flags>(&self) -> Invocation<F> {
        let mut command = self.command::<F>();
        let matches = command.get_matches_mut();
        self.invocation(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    fn command<F: Flags>(&self) -> clap::Command {
        let (name, about) = (self.names.program, self.about);
        let with_flags = |command| Log::augment_args(F::augment_args(Serve::augment_args(command)));
        // What a type says of itself is for its readers: a command's own words come last.
        let command = self.with_environment(Common::augment_args(with_flags(clap::Command::new(name))));
        let serve = self.with_environment(with_flags(clap::Command::new("serve")));
        let serve = serve.about("Serve; this is what happens without a command").long_about(None);
        let command = Command::augment_subcommands(command.subcommand(serve)).version(self.names.version);
        let command = command.about(about).long_about(format!("{about}\n\n{}", self.usage));
        // What tools act on comes after applications and keys.
        let first = ["serve", "app", "key"];
        let names: Vec<_> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        let command = names.iter().enumerate().fold(command, |command, (n, name)| {
            let place = first.iter().position(|known| known == name).unwrap_or(first.len() + 1 + n);
            command.mut_subcommand(name, |known| known.display_order(place))
        });
        let words = Words::of_all(self);
        self.resources().into_iter().fold(words.fill(command), |command, resource| {
            let named = TargetCommand::augment_subcommands(clap::Command::new(resource)).long_about(None);
            let named =
                named.about("List {targets}, and decide which application sees them").display_order(first.len());
            let named = named.subcommand_required(true).arg_required_else_help(true);
            command.subcommand(Words { target: resource.to_owned(), ..words.clone() }.fill(named))
        })
    }

    /// Gives each flag its variable.
    fn with_environment(&self, command: clap::Command) -> clap::Command {
        command.mut_args(|arg| match arg.get_long() {
            Some(long) => {
                let name = format!("{}{}", self.names.environment, long.replace('-', "_").to_uppercase());
                arg.env(name)
            }
            None => arg,
        })
    }

    fn resources(&self) -> Vec<&'static str> {
        resources(self.catalogue)
    }

    fn invocation<F: Flags>(&self, matches: &ArgMatches) -> Result<Invocation<F>, clap::Error> {
        let Common { data, json } = Common::from_arg_matches(matches)?;
        let serving = |matches: &ArgMatches| {
            let mut serve = Serve::from_arg_matches(matches)?;
            // A variable that is set to nothing, as compose files like to have it, says nothing.
            let said = |text: &String| !text.is_empty();
            serve.public_url = serve.public_url.filter(said);
            serve.allow_host.retain(said);
            serve.allow_origin.retain(said);
            let (flags, log) = (F::from_arg_matches(matches)?, Log::from_arg_matches(matches)?);
            Ok::<_, clap::Error>(Invocation::Serve { serve, flags, data: data.clone(), log })
        };
        let command = match matches.subcommand() {
            None => return serving(matches),
            Some(("serve", matches)) => return serving(matches),
            Some((name, inner)) if self.resources().contains(&name) => {
                Command::Target { resource: name.to_owned(), command: TargetCommand::from_arg_matches(inner)? }
            }
            Some(_) => Command::from_arg_matches(matches)?,
        };
        Ok(Invocation::Operate { command, flags: F::from_arg_matches(matches)?, data, json })
    }
}

/// The resources of a contract, in the order in which its tools name them first.
pub(crate) fn resources(catalogue: &Catalogue) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for target in catalogue.tools.iter().filter_map(|tool| tool.target.as_ref()) {
        if !all.contains(&target.resource) {
            all.push(target.resource);
        }
    }
    all
}

/// What help texts say in place of `{...}`.
#[derive(Clone)]
struct Words {
    /// One of what tools act on.
    target: String,
    permissions: String,
}

impl Words {
    /// Those for commands that are about every resource.
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

    /// A command, its arguments and all below it with these words.
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
