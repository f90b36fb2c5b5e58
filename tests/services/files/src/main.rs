//! Files as a service: the contract, and the program.

mod contract {
    toolwarrant::contract!("spec");
}
mod files;

use std::sync::Arc;
use toolwarrant::{Program, Service};

fn main() -> std::process::ExitCode {
    Program::new("files", env!("CARGO_PKG_VERSION"), "Serves shared folders.").run(|setup| {
        let files = Arc::new(files::Files(setup.folder.path().with_file_name("shares")));
        Ok(Service::with_executor(contract::Contract(files.clone()), files))
    })
}
