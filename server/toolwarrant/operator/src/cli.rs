//! The command line of a service: the flags of its server, and the commands of its operator.
//!
//! It follows the names and the catalogue of the service. Each flag is also read from an
//! environment variable of the same name. Start at [`CommandLine::parse`].

mod file;
mod files;
mod help;
mod options;
mod page;
mod stdio;
mod toolsets;
mod words;

use crate::command::{OperatorCommand, TargetCommand};
use crate::config::{Config, ConfigError, ConfigTable};
use crate::error::{FailureCode, OperatorError};
use crate::flags;
use crate::names::Names;
use crate::own::OwnCommand;
use crate::place::StoreOptions;
use crate::render;
use crate::user::claims;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, FromArgMatches, Subcommand, value_parser};
use clap_complete::Shell;
use options::CommonFlags;
pub use options::{EdgeOptions, LogFormat, LogOptions, ServeOptions, WayToServer};
pub use page::{CommandForm, CommandInput, describe_form, parse_words};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use stdio::{Folders, STDIO};
use toolwarrant_client::{ClientCommand, ClientNames, ignore_empty_variables};
use toolwarrant_core::catalogue::{Catalogue, PermissionDef, ToolDef};
use words::HelpWords;

/// The flags that a service adds: any type that derives `clap::Args`.
pub trait Flags: Args + Clone + Send + 'static {}

impl<T: Args + Clone + Send + 'static> Flags for T {}

/// The flags of a service that adds none.
#[derive(Clone, Debug, Args)]
pub struct NoFlags {}

/// The names of groups of flags that go together begin with this.
const TOGETHER: &str = "both-";

/// The reason why a service cannot share its store with other replicas.
pub type Alone<F> = fn(&F, &Config) -> Option<&'static str>;

/// A parsed command line.
#[derive(Debug)]
pub enum Invocation<F> {
    Serve {
        serve: ServeOptions,
        log: LogOptions,
        input: ServiceInput<F>,
    },
    Operate {
        command: OperatorCommand,
        question: Option<String>,
        way: WayToServer,
        json: bool,
        input: ServiceInput<F>,
    },
    /// Print the values in force, or the mistake in the configuration. A server does not start with
    /// a mistake, and prints the same report.
    Explain {
        outcome: Result<Value, ConfigError>,
        json: bool,
        /// True for `config check`, whose answer has the mistake.
        checks: bool,
    },
    Connect {
        command: ClientCommand,
        /// True to print a failure as JSON as well.
        json: bool,
    },
    /// Print this text.
    Print(String),
    Files(PathBuf),
}

/// The values from which a service is made, and the place of its data.
#[derive(Debug)]
pub struct ServiceInput<F> {
    pub flags: F,
    pub fleet: Option<&'static str>,
    pub config: Config,
    pub data: PathBuf,
    pub store: StoreOptions,
}

#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a> {
    pub names: &'a Names,
    pub catalogue: &'static Catalogue,
    /// One sentence about the service.
    pub about: &'static str,
    /// Sentences about the behaviour of the program without a command.
    pub usage: &'static str,
    pub tables: &'a [ConfigTable],
    /// The switches of `stdio` for other targets, with their help. Each has a folder of its own.
    pub fleets: &'a [(&'static str, &'static str)],
}

