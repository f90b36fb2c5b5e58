//! A service as a program: its command line, and what each command comes to.

use crate::log;
use crate::server::{Identity, ServeConfig, Server, Stop};
use crate::service::{Service, Setup};
use crate::welcome::Demo;
use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use std::io::Write;
use std::marker::PhantomData;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::oneshot;
use toolwarrant_core::clock::Clock;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::random::Random;
use toolwarrant_operator::cli::{CommandLine, Flags, Invocation, Log, NoFlags, Serve};
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::offline::Offline;
use toolwarrant_operator::{Check, Command, Names, render};

/// A service as a program, with flags `F` of its own.
pub struct Program<F = NoFlags> {
    identity: Identity,
    about: &'static str,
    usage: &'static str,
    flags: PhantomData<fn() -> F>,
}

impl Program {
    /// A program of that name, in lower-case letters, digits and hyphens. `about` says in a sentence what it does.
    #[must_use]
    pub fn new(name: &'static str, version: &'static str, about: &'static str) -> Self {
        Self::named(Names::of(name, version), about)
    }
}

impl<F: Flags> Program<F> {
    /// A program whose keys, files, variables and metrics are called otherwise than [usual](Names::of), or that has flags of its own.
    #[must_use]
    pub fn named(names: Names, about: &'static str) -> Self {
        let usage = "Without a command it serves. The other commands are for the operator, and work whether a server runs or not.";
        Self {
            identity: Identity { names, demo: Demo::default(), checks: Vec::new() },
            about,
            usage,
            flags: PhantomData,
        }
    }

    /// Replaces what `--help` says of a start without a command: sentences.
    #[must_use]
    pub fn usage(self, usage: &'static str) -> Self {
        Self { usage, ..self }
    }

    /// Adds an application that the first start makes, with a key that is shown. It sees everything.
    #[must_use]
    pub fn demo(mut self, application: &'static str, permissions: &'static [&'static str]) -> Self {
        self.identity.demo.applications.push((application, permissions));
        self
    }

    /// Says which call to try first: the first start prints it as a command to paste. Without one, that lists the tools.
    #[must_use]
    pub fn try_first(mut self, tool: &'static str, arguments: Value) -> Self {
        self.identity.demo.first_call = Some((tool, arguments));
        self
    }

    /// Says what to try next, at the end of what the first start prints.
    #[must_use]
    pub fn hint(mut self, hint: &'static str) -> Self {
        self.identity.demo.hint = hint;
        self
    }

    /// Adds something that the doctor looks at.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.identity.checks.push(check);
        self
    }

    /// Reads the command line, and serves or carries out a command. `compose` makes the service; it is called where there is need of one.
    pub fn run<H: Handlers>(self, compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H>>) -> ExitCode {
        let line =
            CommandLine { names: &self.identity.names, catalogue: H::CATALOGUE, about: self.about, usage: self.usage };
        let name = self.identity.names.program;
        let done = match line.parse::<F>() {
            Invocation::Serve { serve, flags, data, log } => {
                log::begin(log);
                self.serve(serve_config(serve, &data), flags, compose).map(|()| ExitCode::SUCCESS)
            }
            Invocation::Operate { command, flags, data, json } => {
                log::begin(Log::default());
                self.operate(command, flags, &data, json, compose)
            }
        };
        done.unwrap_or_else(|error| {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        })
    }

    /// Has one command carried out, and prints the answer. That a doctor finds a fault is a failure too.
    fn operate<H: Handlers>(
        self,
        command: Command,
        flags: F,
        data: &Path,
        json: bool,
        compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H>>,
    ) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(NO_RUNTIME)?;
        let inventory = |folder: &DataFolder| {
            let setup = Setup { flags, folder, clock: Clock::system(), random: Random::System };
            compose(setup).map(|service| service.inventory).map_err(|error| format!("{error:#}"))
        };
        let offline = Offline {
            names: Arc::new(self.identity.names),
            catalogue: H::CATALOGUE,
            checks: self.identity.checks.into(),
            inventory: Box::new(inventory),
        };
        let answer = runtime.block_on(offline.run(data, command)).map_err(|error| anyhow!(error.to_string()))?;
        say(&if json { format!("{answer:#}\n") } else { render::text(&answer) });
        Ok(if answer["healthy"] == false { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Serves until the first signal, and then until requests in flight are done or a second signal comes.
    fn serve<H: Handlers>(
        self,
        config: ServeConfig,
        flags: F,
        compose: impl FnOnce(Setup<'_, F>) -> Result<Service<H>>,
    ) -> Result<()> {
        let name = self.identity.names.program;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context(NO_RUNTIME)?;
        runtime.block_on(async {
            let mut stop = Stop::on_signal().context("cannot listen for signals")?;
            let server = Server::start(self.identity, config, flags, compose).await?;
            say(&server.welcome());
            let (ask, asked) = oneshot::channel::<()>();
            let serving = server.serve(async move { drop(asked.await) });
            let signals = async {
                stop.next().await;
                drop(ask);
                stop.next().await;
            };
            tokio::select! {
                () = serving => say(&format!("{name} has stopped\n")),
                () = signals => say(&format!("{name} has stopped at once\n")),
            }
            Ok(())
        })
    }
}

const NO_RUNTIME: &str = "cannot start the async runtime";

fn serve_config(serve: Serve, data: &Path) -> ServeConfig {
    let Serve { listen, admin_listen, public_url, allow_host, allow_origin } = serve;
    let data = data.to_owned();
    ServeConfig { listen, admin_listen, public_url, allow_hosts: allow_host, allow_origins: allow_origin, data }
}

/// Prints `text`, if anybody still reads.
fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
