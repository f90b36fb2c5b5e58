//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    print_shop::program().run(|setup| Ok(print_shop::service(setup)?))
}
