//! Strings that need care: untrusted text from outside, and secrets.

use serde::{Serialize, Serializer};
use std::fmt;

/// Longest text from outside, in characters, that is passed on.
pub const UNTRUSTED_MAX_CHARS: usize = 128;

/// Text from outside, capped and without control, bidirectional and zero-width characters, so that it cannot pose as anything but
/// a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Untrusted(String);

impl Untrusted {
    /// Keeps the harmless characters of a text, up to the cap.
    #[must_use]
    pub fn clean(text: &str) -> Self {
        // Nearly all text is like this, and lists are full of it.
        if text.len() <= UNTRUSTED_MAX_CHARS && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Self(text.to_owned());
        }
        Self(text.chars().filter(|c| !is_deceptive(*c)).take(UNTRUSTED_MAX_CHARS).collect())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Unicode's control characters, and the format characters that hide or reorder text.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A value that appears in the one answer it belongs to, and in no log or error.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value. The caller is responsible for where it goes.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_loses_what_deceives_and_keeps_the_rest() {
        assert_eq!(Untrusted::clean("a\u{202e}b\u{200b}\n\u{feff}é日").as_str(), "abé日");
        assert_eq!(Untrusted::clean(&"x".repeat(1000)).as_str().len(), UNTRUSTED_MAX_CHARS);
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "[secret]");
    }
}
