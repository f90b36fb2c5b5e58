//! The invisible characters that Persian, Hindi and other languages need between letters.

use crate::limits::deceives;
use idna_adapter::{Adapter, JoiningType, LEFT_OR_DUAL_JOINING_MASK, RIGHT_OR_DUAL_JOINING_MASK};
use unicode_script::UnicodeScript;

/// Returns the first character of a text that deceives where it stands.
#[must_use]
pub fn find_deceiving(text: &str) -> Option<char> {
    let is_needed = |at: usize, c: char| is_needed(&text[..at], c, &text[at + c.len_utf8()..]);
    text.char_indices().find(|(at, c)| deceives(*c) && !is_needed(*at, *c)).map(|(_, c)| c)
}

/// Returns true for a joiner that changes how the letters around it look. RFC 5892, appendix A, has
/// these conditions; after a virama, this function also requires a letter of the same script.
#[must_use]
pub fn is_needed(before: &str, c: char, after: &str) -> bool {
    if !matches!(c, '\u{200c}' | '\u{200d}') {
        return false;
    }
    let unicode = Adapter::new();
    if let (Some(virama), Some(next)) = (before.chars().next_back(), after.chars().next())
        && unicode.is_virama(virama)
        && virama.script() == next.script()
        && next.is_alphabetic()
    {
        return true;
    }
    let joining = |c: char| Some(unicode.joining_type(c)).filter(|ty| !ty.is_transparent());
    let (left, right) = (before.chars().rev().find_map(joining), after.chars().find_map(joining));
    let is = |ty: Option<JoiningType>, mask| ty.is_some_and(|ty| ty.to_mask().intersects(mask));
    c == '\u{200c}' && is(left, LEFT_OR_DUAL_JOINING_MASK) && is(right, RIGHT_OR_DUAL_JOINING_MASK)
}
