//! A service as a program: reads the command line, then serves or carries out one operator command.

use crate::log::Streams;
use crate::question;
use crate::service::{Service, Setup, require_states};
use crate::signals::Signals;
use crate::start::Start;
use crate::welcome::Demo;
use crate::{client, dumps, stdio};
use anyhow::{Context, Result, anyhow, bail};
use rustix::termios::tcgetwinsize;
use serde_json::{Value, json};
use std::io::{self, ErrorKind, Write};
use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::random::Random;
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_http::edge::PolicyConfigError;
use toolwarrant_operator::answers::Answered;
use toolwarrant_operator::cli::{
    Alone, CommandLine, Flags, Invocation, LogOptions, NoFlags, ServeOptions, ServiceInput, WayToServer,
};
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::offline::{MakeParts, Offline};
use toolwarrant_operator::owner::become_owner;
use toolwarrant_operator::{
    Check, ConfigError, ConfigTable, FailureCode, Names, NoCommands, OperatorCommand, OperatorError, OwnCommand,
    ProgramIdentity, render,
};
use toolwarrant_tasks::engine::OwnTasks;

/// The program of a service, with the flags `F` and the commands `C` that it adds.
pub struct Program<F = NoFlags, C = NoCommands> {
    names: Names,
    demo: Demo,
    checks: Vec<Check>,
    about: &'static str,
    usage: &'static str,
    tables: Vec<ConfigTable>,
    fleets: Vec<(&'static str, &'static str)>,
    alone: Alone<F>,
    added: PhantomData<fn() -> C>,
}

impl Program {
    /// Makes a program with the [usual names](Names::of). `name` has lower-case letters, digits and
    /// hyphens.
    #[must_use]
    pub fn new(name: &'static str, version: &'static str, about: &'static str) -> Self {
        Self::with_names(Names::of(name, version), about)
    }
}

impl<F: Flags> Program<F> {
    /// Makes a program with other names, or with flags of its own.
    #[must_use]
    pub fn with_names(names: Names, about: &'static str) -> Self {
        let usage = "Without a command it serves. The other commands are for the operator, and work whether a server runs or not.";
        Self {
            names,
            demo: Demo::default(),
            checks: Vec::new(),
            about,
            usage,
            tables: Vec::new(),
            fleets: Vec::new(),
            alone: |_, _| None,
            added: PhantomData,
        }
    }
}

impl<F: Flags, C: OwnCommand> Program<F, C> {
    /// Adds commands, which [`Service::commands`] carries out.
    #[must_use]
    pub fn commands<D: OwnCommand>(self) -> Program<F, D> {
        let Self { names, demo, checks, about, usage, tables, fleets, alone, added: PhantomData } = self;
        Program { names, demo, checks, about, usage, tables, fleets, alone, added: PhantomData }
    }

    /// Replaces the text of `--help` about a start without a command.
    #[must_use]
    pub fn usage(self, usage: &'static str) -> Self {
        Self { usage, ..self }
    }

