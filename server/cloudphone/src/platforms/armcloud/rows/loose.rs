//! Members that have the type of the day. What is neither a text nor a number is as if it were not there.

use crate::platforms::armcloud::api::Int;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolwarrant::Untrusted;

/// A whole number, or a text of one.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Int::of(&Value::deserialize(from)?).map(|Int(number)| number))
}

/// Longest id, in bytes.
const ID_MAX: usize = 64;

/// An id of the platform, as it is. One that is empty, or too long for an id of ours, is none.
pub(super) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(text(from)?.filter(|id| (1..=ID_MAX).contains(&id.len())))
}

/// A text that is shown. What is empty once it is cleaned is none.
pub(super) fn untrusted<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Untrusted>, D::Error> {
    Ok(text(from)?.map(|text| Untrusted::clean(&text)).filter(|text| !text.as_str().is_empty()))
}

/// A text, or a number as one.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text),
        _ => None,
    })
}
