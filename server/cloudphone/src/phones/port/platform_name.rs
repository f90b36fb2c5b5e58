//! The name that an operator gives a platform.

use std::borrow::Borrow;
use std::fmt;
use thiserror::Error;
use toolwarrant::text::Ours;

/// The name of a platform: 1 to 16 of a-z and 0-9. The ids of its phones begin with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlatformName(Box<str>);

/// The error for a text that is not a [`PlatformName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a platform's name has 1 to 16 characters, each one of a-z or 0-9")]
pub struct NoPlatformName;

impl PlatformName {
    /// Parses a name.
    ///
    /// # Errors
    /// The text is not a [`PlatformName`].
    pub fn parse(text: &str) -> Result<Self, NoPlatformName> {
        let admitted = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if admitted && (1..=16).contains(&text.len()) { Ok(Self(text.into())) } else { Err(NoPlatformName) }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PlatformName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PlatformName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ours for PlatformName {
    fn say(&self, words: &mut String) {
        words.push_str(&self.0);
    }
}
