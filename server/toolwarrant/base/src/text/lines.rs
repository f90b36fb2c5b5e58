//! Long text of others, with its lines. Nothing is removed: a character that deceives is written
//! out, so that nobody edits a text by characters that a reader cannot see.

use super::Untrusted;
use crate::clock::Timestamp;
use serde::{Serialize, Serializer};
use toolwarrant_common::{deceives, is_needed};

/// Text from outside with its tabs and line ends, of at most `MAX` characters. A longer one is cut
/// and ends in `…`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UntrustedText<const MAX: usize> {
    text: String,
    altered: usize,
}

impl<const MAX: usize> UntrustedText<MAX> {
    /// Writes out characters that deceive, such as `⟨U+202E⟩`, and cuts the text.
    #[must_use]
    pub fn clean(text: &str) -> Self {
        let (mut shown, mut length, mut altered) = (String::with_capacity(text.len().min(MAX)), 0, 0);
        // The end of what stays if the text is cut.
        let mut kept = (0, 0);
        for (at, c) in text.char_indices() {
            let rest = &text[at + c.len_utf8()..];
            let is_line = matches!(c, '\t' | '\n') || (c == '\r' && rest.starts_with('\n'));
            if is_line || !deceives(c) || is_needed(&text[..at], c, rest) {
                shown.push(c);
                length += 1;
            } else {
                let written = format!("⟨U+{:04X}⟩", u32::from(c));
                length += written.chars().count();
                shown.push_str(&written);
                altered += 1;
            }
            if length > MAX {
                shown.truncate(kept.0);
                shown.push('…');
                altered = kept.1;
                break;
            }
            if length < MAX {
                kept = (shown.len(), altered);
            }
        }
        Self { text: shown, altered }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<const MAX: usize> From<&str> for UntrustedText<MAX> {
    fn from(text: &str) -> Self {
        Self::clean(text)
    }
}

impl<const MAX: usize> From<String> for UntrustedText<MAX> {
    fn from(text: String) -> Self {
        Self::clean(&text)
    }
}

impl<const MAX: usize> Serialize for UntrustedText<MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

/// A value that counts the characters which it writes out.
pub trait Altered {
    /// Returns the number of characters that are written out. Default: there are none.
    fn count_altered(&self) -> usize {
        0
    }
}

impl Altered for i64 {}
impl Altered for bool {}
impl Altered for Untrusted {}
impl Altered for Timestamp {}

impl<const MAX: usize> Altered for UntrustedText<MAX> {
    fn count_altered(&self) -> usize {
        self.altered
    }
}

impl<T: Altered> Altered for Option<T> {
    fn count_altered(&self) -> usize {
        self.iter().map(Altered::count_altered).sum()
    }
}

impl<T: Altered> Altered for Vec<T> {
    fn count_altered(&self) -> usize {
        self.iter().map(Altered::count_altered).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_each_character_that_deceives_is_written_out_and_counted() {
        for (raw, shown, altered) in [
            ("", "", 0),
            ("a\tb\r\nc\n", "a\tb\r\nc\n", 0),
            ("  two  spaces  ", "  two  spaces  ", 0),
            ("a\rb", "a⟨U+000D⟩b", 1),
            ("a\u{202e}b\u{1b}[31m", "a⟨U+202E⟩b⟨U+001B⟩[31m", 2),
            ("گوشی\u{200c}ها a\u{200c}b", "گوشی\u{200c}ها a⟨U+200C⟩b", 1),
            ("\u{e0041}\u{2028}", "⟨U+E0041⟩⟨U+2028⟩", 2),
        ] {
            let text = UntrustedText::<64>::clean(raw);
            assert_eq!((text.as_str(), text.count_altered()), (shown, altered), "{raw:?}");
        }
    }

    #[test]
    fn a_text_over_the_limit_is_cut_before_a_character_that_does_not_fit() {
        for (raw, shown, altered) in [
            ("12345678", "12345678", 0),
            ("123456789", "1234567…", 0),
            ("\u{202e}", "⟨U+202E⟩", 1),
            ("\u{202e}a", "…", 0),
            ("1234567\u{202e}", "1234567…", 0),
            ("12345678\u{202e}", "1234567…", 0),
            ("日本語日本語日本語", "日本語日本語日…", 0),
        ] {
            let text = UntrustedText::<8>::clean(raw);
            assert_eq!((text.as_str(), text.count_altered()), (shown, altered), "{raw:?}");
        }
    }
}
