//! One pad: what it is, the condition that it is in, and the conditions that it was in, for lists that lag.

use crate::sign::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A list can show nothing that is older than this many changes of its pad.
const REMEMBERED: usize = 32;

/// The place of a pad in the fleet, from 0. It stays when the pad's code changes; its `equipmentId` is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seat(pub(crate) usize);

impl Seat {
    const FIRST_EQUIPMENT: i64 = 5_000_001;

    /// The purchased seat's number.
    pub(crate) fn equipment(self) -> i64 {
        Self::FIRST_EQUIPMENT + i64::try_from(self.0).unwrap_or(i64::MAX / 2)
    }

    pub(crate) fn of_equipment(equipment: i64) -> Option<Self> {
        usize::try_from(equipment - Self::FIRST_EQUIPMENT).ok().map(Self)
    }
}

#[derive(Debug)]
pub(crate) struct Pad {
    pub(crate) code: String,
    pub(crate) seat: Seat,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// `13`, `14` or the like.
    pub(crate) android: &'static str,
    pub(crate) model: &'static str,
    /// When the fleet was made, in milliseconds of the Unix epoch, as all times here.
    pub(crate) created: u64,
    pub(crate) condition: Condition,
    /// When the container started.
    pub(crate) started: u64,
    /// How often it did since the fleet was made.
    pub(crate) restarts: u64,
    /// Tokens of the screen.
    pub(crate) sessions: Vec<String>,
    /// Conditions with the times until which they held.
    pub(crate) before: Vec<(u64, Condition)>,
}

/// What an account has bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the month: it cannot be turned off.
    Ordinary,
    /// By the hour: `timingPadOn` and `timingPadOff`.
    Timing,
    /// With its storage in the network: `batch/boot/on` and `batch/off`.
    NetStorage,
}

/// What can be read of a pad, and changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) pad_status: i64,
    pub(crate) online: bool,
    pub(crate) cvm_status: i64,
    pub(crate) proxy: Option<Proxy>,
}

/// What `setProxy` has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `socks5`, `http-relay`, or whatever was sent.
    pub(crate) scheme: String,
    /// `user:password`, each possibly empty.
    pub(crate) login: Option<String>,
    /// Hosts that are reached directly.
    pub(crate) bypass: Vec<String>,
}

impl Proxy {
    /// Without the password: `login` is the SHA-256 of `user:password` in hexadecimal digits, or null.
    pub(crate) fn show(&self) -> Value {
        let Self { host, port, scheme, login, bypass: _ } = self;
        let login = login.as_ref().map(|login| hex(&Sha256::digest(login.as_bytes())));
        json!({"host": host, "port": port, "scheme": scheme, "login": login})
    }
}

impl Pad {
    /// Running, and reachable for commands.
    pub(crate) fn is_up(&self) -> bool {
        self.condition.pad_status == 10 && self.condition.online
    }

    /// Changes its condition, and remembers the one before.
    pub(crate) fn change(&mut self, now: u64, change: impl FnOnce(&mut Condition)) {
        let before = self.condition.clone();
        change(&mut self.condition);
        if before != self.condition {
            self.before.push((now, before));
            if self.before.len() > REMEMBERED {
                self.before.remove(0);
            }
        }
    }

    /// Its container starts. Two starts never show the same time, which is read in hundredths of a second.
    pub(crate) fn start(&mut self, now: u64) {
        self.started = now.max(self.started + 20);
        self.restarts += 1;
    }

    /// The condition that held at a time.
    pub(crate) fn at(&self, time: u64) -> &Condition {
        self.before.iter().find(|(until, _)| *until > time).map_or(&self.condition, |(_, condition)| condition)
    }
}
