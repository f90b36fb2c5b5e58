//! A phone of the list, as the ledger stores it.

use super::facts::PhoneFacts;
use super::states::AdbState;
use super::wire::PhoneAddress;
use crate::adapter_kit::phone_ledger::Row;
use crate::phones::port::{DeviceSnapshot, PlatformName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AdbRow {
    /// The serial, or `usb:` and the USB path.
    pub(super) address: String,
    pub(super) state: AdbState,
    pub(super) facts: PhoneFacts,
}

/// For an old row, and for a current one.
pub(super) type RowViews = [OnceLock<Arc<DeviceSnapshot>>; 2];

impl AdbRow {
    pub(super) fn new(address: &str) -> Self {
        let (state, facts) = (AdbState::Absent, PhoneFacts::default());
        Self { address: address.to_owned(), state, facts }
    }

    pub(super) fn answers(&self) -> bool {
        matches!(self.state, AdbState::Running | AdbState::Booting)
    }
}

impl Row for AdbRow {
    type Made = RowViews;

    fn code(&self) -> &str {
        &self.address
    }

    /// Returns the mark, because clones share what they say of themselves.
    fn serial(&self) -> Option<String> {
        self.facts.mark.clone()
    }

    fn has_answered(&self) -> bool {
        self.facts != PhoneFacts::default()
    }

    fn plain_id(&self, platform: &PlatformName) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        format!("{platform}-{}", self.address.chars().map(plain).collect::<String>())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct LastList {
    pub(super) rows: BTreeMap<PhoneAddress, AdbRow>,
    /// Last seen as second connections of phones.
    pub(super) seconds: BTreeSet<PhoneAddress>,
    /// The serial, and why it is not served.
    pub(super) left_out: Vec<(String, &'static str)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_dash_for_what_ids_lack() {
        let platform = PlatformName::parse("rack").unwrap();
        for (address, id) in [("192.0.2.7:5555", "rack-192-0-2-7-5555"), ("usb:1-1.2", "rack-usb-1-1-2")] {
            assert_eq!(AdbRow::new(address).plain_id(&platform), id);
        }
    }
}
