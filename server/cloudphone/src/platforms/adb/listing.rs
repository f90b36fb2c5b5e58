//! Reads the list of the adb server, and asks each phone in it that the operator serves.
//!
//! A phone runs only if it answers. All phones are asked at the same time, those that were silent
//! last, and each has its own deadline: a silent phone costs the others nothing. A phone that has
//! two connections is listed once. Start at [`AdbListing`].

use super::asking::{ANSWER_WITHIN, PhoneAsker};
use super::facts::PhoneFacts;
use super::lines::{PhonePattern, SelectedPhones, parse_list, select};
use super::server::AdbServer;
use super::states::AdbState;
use super::wire::PhoneAddress;
use crate::adapter_kit::phone_ledger::refresh::Source;
use crate::adapter_kit::phone_ledger::{Recoded, Row};
use crate::phones::port::{DeviceSnapshot, PlatformName, Unreachable};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::task::JoinSet;
use toolwarrant::base::ignore_poison;
use toolwarrant::{BoxFuture, Timestamp};

/// The number of phones that are asked at a time.
const ASKED_AT_ONCE: usize = 128;

/// A phone of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AdbRow {
    /// Its serial, or `usb:` and its USB path.
    pub(super) address: String,
    pub(super) state: AdbState,
    /// The readings of its last answer.
    pub(super) facts: PhoneFacts,
}

/// The views of a row, each made once: of an old row, and of a current one.
pub(super) type RowViews = [OnceLock<Arc<DeviceSnapshot>>; 2];

impl Row for AdbRow {
    type Made = RowViews;

    fn code(&self) -> &str {
        &self.address
    }

    /// Nothing else stays with a phone: clones share what they say of themselves.
    fn serial(&self) -> Option<String> {
        None
    }

    fn plain_id(&self, platform: &PlatformName) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        format!("{platform}-{}", self.address.chars().map(plain).collect::<String>())
    }
}

/// Lists the phones of an adb server.
pub(super) struct AdbListing {
    pub(super) asker: PhoneAsker,
    only: Vec<PhonePattern>,
    last: Mutex<LastList>,
}

/// The last list.
#[derive(Clone, Debug, Default)]
pub(super) struct LastList {
    /// The phones that are served.
    pub(super) rows: BTreeMap<PhoneAddress, AdbRow>,
    /// The other lines: a serial, and the reason why it is not served.
    pub(super) left_out: Vec<(String, &'static str)>,
}

impl AdbListing {
    pub(super) fn new(asker: PhoneAsker, only: Vec<PhonePattern>) -> Self {
        Self { asker, only, last: Mutex::default() }
    }

    pub(super) fn server(&self) -> &AdbServer {
        &self.asker.server
    }

    /// Reads the version of the server's protocol.
    ///
    /// # Errors
    /// The server cannot be reached, or is something else.
    pub(super) async fn version(&self) -> Result<u32, Unreachable> {
        let text = self.server().ask("host:version", self.until()).await?.text().await?;
        u32::from_str_radix(&text, 16).map_err(|_| Unreachable("what listens there is not an adb server".into()))
    }

    async fn select(&self) -> Result<SelectedPhones, Unreachable> {
        let text = self.server().ask("host:devices-l", self.until()).await?.text().await?;
        Ok(select(&self.only, &parse_list(&text)))
    }

    /// Reads one phone again.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) async fn read_one(&self, address: &PhoneAddress) -> Result<AdbRow, Unreachable> {
        let state = self.select().await?.served.remove(address).unwrap_or(AdbState::Absent);
        let (state, facts) = self.asker.ask(address, state).await;
        Ok(self.row(address, state, facts))
    }

    pub(super) fn until(&self) -> Timestamp {
        self.server().clock.now().plus(ANSWER_WITHIN)
    }

