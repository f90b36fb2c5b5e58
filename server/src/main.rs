//! The program: simulated phones, served.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudphone::simulated()
}
