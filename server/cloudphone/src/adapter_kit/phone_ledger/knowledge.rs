//! The knowledge of a phone or an account, apart from rows.

use crate::phones::port::Direction;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The knowledge of a phone, or of the account as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knowledge {
    /// The address from which the phone makes requests without a proxy. `None` until it is read, or
    /// until a proxy is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_address: Option<OwnAddress>,
    /// The identity on which the address of requests was seen to follow a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// The identity on which the value that is read for a start was seen to follow a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// The address of a phone without a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnAddress {
    /// It was read before this server ever sent a proxy.
    Read(IpAddr),
    /// It was not read by then, so that it is never known.
    Unread,
}

impl Knowledge {
    /// Returns the identity on which a reading is proven.
    #[must_use]
    pub fn proof(&self, direction: Direction) -> Option<&str> {
        match direction {
            Direction::Exit => self.exit.as_deref(),
            Direction::Start => self.start.as_deref(),
        }
    }

    /// Sets or removes a proof.
    pub fn set_proof(&mut self, direction: Direction, identity: Option<String>) {
        match direction {
            Direction::Exit => self.exit = identity,
            Direction::Start => self.start = identity,
        }
    }
}