impl CommandLine<'_> {
    /// Reads the command line of this process, and the configuration file that it names. If the
    /// command line is wrong or asks for help, the process prints a message and ends.
    #[must_use]
    pub fn parse<F: Flags, C: OwnCommand>(&self, alone: Alone<F>) -> Invocation<F> {
        let permission = self.catalogue.permissions.first().map_or("NAME", |permission| permission.name);
        let command = help::set(self.command::<F, C>(), &self.catalogue.resource_names(), permission);
        let command = ignore_empty_variables(command);
        let asked = Asked::of(&command);
        let (json, checks) = (asked.json, asked.checks);
        let explained = |outcome| Invocation::Explain { outcome, json, checks };
        let config = match &asked.config {
            Some(path) => Config::read(path),
            None if asked.checks => Err(ConfigError::Absent),
            None => Ok(Config::default()),
        };
        let config = match config {
            Ok(config) => config,
            Err(error) => return explained(Err(error)),
        };
        let names: Vec<_> = self.tables.iter().map(|table| table.name).collect();
        let judged = if asked.checks || asked.serves { self.tables } else { &[] };
        let hold = |ConfigTable { name, judge }: &ConfigTable| Ok(((*name).to_owned(), judge(&config)?));
        let read = file::read(&command, &config, &names)
            .and_then(|values| Ok((values, judged.iter().map(hold).collect::<Result<Map<_, _>, _>>()?)));
        let (values, holds) = match read {
            Ok(read) => read,
            Err(error) => return explained(Err(error)),
        };
        let mut command = file::set(command, &values);
        let matches = command.try_get_matches_from_mut(std::env::args_os());
        // A command line that is wrong may hide the flag from clap.
        let json = json || std::env::args_os().any(|arg| arg == "--json");
        let matches = matches.unwrap_or_else(|error| end(&self.explain(error, &command), json));
        if asked.checks || asked.serves {
            let refused = refuse_shared::<F>(alone, (&command, &matches), &config);
            let refused = refused.and_then(|()| refuse_halves(&command, &matches, &config));
            refused.unwrap_or_else(|error| end(&error.format(&mut command), json));
        }
        if asked.checks {
            let flags = file::describe_flags(&command, &matches, &values);
            let mut sound = Map::from_iter([("sound".to_owned(), true.into())]);
            sound.insert("file".to_owned(), config.path().map(|path| path.display().to_string()).into());
            sound.insert("flags".to_owned(), flags.into());
            sound.extend(holds);
            return explained(Ok(sound.into()));
        }
        self.invocation::<F, C>(&matches, config).unwrap_or_else(|error| end(&error.format(&mut command), json))
    }

    pub fn write_files<F: Flags, C: OwnCommand>(&self, folder: &Path) -> Result<(), OperatorError> {
        files::write(folder, &files::all(&mut self.command::<F, C>(), self.names, self.about))
    }

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
            resources: self.catalogue.resource_names().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Names the variable of a wrong value, and the command that calls a tool.
    fn explain(&self, error: clap::Error, command: &clap::Command) -> clap::Error {
        let mut error = name_variable(error, command);
        if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
            && let Some(tool) = self.catalogue.tool(word)
        {
            let call = format!("a tool is called with `{} call {}`", self.names.program, tool.name);
            error.remove(ContextKind::SuggestedSubcommand);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![call.into()]));
        }
        error
    }

    fn command<F: Flags, C: OwnCommand>(&self) -> clap::Command {
        let (name, about) = (self.names.program, self.about);
        let with_flags = |command| {
            let command = LogOptions::augment_args(F::augment_args(ServeOptions::augment_args(command)));
            command.args(toolsets::flag(self.catalogue))
        };
        // Each type sets its documentation as the help of the command, so the operators' help is
        // set last.
        let command = self.with_environment(CommonFlags::augment_args(with_flags(clap::Command::new(name))));
        let serve = self.with_environment(with_flags(clap::Command::new("serve")));
        let serve = serve.about("Serve; the default without a command").long_about(None);
        let data = command.get_arguments().find(|arg| arg.get_id() == flags::DATA);
        let stdio = data.map(|data| self.with_environment(stdio::command::<F>(data, self.catalogue, self.fleets)));
        let command = command.subcommands([Some(serve), stdio].into_iter().flatten());
        let command = OperatorCommand::augment_subcommands(command).subcommand(config_command());
        let command = self.with_client(command.subcommands([files_command(), completion_command()]));
        let command = command.version(self.names.version);
        let command = command.about(about).long_about(format!("{about}\n\n{}", self.usage));
        let command = with_targets(command, self.catalogue);
        let own = C::augment_subcommands(clap::Command::new(name));
        command.subcommands(own.get_subcommands().cloned())
    }

    /// Adds the client commands. They use no data folder, so their help hides the flags of every
    /// command.
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

    /// Gives each flag its environment variable. That of a switch also takes words such as `yes`.
    fn with_environment(&self, command: clap::Command) -> clap::Command {
        command.mut_args(|arg| match arg.get_long() {
            Some(long) => {
                let name = format!("{}{}", self.names.environment, long.replace('-', "_").to_uppercase());
                let arg = if file::is_switch(&arg) { arg.value_parser(parse_switch) } else { arg };
                arg.env(name)
            }
            None => arg,
        })
    }

    fn invocation<F: Flags, C: OwnCommand>(
        &self,
        matches: &ArgMatches,
        config: Config,
    ) -> Result<Invocation<F>, clap::Error> {
        let common = CommonFlags::from_arg_matches(matches)?;
        let CommonFlags { data, store: _, config: _, json, operator_sockets, socket, claimed_name, reason } = common;
        let store = StoreOptions::of(matches)?;
        let is_set = |path: &PathBuf| !path.as_os_str().is_empty();
        let operator_sockets = operator_sockets.filter(is_set);
        let data_given = matches.value_source("data") != Some(ValueSource::DefaultValue);
        let named = (data_given || data != Path::new(options::DATA_DEFAULT)).then(|| data.clone());
        let folders = Folders { names: self.names, fleets: self.fleets, named, here: data };
        let (data, fleet) = folders.find(matches, &config)?;
        let way = WayToServer {
            socket: socket.filter(is_set),
            groups: operator_sockets.clone().unwrap_or_else(|| Path::new("/run").join(self.names.program)),
            data_given,
            claims: claims(claimed_name, reason),
        };
        let input = |matches: &ArgMatches| {
            let (config, data, store) = (config.clone(), data.clone(), store.clone());
            Ok::<_, clap::Error>(ServiceInput { flags: F::from_arg_matches(matches)?, fleet, config, data, store })
        };
        let serving = |matches: &ArgMatches, given: Result<ServeOptions, clap::Error>| {
            let runtime = || std::env::split_paths(&std::env::var_os("RUNTIME_DIRECTORY")?).next();
            let mut serve = ServeOptions { json, ..given? };
            serve.groups.folder = operator_sockets.clone().or_else(runtime);
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
            Ok(Invocation::Serve { serve, log: LogOptions::from_arg_matches(matches)?, input: input(matches)? })
        };
        let mut question = None;
        let command = match matches.subcommand() {
            None => return serving(matches, toolsets::serve(matches, self.catalogue)),
            Some(("serve", matches)) => return serving(matches, toolsets::serve(matches, self.catalogue)),
            Some((STDIO, matches)) => return serving(matches, stdio::read(matches, &store)),
            Some((name, inner)) if self.catalogue.resource(name).is_some() => {
                OperatorCommand::Target { resource: name.to_owned(), command: TargetCommand::from_arg_matches(inner)? }
            }
            Some((name, _)) if ClientCommand::has_subcommand(name) => {
                return Ok(Invocation::Connect { command: ClientCommand::from_arg_matches(matches)?, json });
            }
            Some((help::COMPLETION, inner)) => {
                return Ok(Invocation::Print(files::completion(value(inner)?, &mut self.command::<F, C>())));
            }
            Some((help::FILES, inner)) => return Ok(Invocation::Files(value(inner)?)),
            Some((name, _)) if C::has_subcommand(name) => {
                let own = C::from_arg_matches(matches)?;
                question = own.question();
                let unwritten = |error| clap::Error::raw(ErrorKind::Io, error);
                let command = serde_json::to_value(&own).map_err(unwritten)?;
                OperatorCommand::Own { command, patience: own.patience() }
            }
            Some(_) => OperatorCommand::from_arg_matches(matches)?,
        };
        let question = question.or_else(|| command.row().question);
        Ok(Invocation::Operate { command, question, way, json, input: input(matches)? })
    }
}

