//! The state of the console, which its pages share.

use crate::door::Door;
use std::collections::HashMap;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use tokio::sync::Notify;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::ignore_poison;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_operator::answers::OperatorAnswer;
use toolwarrant_operator::socket::OperatorGroups;

pub(crate) struct ConsoleState {
    pub(crate) catalogue: &'static Catalogue,
    /// Of the service, without `/mcp`.
    pub(crate) url: String,
    pub(crate) clock: Clock,
    pub(crate) door: Door,
    pub(crate) groups: OperatorGroups,
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
    pub(crate) address: SocketAddr,
    /// True once a link to the plain address was made.
    pub(crate) is_plain: bool,
    /// True beyond this machine.
    pub(crate) is_public: bool,
    /// True if it stays open without a session.
    pub(crate) stays: bool,
}

impl Place {
    /// Returns a host with the port, if browsers send it.
    fn authority(&self, host: impl Display) -> String {
        let usual = if self.is_public { 443 } else { 80 };
        if self.address.port() == usual { host.to_string() } else { format!("{host}:{}", self.address.port()) }
    }

    pub(crate) fn host_and_port(&self) -> String {
        self.authority(&self.host)
    }

    pub(crate) fn plain_host(&self) -> String {
        match self.address.ip() {
            IpAddr::V4(ip) => self.authority(ip),
            IpAddr::V6(ip) => self.authority(format!("[{ip}]")),
        }
    }
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name)
}

/// The latest answers to questions that take long, by their first word.
#[derive(Default)]
pub(crate) struct Examined {
    answers: Mutex<HashMap<&'static str, (Timestamp, OperatorAnswer)>>,
    /// One is asked at a time.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Examined {
    pub(crate) fn keep(&self, name: &'static str, at: Timestamp, answer: OperatorAnswer) {
        ignore_poison(self.answers.lock()).insert(name, (at, answer));
    }

    pub(crate) fn latest(&self, name: &str) -> Option<(Timestamp, OperatorAnswer)> {
        ignore_poison(self.answers.lock()).get(name).cloned()
    }
}

impl ConsoleState {
    pub(crate) fn new(
        (catalogue, url): (&'static Catalogue, String),
        clock: Clock,
        random: Random,
        groups: OperatorGroups,
    ) -> Self {
        Self {
            catalogue,
            url,
            door: Door::new(clock.clone(), random),
            clock,
            groups,
            examined: Examined::default(),
            ended: Notify::new(),
            place: Mutex::default(),
        }
    }

    pub(crate) fn is_at(&self, host: &str) -> bool {
        let place = ignore_poison(self.place.lock());
        let Some(place) = place.as_ref() else { return false };
        if place.is_public {
            return host == place.host_and_port();
        }
        // A port that was forwarded is another one in the browser.
        let name = without_port(host);
        name == place.host || place.is_plain && ["localhost", without_port(&place.plain_host())].contains(&name)
    }
}
