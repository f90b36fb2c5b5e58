//! The rows of the platform's lists about phones, which it calls *pads*, shown in the contract's
//! terms.
//!
//! Members may be missing or of another type. A value that cannot be read counts as missing, and a
//! row without a code is dropped. [`conditions`] is the only table of states, and [`views`] makes a
//! snapshot of a row.

mod conditions;
mod loose;
mod pad;
mod views;

pub use pad::{Pad, PadViews};
pub use views::{Abilities, Reach, UnservedOperations};

use super::api::{Form, Rows};
use crate::adapter_kit::phone_ledger::Recoded;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolwarrant::base::json;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PadRows {
    pub pads: Vec<Pad>,
    /// Includes rows that could not be read.
    pub count: usize,
    /// The rows were in an object.
    pub paged: bool,
}

impl<'de> Deserialize<'de> for PadRows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let pad = |row: &str| Ok(json::read::<Pad>(row).ok().filter(|pad| pad.pad_code.is_some()));
        let Rows { rows, count, form } = deserialize_rows(from, pad)?;
        Ok(Self { pads: rows, count, paged: form == Form::Page })
    }
}

/// From `queryPadIdChangeRecords`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeChanges(pub Vec<Recoded>);

impl<'de> Deserialize<'de> for CodeChanges {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Change {
            #[serde(deserialize_with = "loose::id")]
            old_pad_code: Option<String>,
            #[serde(deserialize_with = "loose::id")]
            new_pad_code: Option<String>,
        }
        let change = |row: &str| {
            let change = json::read(row).ok();
            Ok(change.and_then(|Change { old_pad_code, new_pad_code }| {
                Some(Recoded { from: old_pad_code?, to: new_pad_code? })
            }))
        };
        Ok(Self(deserialize_rows(from, change)?.rows))
    }
}

/// Refuses an object that is neither a list nor a row, which must not count as an empty list.
fn deserialize_rows<'de, D: Deserializer<'de>, T>(
    from: D,
    keep: fn(&str) -> serde_json::Result<Option<T>>,
) -> Result<Rows<T>, D::Error> {
    let rows = Rows::read(<&RawValue>::deserialize(from)?.get(), keep).map_err(D::Error::custom)?;
    let is_neither = rows.form == Form::One && rows.rows.is_empty();
    if is_neither { Err(D::Error::custom("an object without rows")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests;