/// Adds the commands for targets of each resource, and puts the words of the contract into all.
fn with_targets(command: clap::Command, catalogue: &Catalogue) -> clap::Command {
    let words = HelpWords::of_all(catalogue);
    catalogue.resource_names().into_iter().fold(words.fill(command), |command, resource| {
        let named = TargetCommand::augment_subcommands(clap::Command::new(resource)).long_about(None);
        let named = named.about("List {targets}, and decide which application sees them");
        let named = named.subcommand_required(true).arg_required_else_help(true);
        command.subcommand(words.of_one(resource).fill(named))
    })
}

/// Returns the argument of a command that writes about the program. clap has required it.
fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches) -> Result<T, clap::Error> {
    matches.get_one(VALUE).cloned().ok_or_else(|| clap::Error::new(ErrorKind::MissingRequiredArgument))
}

fn of_server<'a>(command: &'a clap::Command, matches: &'a ArgMatches) -> (&'a clap::Command, &'a ArgMatches) {
    match matches.subcommand() {
        Some((name @ ("serve" | STDIO), inner)) => (command.find_subcommand(name).unwrap_or(command), inner),
        _ => (command, matches),
    }
}

fn refuse_shared<F: Flags>(
    alone: Alone<F>,
    (command, matches): (&clap::Command, &ArgMatches),
    config: &Config,
) -> Result<(), clap::Error> {
    let flags = F::from_arg_matches(of_server(command, matches).1)?;
    match alone(&flags, config) {
        Some(why) if !StoreOptions::of(matches)?.is_folder() => {
            let why = format!("this service cannot share its store with other replicas: {why}");
            Err(clap::Error::raw(ErrorKind::ArgumentConflict, why))
        }
        _ => Ok(()),
    }
}

/// Refuses a flag without the others of its group, wherever it was set.
fn refuse_halves(command: &clap::Command, matches: &ArgMatches, config: &Config) -> Result<(), clap::Error> {
    let (command, matches) = of_server(command, matches);
    let is_set =
        |id: &clap::Id| matches.get_raw(id.as_str()).is_some_and(|mut texts| texts.any(|text| !text.is_empty()));
    for group in command.get_groups().filter(|group| group.get_id().as_str().starts_with(TOGETHER)) {
        if group.get_args().any(is_set) && !group.get_args().all(is_set) {
            let flags = command.get_arguments().filter(|arg| group.get_args().any(|id| id == arg.get_id()));
            let flags: Vec<_> = flags.filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect();
            let from = group.get_args().find(|id| is_set(id)).and_then(|id| matches.value_source(id.as_str()));
            let place = match (from, config.path()) {
                (Some(ValueSource::CommandLine), _) => "the command line".to_owned(),
                (Some(ValueSource::EnvVariable), _) | (_, None) => "the environment".to_owned(),
                (_, Some(file)) => file.display().to_string(),
            };
            let why = format!("{} go together; give both, or neither. One is set in {place}", flags.join(" and "));
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, why));
        }
    }
    Ok(())
}

