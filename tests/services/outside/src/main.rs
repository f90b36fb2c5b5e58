//! Lamps as a service: the contract, and the program.

mod contract {
    toolwarrant::contract!("spec");
}
mod lamps;

use std::sync::Arc;
use toolwarrant::{Program, Service};

fn main() -> std::process::ExitCode {
    Program::new("lamps", env!("CARGO_PKG_VERSION"), "Serves lamps.").run(|_| {
        let lamps = Arc::new(lamps::Lamps::default());
        Ok(Service::with_executor(contract::Contract(lamps.clone()), lamps))
    })
}
