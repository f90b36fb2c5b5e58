//! One pad: its identity, its present condition, and its earlier conditions, for lists that lag.

use crate::scene::Scene;
use crate::sign::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

const REMEMBERED: usize = 32;

/// In the fleet, from 0. It stays the same when the pad's code changes; `equipmentId` is derived
/// from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seat(pub(crate) usize);

impl Seat {
    const FIRST_EQUIPMENT: i64 = 5_000_001;

    pub(crate) fn equipment(self) -> i64 {
        Self::FIRST_EQUIPMENT + i64::try_from(self.0).unwrap_or(i64::MAX / 2)
    }

    /// The others are paid by the month, and cannot be turned off.
    pub(crate) fn is_paid_by_time(self) -> bool {
        self.0 % 8 == 6
    }

    pub(crate) fn of_equipment(equipment: i64) -> Option<Self> {
        usize::try_from(equipment - Self::FIRST_EQUIPMENT).ok().map(Self)
    }
}

#[derive(Debug)]
pub(crate) struct Pad {
    pub(crate) code: String,
    pub(crate) seat: Seat,
    pub(crate) name: String,
    pub(crate) android: &'static str,
    pub(crate) model: &'static str,
    /// The creation of the fleet, in milliseconds since the Unix epoch, as all times here.
    pub(crate) created: u64,
    pub(crate) condition: Condition,
    pub(crate) is_shown_up: bool,
    /// Over the network since its last start.
    pub(crate) is_connected: bool,
    pub(crate) started: u64,
    /// Since the fleet was created.
    pub(crate) restarts: u64,
    /// The pad that its connection over adb leads to, if that is another one.
    pub(crate) leads_to: Option<Seat>,
    /// The number of pictures and of inputs, by the name of the tool.
    pub(crate) screen_acts: BTreeMap<String, u64>,
    pub(crate) scene: Scene,
    /// Each with the time at which it ended.
    pub(crate) before: Vec<(u64, Condition)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) pad_status: i64,
    pub(crate) online: bool,
    pub(crate) cvm_status: i64,
    pub(crate) proxy: Option<Proxy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `socks5`, `http-relay`, or any other text that was sent.
    pub(crate) scheme: String,
    pub(crate) login: Option<String>,
}

impl Proxy {
    /// Shows in `login` SHA-256 of `user:password` in hexadecimal digits, or null.
    pub(crate) fn show(&self) -> Value {
        let Self { host, port, scheme, login } = self;
        let login = login.as_ref().map(|login| hex(&Sha256::digest(login.as_bytes())));
        json!({"host": host, "port": port, "scheme": scheme, "login": login})
    }
}

impl Pad {
    pub(crate) fn is_up(&self) -> bool {
        self.is_started() && self.condition.online
    }

    /// Returns true if the container runs, even if the pad has not booted.
    pub(crate) fn is_started(&self) -> bool {
        self.condition.pad_status == 10
    }

    pub(crate) fn change(&mut self, now: u64, change: impl FnOnce(&mut Condition)) {
        self.is_shown_up = false;
        let before = self.condition.clone();
        change(&mut self.condition);
        if before != self.condition {
            self.before.push((now, before));
            if self.before.len() > REMEMBERED {
                self.before.remove(0);
            }
        }
    }

    /// Makes start times different, because they are read in hundredths of a second.
    pub(crate) fn start(&mut self, now: u64) {
        self.started = now.max(self.started + 20);
        self.restarts += 1;
        self.is_connected = false;
    }

    pub(crate) fn at(&self, time: u64) -> &Condition {
        self.before.iter().find(|(until, _)| *until > time).map_or(&self.condition, |(_, condition)| condition)
    }
}
