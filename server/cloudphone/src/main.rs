//! The program: serves the phones of the configured platforms, or simulated ones.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudphone::run()
}
