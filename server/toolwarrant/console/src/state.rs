//! The state of the console, which its pages share.

use crate::door::Door;
use serde_json::Value;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use tokio::sync::Notify;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;

pub(crate) struct ConsoleState {
    pub(crate) catalogue: &'static Catalogue,
    pub(crate) clock: Clock,
    pub(crate) door: Door,
    pub(crate) examined: Examined,
    /// Sessions have ended.
    pub(crate) ended: Notify,
    pub(crate) place: Mutex<Option<Place>>,
}

/// The place of the open console.
pub(crate) struct Place {
    /// A name that nobody else has keeps the cookie from other programs on this machine: a browser
    /// sends cookies by host, and not by port.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// True once a link to the plain address was made.
    pub(crate) is_plain: bool,
    /// True beyond this machine.
    pub(crate) is_public: bool,
    /// True if it stays open without a session.
    pub(crate) stays: bool,
}

impl Place {
    /// Returns the host as browsers send it, which leave out the port of https.
    pub(crate) fn authority(&self) -> String {
        let Self { host, port, is_public, .. } = self;
        if *is_public && *port == 443 { host.clone() } else { format!("{host}:{port}") }
    }
}

/// The latest answers to questions that take long, by their first word.
#[derive(Default)]
pub(crate) struct Examined {
    answers: Mutex<HashMap<&'static str, (Timestamp, Value)>>,
    /// One is asked at a time.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Examined {
    pub(crate) fn keep(&self, name: &'static str, at: Timestamp, answer: Value) {
        ignore_poison(self.answers.lock()).insert(name, (at, answer));
    }

    pub(crate) fn latest(&self, name: &str) -> Option<(Timestamp, Value)> {
        ignore_poison(self.answers.lock()).get(name).cloned()
    }
}

impl ConsoleState {
    pub(crate) fn new(catalogue: &'static Catalogue, clock: Clock, random: Random) -> Self {
        Self {
            catalogue,
            door: Door::new(clock.clone(), random),
            clock,
            examined: Examined::default(),
            ended: Notify::new(),
            place: Mutex::default(),
        }
    }

    pub(crate) fn is_at(&self, host: &str) -> bool {
        let place = ignore_poison(self.place.lock());
        let is_plain = |place: &Place| place.is_plain && host == format!("{}:{}", Ipv4Addr::LOCALHOST, place.port);
        place.as_ref().is_some_and(|place| host == place.authority() || is_plain(place))
    }
}
