//! The knowledge of a phone or an account, apart from rows.

use crate::adapter_kit::shell::Tool;
use crate::phones::port::Direction;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use toolwarrant::Timestamp;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knowledge {
    /// `None` until it is read, or a proxy is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_address: Option<OwnAddress>,
    /// On this identity, the address of requests was seen to follow a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// On this identity, the start was seen to follow a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnAddress {
    /// Read before this server ever sent a proxy.
    Read(IpAddr),
    /// Not read by then, so it is never known.
    Unread,
}

/// The last reading of a phone's addresses, of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastReading {
    /// `None` until a reading was tried.
    pub at: Option<Timestamp>,
    /// The name of the phone at the last reading without a proxy.
    pub name: String,
    /// From where an ordinary request came.
    pub seen: Option<IpAddr>,
    /// The program of the phone. `None` if the last reading did not show it.
    pub tool: Option<Tool>,
}

impl Knowledge {
    #[must_use]
    pub fn proof(&self, direction: Direction) -> Option<&str> {
        match direction {
            Direction::Exit => self.exit.as_deref(),
            Direction::Start => self.start.as_deref(),
        }
    }

    pub fn set_proof(&mut self, direction: Direction, identity: Option<String>) {
        match direction {
            Direction::Exit => self.exit = identity,
            Direction::Start => self.start = identity,
        }
    }
}
