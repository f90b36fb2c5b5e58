//! The program: flags, then [`cloudphone::app`].

mod cli;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use cloudphone::admin::{self, Command, Fleet};
use cloudphone::app::{App, Config, Stop};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use tokio::sync::oneshot;

fn main() -> ExitCode {
    let done = match cli::Arguments::parse().into() {
        cli::Task::Serve { config, log } => {
            begin(log);
            serve(config).map(|()| ExitCode::SUCCESS)
        }
        cli::Task::Operate { data, fleet, command, json } => {
            begin(cli::Log::default());
            operate(&data, fleet, command, json)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("cloudphone: {error:#}");
        ExitCode::FAILURE
    })
}

/// Begins the log, on standard error.
fn begin(log: cli::Log) {
    // Where it goes may be full or gone; that must not end a thread.
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).log_internal_errors(false);
    let lines = lines.with_max_level(log.level);
    match log.format {
        cli::LogFormat::Text => lines.init(),
        cli::LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}

/// Prints `text`, if anybody still reads.
fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Has one command of an operator carried out, and prints the answer. That a doctor finds a fault is a failure too.
fn operate(data: &Path, fleet: Fleet, command: Command, json: bool) -> Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the async runtime")?;
    let answer = runtime.block_on(admin::run(data, fleet, command)).map_err(|why| anyhow!(why))?;
    say(&if json { format!("{answer:#}\n") } else { admin::shown::text(&answer) });
    Ok(if answer["healthy"] == false { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Serves until the first signal, and then until requests in flight are done or a second signal comes.
fn serve(config: Config) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the async runtime")?;
    runtime.block_on(async {
        let mut stop = Stop::on_signal().context("cannot listen for signals")?;
        let app = App::start(config).await?;
        say(&app.welcome());
        let (ask, asked) = oneshot::channel::<()>();
        let serving = app.serve(async move { drop(asked.await) });
        let signals = async {
            stop.next().await;
            drop(ask);
            stop.next().await;
        };
        tokio::select! {
            () = serving => say("cloudphone has stopped\n"),
            () = signals => say("cloudphone has stopped at once\n"),
        }
        Ok(())
    })
}
