//! The program: flags, then [`cloudphone::app`].

mod cli;

use anyhow::{Context, Result};
use clap::Parser;
use cloudphone::app::{App, Stop};
use std::process::ExitCode;

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    match run(cli::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cloudphone: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: cli::Arguments) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the async runtime")?;
    runtime.block_on(async {
        let stop = Stop::on_signal().context("cannot listen for signals")?;
        let app = App::start(arguments.into()).await?;
        print!("{}", app.welcome());
        app.serve(stop.wait()).await;
        println!("cloudphone has stopped");
        Ok(())
    })
}
