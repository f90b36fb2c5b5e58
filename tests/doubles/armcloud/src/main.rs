//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    armcloud_double::main()
}