    /// Adds an application that sees everything. The first start creates it and prints a key of it.
    #[must_use]
    pub fn demo(mut self, application: &'static str, permissions: &'static [&'static str]) -> Self {
        self.demo.applications.push((application, permissions));
        self
    }

    /// Sets the call that the first start prints as a command. Default: it lists the tools.
    #[must_use]
    pub fn try_first(mut self, tool: &'static str, arguments: Value) -> Self {
        self.demo.first_call = Some((tool, arguments));
        self
    }

    /// Adds a check of the doctor.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    /// Refuses to serve from a store that replicas share if `alone` returns a reason: a fragment
    /// about what this process keeps for itself, and what to use instead.
    #[must_use]
    pub fn alone(self, alone: Alone<F>) -> Self {
        Self { alone, ..self }
    }

    /// Adds a table of the configuration file, for [`Setup::config`].
    #[must_use]
    pub fn table(mut self, table: ConfigTable) -> Self {
        self.tables.push(table);
        self
    }

    /// Adds a switch of the command `stdio` for other targets than without it. Each switch has a
    /// data folder of its own, and is in [`Setup::fleet`] whenever that folder is used.
    #[must_use]
    pub fn fleet(mut self, switch: &'static str, help: &'static str) -> Self {
        self.fleets.push((switch, help));
        self
    }

    /// Serves or carries out one command. `compose` makes the service, at most once, if the command
    /// needs it.
    pub fn run<H: Handlers>(self, compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H, C>>) -> ExitCode {
        let Self { about, usage, tables, fleets, .. } = &self;
        let line = CommandLine { names: &self.names, catalogue: H::CATALOGUE, about, usage, tables, fleets };
        let name = self.names.program;
        let invocation = line.parse::<F, C>(self.alone);
        // A change of the user applies only to threads that start after it.
        let owner = match &invocation {
            Invocation::Serve { input, .. } => become_owner(&input.data, true),
            Invocation::Operate { input, way, .. } => become_owner(&input.data, way.data_given),
            _ => Ok(None),
        };
        let begun = owner.map_err(anyhow::Error::from).and_then(|owner| Ok((owner, Streams::start()?)));
        let json = match &invocation {
            Invocation::Serve { serve: ServeOptions { json, .. }, .. }
            | Invocation::Operate { json, .. }
            | Invocation::Explain { json, .. } => *json,
            _ => false,
        };
        let (owner, streams) = match begun {
            Ok(begun) => begun,
            Err(error) => return complain(&error, name, json, |text| drop(write!(io::stderr(), "{text}"))),
        };
        let log = |options| {
            streams.log(options);
            if let Some(user) = &owner {
                tracing::info!(user, "root runs this as the owner of the data folder");
            }
        };
        let done = match invocation {
            Invocation::Serve { serve, log: options, input } => {
                log(options);
                if !serve.allow_core_dumps {
                    forbid_dumps();
                }
                self.serve(serve, input, compose, &streams)
            }
            Invocation::Explain { outcome: Ok(answer), json, .. } => {
                print(&render_answer(&Answered::of_value(answer), json)).map(|()| ExitCode::SUCCESS)
            }
            Invocation::Explain { outcome: Err(ConfigError::Mistake(mistake)), json: true, checks: true } => {
                let file = mistake.path.display().to_string();
                let answer = json!({"sound": false, "file": file, "mistakes": [mistake]});
                print(&render::json(&answer)).map(|()| ExitCode::FAILURE)
            }
            Invocation::Explain { outcome: Err(error), checks: true, .. } => Err(error.into()),
            Invocation::Explain { outcome: Err(error), .. } => {
                Err(OperatorError::new(FailureCode::Usage, error.to_string()).into())
            }
            Invocation::Connect { command, json } => {
                forbid_dumps();
                client::run(&command, json, &line.client_names(), H::CATALOGUE)
            }
            Invocation::Print(text) => print(&text).map(|()| ExitCode::SUCCESS),
            Invocation::Files(folder) => {
                line.write_files::<F, C>(&folder).map(|()| ExitCode::SUCCESS).map_err(Into::into)
            }
            Invocation::Operate { command, question, way, json, input } => {
                log(LogOptions::default());
                forbid_dumps();
                let agreed = question.map_or(Ok(()), |question| question::ask(&question));
                agreed.and_then(|()| self.operate(command, input, (way, json), compose))
            }
        };
        done.unwrap_or_else(|error| complain(&error, name, json, |text| streams.complain(text)))
    }

    fn identity<H: Handlers>(&self) -> ProgramIdentity {
        let Self { names, checks, .. } = self;
        ProgramIdentity { names: Arc::new(names.clone()), catalogue: H::CATALOGUE, checks: checks[..].into() }
    }

    /// Fails also if a fault is found.
    fn operate<H: Handlers>(
        self,
        command: OperatorCommand,
        input: ServiceInput<F>,
        (way, json): (WayToServer, bool),
        compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H, C>>,
    ) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(NO_RUNTIME)?;
        let ServiceInput { flags, fleet, config, data, store } = input;
        let parts = |folder: &DataFolder, files| {
            let (clock, random) = (Clock::system(), Random::System);
            let passes = Passes::new(clock.clone(), random.clone(), OFFLINE_URL, None);
            let tasks = OwnTasks::default();
            let setup = Setup { flags, fleet, config, folder, files, clock, random, passes, tasks };
            Ok(compose(setup).map_err(|error| format!("{error:#}"))?.parts)
        };
        let offline = Offline { program: self.identity::<H>(), store, parts: Box::new(parts) as MakeParts<'_> };
        let answer = offline.run(&runtime, &data, way, command)?;
        match (write_out(&render_answer(&answer, json)), &answer.new_key) {
            (Ok(true), _) | (Ok(false), None) => {}
            (Err(error), None) => return Err(lose(&error)),
            (unwritten, Some(key)) => {
                let why = unwritten.err().map_or_else(|| "its reader has gone".to_owned(), |error| error.to_string());
                bail!(
                    "the secret of the key {key} is lost: {UNWRITTEN}: {why}; make another with `key create`, and end this \
                     one with `key revoke {key}`, which also ends a former secret of it"
                );
            }
        }
        Ok(if answer.has_fault { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn serve<H: Handlers>(
        self,
        serve: ServeOptions,
        ServiceInput { flags, fleet, config, data, store }: ServiceInput<F>,
        compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H, C>>,
        streams: &Streams,
    ) -> Result<ExitCode> {
        let (name, json, over_stdio) = (self.names.program, serve.json, serve.stdio.is_some());
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context(NO_RUNTIME)?;
        // The service may start tasks while it is made.
        let entered = runtime.enter();
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        if let Some(application) = &serve.stdio {
            stdio::bridge(&mut signals, application, &data, (name, H::CATALOGUE))?;
        }
        let begun =
            Start::begin(&runtime, (self.identity::<H>(), self.demo), serve, (&data, store), &mut signals.stop)?;
        let Some(start) = begun else { return Ok(ExitCode::SUCCESS) };
        let leave = start.leave();
        let made = (|| {
            let service = compose(start.setup(&runtime, flags, fleet, config)?)?;
            let Service { handlers, executor, page, parts, .. } = service;
            require_states(parts.inventory.as_deref(), H::CATALOGUE)?;
            let answering = start.answer(&runtime, (handlers, executor), page)?;
            start.finish(&runtime, answering, parts)
        })();
        if made.is_err() {
            runtime.block_on(leave);
        }
        let server = made?;
        let say = |text: &str| {
            if !over_stdio {
                streams.say(text)
            }
        };
        let served = server.run(&runtime, signals, say, json);
        drop(entered);
        // An operator's command may still read files.
        runtime.shutdown_timeout(COMMANDS_END_WITHIN);
        // With `--json`, standard output has its one document already.
        let failed = |error| complain(&error, name, false, |text| streams.complain(text));
        Ok(served.map_or_else(failed, |()| ExitCode::SUCCESS))
    }
}

/// Reports to people on standard error, to programs as JSON on standard output.
fn complain(error: &anyhow::Error, name: &str, json: bool, say: impl FnOnce(&str)) -> ExitCode {
    let failure = match error.downcast_ref::<OperatorError>() {
        Some(failure) => failure.clone(),
        None => {
            // With this code, a manager does not start the program again.
            let code = if error.is::<PolicyConfigError>() { FailureCode::Usage } else { FailureCode::Refused };
            OperatorError::new(code, format!("{error:#}"))
        }
    };
    match json {
        true if matches!(write_out(&render::json(&json!({"error": failure}))), Ok(true)) => {}
        _ => say(&format!("{name}: {}\n", render::plain(&failure.message))),
    }
    failure.code.exit_code()
}

/// No pass is issued without a server.
const OFFLINE_URL: &str = "http://127.0.0.1";

fn forbid_dumps() {
    if let Err(error) = dumps::forbid() {
        tracing::warn!(%error, "the system may dump the memory of this program, with the secrets in it");
    }
}

const COMMANDS_END_WITHIN: Duration = Duration::from_secs(2);

const NO_RUNTIME: &str = "cannot start the async runtime";

/// Returns the width of the terminal, if standard output is one.
fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn render_answer(answer: &Answered, json: bool) -> String {
    if json { render::json(&answer.json) } else { render::text(&answer.view, terminal_columns()) }
}

/// Fails on a full disk, but not without a reader.
fn print(text: &str) -> Result<()> {
    write_out(text).map(drop).map_err(|error| lose(&error))
}

fn lose(error: &io::Error) -> anyhow::Error {
    anyhow!("the command was carried out, and its answer is lost: {UNWRITTEN}: {error}")
}

/// Returns false if the reader has gone.
fn write_out(text: &str) -> io::Result<bool> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

const UNWRITTEN: &str = "cannot write to standard output";
