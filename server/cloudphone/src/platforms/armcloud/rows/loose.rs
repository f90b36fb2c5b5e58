//! Parsers for members whose type varies. A value that is neither a text nor a number counts as
//! missing.

use crate::platforms::armcloud::api::{Int, Scalar};
use serde::{Deserialize, Deserializer};
use toolwarrant::text::Untrusted;

/// Reads a whole number, or a text of one.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Int::of(&Scalar::deserialize(from)?).map(|Int(number)| number))
}

/// The longest id, in bytes.
const ID_MAX: usize = 64;

/// Reads an id of the platform, unchanged. An id that is empty or too long counts as missing.
pub(super) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(text(from)?.filter(|id| (1..=ID_MAX).contains(&id.len())))
}

/// Reads a text that is shown. A text that is empty after cleaning counts as missing.
pub(super) fn deserialize_untrusted<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Untrusted>, D::Error> {
    Ok(text(from)?.map(|text| Untrusted::clean(&text)).filter(|text| !text.as_str().is_empty()))
}

/// Reads a text, or a number as text.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Scalar::deserialize(from)?.into_string())
}
