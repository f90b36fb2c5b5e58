//! What the platform's lists tell of a phone, a *pad*: read from whatever form the answer has, and shown in our terms.
//!
//! The lists are not of one mind: a number may be a string, a member may be missing, null or of another type, and the rows may be an
//! array or stand in an object. What cannot be read is as if it were not there; a row without a code is none. [`conditions`] is the one
//! table of states, [`shown`] makes a snapshot of a row. Sends nothing.

mod conditions;
mod loose;
mod shown;

pub use shown::{Abilities, PadViews, Reach};

use super::super::roster::{Recoded, Row};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use toolwarrant::Untrusted;

/// What the lists tell of a pad. Members have the platform's names, in answers and in the roster's file.
///
/// Its proxy is not among them: `proxyIp` belongs to proxies that the platform manages, without a port and a scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pad {
    /// The platform's id of the pad, which may pass to another.
    #[serde(deserialize_with = "loose::id")]
    pad_code: Option<String>,
    /// The seat that was purchased (VMOS, VSPhone).
    #[serde(deserialize_with = "loose::id", skip_serializing_if = "Option::is_none")]
    equipment_id: Option<String>,
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    pad_name: Option<Untrusted>,
    /// `infos`.
    #[serde(deserialize_with = "loose::number", skip_serializing_if = "Option::is_none")]
    pad_status: Option<i64>,
    /// `userPadList`.
    #[serde(deserialize_with = "loose::number", skip_serializing_if = "Option::is_none")]
    cvm_status: Option<i64>,
    /// Whether the platform is connected to the pad: 0 or 1 (ARMCloud).
    #[serde(deserialize_with = "loose::number", skip_serializing_if = "Option::is_none")]
    online: Option<i64>,
    /// `13` or `Android13`.
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    android_version: Option<Untrusted>,
    /// `android14`.
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    image_version: Option<Untrusted>,
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    rom_version: Option<Untrusted>,
    /// `m2-3`.
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    pad_grade: Option<Untrusted>,
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    config_name: Option<Untrusted>,
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    good_name: Option<Untrusted>,
    /// The data centre.
    #[serde(deserialize_with = "loose::untrusted", skip_serializing_if = "Option::is_none")]
    idc_code: Option<Untrusted>,
}

impl Pad {
    /// Whether the platform says that the pad was deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self.pad_status, Some(conditions::DELETED | conditions::DELETED_IN_CALLBACKS))
    }

    /// Joins what two lists tell of one pad. Where both tell something, `self` has it.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            pad_code: self.pad_code.or(other.pad_code),
            equipment_id: self.equipment_id.or(other.equipment_id),
            pad_name: self.pad_name.or(other.pad_name),
            pad_status: self.pad_status.or(other.pad_status),
            cvm_status: self.cvm_status.or(other.cvm_status),
            online: self.online.or(other.online),
            android_version: self.android_version.or(other.android_version),
            image_version: self.image_version.or(other.image_version),
            rom_version: self.rom_version.or(other.rom_version),
            pad_grade: self.pad_grade.or(other.pad_grade),
            config_name: self.config_name.or(other.config_name),
            good_name: self.good_name.or(other.good_name),
            idc_code: self.idc_code.or(other.idc_code),
        }
    }
}

impl Row for Pad {
    type Made = PadViews;

    fn code(&self) -> &str {
        self.pad_code.as_deref().unwrap_or_default()
    }

    fn seat(&self) -> Option<String> {
        self.equipment_id.clone().filter(|seat| seat != "0" && !seat.starts_with('-'))
    }
}

/// The rows of an answer of `infos` or `userPadList`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PadRows {
    /// The pads that could be read.
    pub pads: Vec<Pad>,
    /// All rows, those too that could not be read.
    pub count: usize,
    /// Whether they came as a page, an object, and not as a plain array.
    pub paged: bool,
}

impl<'de> Deserialize<'de> for PadRows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Found { rows, paged } = Found::deserialize(from)?;
        let count = rows.len();
        let pad = |row: Box<RawValue>| serde_json::from_str::<Pad>(row.get()).ok();
        let pads = rows.into_iter().filter_map(pad).filter(|pad| pad.pad_code.is_some()).collect();
        Ok(Self { pads, count, paged })
    }
}

/// The answer of `queryPadIdChangeRecords`.
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
        let change = |row: Box<RawValue>| {
            let Change { old_pad_code, new_pad_code } = serde_json::from_str(row.get()).ok()?;
            Some(Recoded { from: old_pad_code?, to: new_pad_code? })
        };
        Ok(Self(Found::deserialize(from)?.rows.into_iter().filter_map(change).collect()))
    }
}

/// Rows in whatever they come: an array, an object that has one, or nothing.
#[derive(Default)]
struct Found {
    rows: Vec<Box<RawValue>>,
    paged: bool,
}

/// Members in which rows were seen. `rows` is a number: the size of a page.
const ROWS: [&str; 3] = ["pageData", "records", "data"];

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Found;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("rows, or an object with rows in `pageData` or `records`")
            }

            fn visit_unit<E>(self) -> Result<Found, E> {
                Ok(Found::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Found, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = from.next_element()? {
                    rows.push(row);
                }
                Ok(Found { rows, paged: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Found, A::Error> {
                let mut found = None;
                while let Some(name) = from.next_key::<String>()? {
                    let value: Box<RawValue> = from.next_value()?;
                    if ROWS.contains(&name.as_str()) {
                        found = serde_json::from_str::<Option<Vec<Box<RawValue>>>>(value.get()).ok().or(found);
                    }
                }
                // An object of another form must not pass for a platform without pads.
                let rows = found.ok_or_else(|| serde::de::Error::custom("an object without rows"))?;
                Ok(Found { rows: rows.unwrap_or_default(), paged: true })
            }
        }
        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests;
