//! The program.

use print_shop::machines::Machines;
use std::process::ExitCode;

fn main() -> ExitCode {
    print_shop::program().run(|mut setup| {
        let machines = Machines::new(setup.flags.machines.take())?;
        Ok(print_shop::service(machines))
    })
}
