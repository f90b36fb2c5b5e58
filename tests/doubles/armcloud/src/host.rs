//! `act`: the program that an operator of the product names for what adb cannot do. It asks the
//! control interface of the double.

use crate::net;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::process::ExitCode;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ActEnd {
    /// `None` if a signal ends the program.
    pub(crate) status: Option<u8>,
    pub(crate) says: String,
}

impl ActEnd {
    pub(crate) fn of_status(status: Option<u8>) -> Self {
        Self { status, says: String::new() }
    }
}

/// Takes the arguments `--control URL ACTION SERIAL`, and from standard input those that a client
/// of the product sent, as JSON.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(arguments: &[String]) -> ExitCode {
    let [flag, control, action, serial] = arguments else { return fail("usage: act --control URL ACTION SERIAL") };
    let mut input = String::new();
    if flag != "--control" || std::io::stdin().read_to_string(&mut input).is_err() {
        return fail("expected --control, and a text on standard input");
    }
    match net::post(control, &format!("pads/{serial}/act/{action}"), &input).await {
        Ok(ActEnd { status: Some(status), says }) => {
            print!("{says}");
            ExitCode::from(status)
        }
        Ok(ActEnd { status: None, says: _ }) => std::process::abort(),
        Err(error) => fail(&format!("{action} {serial}: {error}")),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("armcloud-double act: {why}");
    ExitCode::from(2)
}
