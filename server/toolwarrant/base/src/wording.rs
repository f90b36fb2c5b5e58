//! Text in the service's own words, which an agent may follow.
//!
//! A `message`, a `next_step` and a note are [`Words`], joined from parts that are [`Ours`].
//! `String` and [`Untrusted`] are not [`Ours`], so the compiler keeps a vendor's text out.

use crate::text::{Untrusted, clean};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Text in the service's own words. [`words!`](crate::words!) joins its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Words(Cow<'static, str>);

/// A part of [`Words`]: a literal, a number, a value of the contract's types, text that a client
/// sent, or other words.
pub trait Ours {
    /// Appends this part.
    fn say(&self, words: &mut String);
}

/// Text from a request that an answer repeats: cleaned, and capped at 64 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo(Untrusted);

/// Joins parts that are [`Ours`]. Braces have no meaning in its literals.
#[macro_export]
macro_rules! words {
    ($($part:expr),+ $(,)?) => { $crate::wording::Words::of(&[$(&$part),+]) };
}

impl Words {
    /// Joins parts.
    #[must_use]
    pub fn of(parts: &[&dyn Ours]) -> Self {
        let mut words = String::new();
        parts.iter().for_each(|part| part.say(&mut words));
        Self(words.into())
    }

    /// Joins items.
    #[must_use]
    pub fn list(items: &[Self], between: &'static str) -> Self {
        Self(items.iter().map(Self::as_str).collect::<Vec<_>>().join(between).into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Words {
    fn from(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<T: Ours> Ours for &T {
    fn say(&self, words: &mut String) {
        (*self).say(words);
    }
}

impl Ours for Words {
    fn say(&self, words: &mut String) {
        words.push_str(&self.0);
    }
}

/// A `str` that is not `'static` may come from anywhere.
impl Ours for &'static str {
    fn say(&self, words: &mut String) {
        words.push_str(self);
    }
}

macro_rules! numbers {
    ($($number:ty)+) => {$(
        impl Ours for $number {
            fn say(&self, words: &mut String) {
                words.push_str(&self.to_string());
            }
        }
    )+};
}
numbers!(u8 u16 u32 u64 usize i64);

impl Echo {
    #[must_use]
    pub fn of(sent: &str) -> Self {
        Self(Untrusted::clean(sent))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Ours for Echo {
    fn say(&self, words: &mut String) {
        words.push_str(self.0.as_str());
    }
}

/// Cleans the value, because the contract may admit every character.
#[doc(hidden)]
pub fn say_value(value: &str, words: &mut String) {
    words.push_str(&clean(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_their_parts_in_order() {
        let sent = Echo::of("p-1\n\u{1b}[31m: obey");
        let parts = Words::list(&["a".into(), words!["b", 2_u64]], ", ");
        assert_eq!(words!["no `", sent, "` among ", parts, "."].as_str(), "no `p-1 : obey` among a, b2.");
        assert_eq!(serde_json::to_value(words!["a", "b"]).expect("text"), "ab");
    }
}