    /// Reads the list, and asks all phones in it.
    async fn rows(&self) -> Result<Vec<AdbRow>, Unreachable> {
        let SelectedPhones { served, left_out } = self.select().await?;
        let was_silent =
            |address: &PhoneAddress| self.last().rows.get(address).is_some_and(|row| row.state == AdbState::Silent);
        let (later, first): (Vec<_>, Vec<_>) = served.into_iter().partition(|(address, _)| was_silent(address));
        let mut waiting = first.into_iter().chain(later);
        let (mut asked, mut rows) = (JoinSet::new(), BTreeMap::new());
        loop {
            while asked.len() < ASKED_AT_ONCE
                && let Some((address, state)) = waiting.next()
            {
                let asker = self.asker.clone();
                asked.spawn(async move {
                    let answer = asker.ask_or_revive(&address, state).await;
                    (address, answer)
                });
            }
            match asked.join_next().await {
                Some(Ok((address, (state, facts)))) => {
                    drop(rows.insert(address.clone(), self.row(&address, state, facts)))
                }
                Some(Err(error)) => tracing::error!(%error, "a phone could not be asked"),
                None => break,
            }
        }
        let last = LastList { rows, left_out }.without_second_connections();
        *self.last() = last.clone();
        Ok(last.rows.into_values().collect())
    }

    fn row(&self, address: &PhoneAddress, state: AdbState, facts: Option<PhoneFacts>) -> AdbRow {
        let known = || self.last().rows.get(address).map(|row| row.facts.clone()).unwrap_or_default();
        AdbRow { address: address.to_string(), state, facts: facts.unwrap_or_else(known) }
    }

    /// Returns the last list.
    pub(super) fn last(&self) -> MutexGuard<'_, LastList> {
        ignore_poison(self.last.lock())
    }
}

impl Source<AdbRow> for AdbListing {
    fn list(&self) -> BoxFuture<'_, Result<Vec<AdbRow>, Unreachable>> {
        Box::pin(self.rows())
    }

    fn code_changes(&self) -> BoxFuture<'_, Result<Vec<Recoded>, Unreachable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// A server on this machine needs no rest, so a list is tried again soon.
    fn pause_end(&self) -> Option<Timestamp> {
        Some(self.server().clock.now())
    }
}

impl LastList {
    /// Leaves out the second connection of a phone, such as over the network beside USB. Two phones
    /// that run at the same time differ in their identity or their start.
    fn without_second_connections(self) -> Self {
        let Self { rows, mut left_out } = self;
        let (mut seen, mut kept) = (HashSet::new(), BTreeMap::new());
        let is_of_network = |address: &str| address.contains(':') && !address.starts_with("usb:");
        let (later, first): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(address, _)| is_of_network(address.as_str()));
        for (address, row) in first.into_iter().chain(later) {
            let PhoneFacts { identity, start, .. } = &row.facts;
            let answers = matches!(row.state, AdbState::Running | AdbState::Booting) && !identity.is_empty();
            let phone = start.as_ref().filter(|_| answers).map(|start| (identity.clone(), start.clone()));
            if phone.is_none_or(|phone| seen.insert(phone)) {
                kept.insert(address, row);
            } else {
                left_out.push((row.address, "it is a second connection of a phone that is served"));
            }
        }
        Self { rows: kept, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(address: &str, state: AdbState, identity: &str, start: &str) -> AdbRow {
        let facts =
            PhoneFacts { identity: identity.to_owned(), start: Some(start.to_owned()), ..PhoneFacts::default() };
        AdbRow { address: address.to_owned(), state, facts }
    }

    #[test]
    fn a_phone_with_two_connections_is_one_phone_and_clones_are_two() {
        let rows = [
            row("127.0.0.1:5555", AdbState::Running, "EMU", "a:1"),
            row("emulator-5554", AdbState::Running, "EMU", "a:1"),
            row("emulator-5556", AdbState::Running, "EMU", "b:1"),
            row("silent", AdbState::Silent, "EMU", "a:1"),
            row("nameless-1", AdbState::Running, "", "c:1"),
            row("nameless-2", AdbState::Running, "", "c:1"),
        ];
        let rows = rows.map(|row| (PhoneAddress::parse(&row.address).unwrap(), row)).into();
        let LastList { rows, left_out } = LastList { rows, left_out: Vec::new() }.without_second_connections();
        let kept: Vec<_> = rows.keys().map(PhoneAddress::as_str).collect();
        assert_eq!(kept, ["emulator-5554", "emulator-5556", "nameless-1", "nameless-2", "silent"]);
        assert_eq!(left_out.len(), 1);
    }

    #[test]
    fn an_id_has_a_dash_for_what_ids_lack() {
        let platform = PlatformName::parse("rack").unwrap();
        for (address, id) in [("192.0.2.7:5555", "rack-192-0-2-7-5555"), ("usb:1-1.2", "rack-usb-1-1-2")] {
            assert_eq!(row(address, AdbState::Running, "", "").plain_id(&platform), id);
        }
    }
}
