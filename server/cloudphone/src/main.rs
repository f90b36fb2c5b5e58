//! The program: the phones of the configured platforms, or simulated ones, served.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudphone::configured()
}
