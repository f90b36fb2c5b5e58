//! The phone that a tool runs on, and the failure of a tool.

use crate::display::Display;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(crate) const ALWAYS: [&str; 10] =
    ["am", "df", "dumpsys", "getprop", "input", "monkey", "screencap", "setprop", "toybox", "uiautomator"];

/// A switch can leave out some.
pub(crate) const CHOSEN: [&str; 3] = ["curl", "wget", "nc"];

pub(crate) const OF_THIS_MACHINE: [&str; 7] = ["cat", "chown", "grep", "mv", "rm", "sleep", "tail"];

/// The file that [`Self::VARIABLE`] names has this as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Phone {
    pub(crate) pad: String,
    pub(crate) control: String,
    pub(crate) adb: SocketAddr,
    pub(crate) tools: Vec<String>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) display: Display,
}

impl Phone {
    pub(crate) const VARIABLE: &str = "ARMCLOUD_DOUBLE_PHONE";

    pub(super) fn read() -> Option<Self> {
        let path = std::env::var_os(Self::VARIABLE)?;
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: u8,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(status: u8, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}
