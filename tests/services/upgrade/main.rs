//! Lamps that outlive the program.

mod contract {
    toolwarrant::contract!("spec");
}
mod lamps;

use std::sync::Arc;
use toolwarrant::{Program, Service};

fn main() -> std::process::ExitCode {
    Program::new("lamps", env!("CARGO_PKG_VERSION"), "Serves lamps.").run(|setup| {
        let lamps = Arc::new(lamps::LampFolder(setup.folder.path().with_file_name("lamps")));
        Ok(Service::with_executor(contract::Contract(lamps.clone()), lamps))
    })
}
