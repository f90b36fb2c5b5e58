//! The tools of a phone: this program under the names that stand in a pad's PATH. Each takes the options that it is listed with, and
//! refuses others as the real one does. None of them reaches anything but this machine's loopback addresses.

mod curl;
mod toybox;

use crate::net;
use crate::traffic::{Hop, Journey, Way};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio::net::TcpStream;

/// What every phone has. `cat` shows the pad's own values of some files of /proc.
pub(crate) const ALWAYS: [&str; 4] = ["cat", "getprop", "sleep", "toybox"];

/// What the tools know of their phone, in the file that [`Self::VARIABLE`] names.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Phone {
    pub(crate) pad: String,
    /// The URL of the double's own calls.
    pub(crate) control: String,
    /// Those of `curl`, `wget` and `nc` that are there.
    pub(crate) tools: Vec<String>,
    pub(crate) wget_refuses_quiet: bool,
    /// Text by path; without one, the file cannot be read.
    pub(crate) files: BTreeMap<String, Option<String>>,
    pub(crate) properties: BTreeMap<String, String>,
}

impl Phone {
    pub(crate) const VARIABLE: &str = "ARMCLOUD_DOUBLE_PHONE";

    fn read() -> Option<Self> {
        let path = std::env::var_os(Self::VARIABLE)?;
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Asks which way a request goes.
    async fn way(&self, host: &str, port: u16, proxy: Option<Hop>) -> io::Result<Way> {
        let journey = Journey { pad: self.pad.clone(), host: host.to_owned(), port, proxy };
        let body = serde_json::to_string(&journey)?;
        let control = self.control.trim_start_matches("http://").trim_end_matches("/double");
        let address: SocketAddr = control.parse().map_err(io::Error::other)?;
        let request =
            format!("POST /double/route HTTP/1.1\r\nHost: {control}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let reply = net::exchange(TcpStream::connect(address).await?, request.as_bytes()).await?;
        let reply = reply.ok_or_else(|| io::Error::other("the double does not answer"))?;
        Ok(serde_json::from_slice(&reply.body)?)
    }
}

/// How a tool ends: its exit status, and what it says of that on stderr.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    fn new(status: u8, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

/// Whether a phone may have a tool of this name.
pub(crate) fn is_tool(name: &str) -> bool {
    ALWAYS.contains(&name) || ["curl", "wget", "nc"].contains(&name)
}

/// Runs a tool to its end.
pub(crate) fn run(name: &str, arguments: &[String]) -> ExitCode {
    let Some(phone) = Phone::read() else {
        eprintln!("{name}: this runs in the shell of a pad alone: `{}` names no phone", Phone::VARIABLE);
        return ExitCode::from(126);
    };
    let ended = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let ended = runtime.block_on(async {
                match name {
                    "curl" => curl::run(&phone, arguments).await,
                    _ => toybox::run(&phone, name, arguments).await,
                }
            });
            // Nobody waits for a stdin that stays open.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::new(126, format!("{name}: {error}"))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { status, message }) => {
            if !message.is_empty() {
                eprintln!("{message}");
            }
            ExitCode::from(status)
        }
    }
}
