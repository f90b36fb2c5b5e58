//! Strings that need care: text and addresses from outside, and secrets.
//!
//! [`Untrusted`] is text that others wrote: data to show, never an instruction. It has no
//! `Display`, so it cannot become a part of [`Words`](crate::wording::Words).

mod cleaning;
mod lines;
mod secret;
mod web_url;

pub use cleaning::clean;
pub use lines::{Altered, UntrustedText};
pub use secret::{Json, Secret, to_json};
pub use toolwarrant_common::{deceives, find_deceiving};
pub use web_url::{NoWebUrl, WebUrl};

use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use toolwarrant_common::{REMARK_MAX_CHARS, UNTRUSTED_MAX_CHARS};

/// Text from outside, on one line and capped, so that it cannot look like anything but a value.
///
/// Terminal control sequences, and characters that hide or reorder text, are removed. Control
/// characters and white space become one space. A longer text is cut and ends in `…`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Untrusted<const CAP: usize = UNTRUSTED_MAX_CHARS>(String);

/// A remark of an upstream, or text read from a target: for logs, timelines and evidence.
pub type Remark = Untrusted<REMARK_MAX_CHARS>;

impl<const CAP: usize> Untrusted<CAP> {
    /// Cleans and caps a text.
    #[must_use]
    pub fn clean(text: &str) -> Self {
        Self(cleaning::clean_and_cut(text, CAP))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const CAP: usize> From<&str> for Untrusted<CAP> {
    fn from(text: &str) -> Self {
        Self::clean(text)
    }
}

impl<const CAP: usize> From<String> for Untrusted<CAP> {
    fn from(text: String) -> Self {
        Self::clean(&text)
    }
}

impl<'de, const CAP: usize> Deserialize<'de> for Untrusted<CAP> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(from).map(|text| Self::clean(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn untrusted_text_is_clean_however_it_is_made() {
        let raw = "a\u{1b}[31m\u{202e}b\n";
        let stored = serde_json::to_string(raw).expect("JSON");
        for clean in [raw.into(), raw.to_owned().into(), json::read::<Untrusted>(&stored).expect("text")] {
            assert_eq!(clean, Untrusted::clean("ab"));
        }
    }

    #[test]
    fn a_cap_is_that_of_the_type() {
        let long = "x".repeat(1_000);
        let [name, remark] = [Untrusted::<64>::clean(&long).0, Remark::clean(&long).0].map(|text| text.chars().count());
        assert_eq!((name, remark), (UNTRUSTED_MAX_CHARS, REMARK_MAX_CHARS));
    }
}