fn parse_switch(text: &str) -> Result<bool, &'static str> {
    match &*text.to_ascii_lowercase() {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err("expected 1, 0, true, false, yes or no"),
    }
}

/// Names the variable that a wrong value comes from, instead of its flag.
fn name_variable(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_typed = |long: &str| {
        let typed = |arg: OsString| arg.to_string_lossy().split('=').next() == Some(&format!("--{long}"));
        std::env::args_os().any(typed)
    };
    let sets = |arg: &&clap::Arg| arg.to_string() == *flag && !arg.get_long().is_some_and(is_typed);
    let variable = command.get_arguments().find(sets).and_then(clap::Arg::get_env);
    if let Some(variable) = variable.filter(|name| std::env::var_os(name).is_some()) {
        let variable = variable.to_string_lossy().into_owned();
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

fn end(error: &clap::Error, json: bool) -> ! {
    if !json || !error.use_stderr() {
        error.exit();
    }
    let message = error.to_string();
    let failure = OperatorError::new(FailureCode::Usage, message.trim_start_matches("error: ").trim_end());
    print!("{}", render::json(&json!({"error": failure})));
    let _ = std::io::stdout().flush();
    std::process::exit(error.exit_code());
}

struct Asked {
    config: Option<PathBuf>,
    checks: bool,
    serves: bool,
    json: bool,
}

impl Asked {
    /// Reads these parts before the configuration file is read. A wrong command line gives the
    /// defaults here, and is reported when it is parsed completely. Client commands and those that
    /// write about the program read no file.
    fn of(command: &clap::Command) -> Self {
        let nothing = Self { config: None, checks: false, serves: false, json: false };
        let Ok(matches) = command.clone().ignore_errors(true).try_get_matches() else { return nothing };
        let name = matches.subcommand_name();
        let reads_none = |name| [help::FILES, help::COMPLETION].contains(&name) || ClientCommand::has_subcommand(name);
        if name.is_some_and(reads_none) {
            return nothing;
        }
        let config = matches.try_get_one::<PathBuf>(flags::CONFIG).ok().flatten().cloned();
        Self {
            config: config.filter(|path| !path.as_os_str().is_empty()),
            checks: matches
                .subcommand()
                .is_some_and(|(name, inner)| name == "config" && inner.subcommand_name().is_some()),
            serves: matches!(name, None | Some("serve" | STDIO)),
            json: matches.try_get_one::<bool>(flags::JSON).ok().flatten().is_some_and(|json| *json),
        }
    }
}

fn files_command() -> clap::Command {
    clap::Command::new(help::FILES)
        .about("Write the files of an installation: unit, container, configuration, alert rules, completions")
        .arg(Arg::new(VALUE).value_name("DIR").required(true).help("A new folder").value_parser(value_parser!(PathBuf)))
}

fn completion_command() -> clap::Command {
    let shell = Arg::new(VALUE).value_name("SHELL").required(true).value_parser(value_parser!(Shell));
    clap::Command::new(help::COMPLETION)
        .about("Print the completion of the command line for a shell")
        .arg(shell.help("The shell"))
}

const VALUE: &str = "value";

fn config_command() -> clap::Command {
    let check = clap::Command::new("check")
        .about("Report every mistake in the file with its line, or print the values in force")
        .long_about(
            "Report every mistake in the file with its line and the allowed values, or print the values in force\n\n\
             The exit code is a failure if there is a mistake. A server refuses to start then, with the same text.",
        );
    let config = clap::Command::new("config").about("Check the configuration file that --config names");
    config.subcommand_required(true).arg_required_else_help(true).subcommand(check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use toolwarrant_common::COMMANDS;

    #[test]
    fn no_resource_can_have_the_name_of_a_command() {
        let commands = OperatorCommand::augment_subcommands(clap::Command::new("program"));
        let commands = ClientCommand::augment_subcommands(commands);
        let others = ["config", help::FILES, help::COMPLETION, "help", "serve", STDIO];
        let names: BTreeSet<_> = commands.get_subcommands().map(clap::Command::get_name).chain(others).collect();
        assert_eq!(names, BTreeSet::from(COMMANDS));
    }
}
