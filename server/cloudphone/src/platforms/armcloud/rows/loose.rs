//! Parsers for members whose type varies. A value that is neither a text nor a number counts as
//! missing.

use crate::platforms::armcloud::api::{Int, Scalar};
use serde::{Deserialize, Deserializer};
use toolwarrant::text::Untrusted;

pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Int::of(&Scalar::deserialize(from)?).map(|Int(number)| number))
}

const ID_MAX: usize = 64;

pub(super) fn id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(text(from)?.filter(|id| (1..=ID_MAX).contains(&id.len())))
}

pub(super) fn deserialize_untrusted<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Untrusted>, D::Error> {
    Ok(text(from)?.map(|text| Untrusted::clean(&text)).filter(|text| !text.as_str().is_empty()))
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Scalar::deserialize(from)?.into_string())
}
