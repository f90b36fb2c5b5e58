//! A phone of the list, as the ledger stores it.

use super::facts::{Mark, PhoneFacts};
use super::states::AdbState;
use super::wire::PhoneAddress;
use crate::adapter_kit::phone_ledger::Row;
use crate::phones::port::{DeviceSnapshot, PlatformName};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdbRow {
    pub(super) address: PhoneAddress,
    pub(super) state: AdbState,
    pub(super) facts: PhoneFacts,
}

/// For an old row, and for a current one.
pub(super) type RowViews = [OnceLock<Arc<DeviceSnapshot>>; 2];

impl AdbRow {
    pub(super) fn new(address: PhoneAddress) -> Self {
        Self { address, state: AdbState::Absent, facts: PhoneFacts::default() }
    }

    /// Returns the row of a phone that an earlier process knew. Of one that has left, only the mark
    /// is known.
    pub(super) fn restore((code, serial, row): (String, Option<String>, Option<Self>)) -> Option<Self> {
        row.or_else(|| {
            let mut row = Self::new(PhoneAddress::parse(&code)?);
            row.facts.mark = Some(Mark::parse(&serial?)?);
            Some(row)
        })
    }

    /// Returns true if a phone that shows these facts is this one, as far as is known.
    pub(super) fn may_be(&self, shown: &PhoneFacts) -> bool {
        let PhoneFacts { identity, mark, .. } = &self.facts;
        (identity.is_empty() || *identity == shown.identity) && *mark == shown.mark
    }

    pub(super) fn answers(&self) -> bool {
        matches!(self.state, AdbState::Running | AdbState::Booting | AdbState::Unbooted)
    }
}

impl Row for AdbRow {
    type Made = RowViews;

    fn code(&self) -> &str {
        self.address.as_str()
    }

    fn name(&self) -> &str {
        self.facts.name()
    }

    /// Returns the mark, because clones share what they say of themselves.
    fn serial(&self) -> Option<String> {
        self.facts.mark.as_ref().map(|mark| mark.as_str().to_owned())
    }

    fn has_answered(&self) -> bool {
        self.facts != PhoneFacts::default()
    }

    fn plain_id(&self, platform: &PlatformName) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        format!("{platform}-{}", self.address.as_str().chars().map(plain).collect::<String>())
    }
}
