//! The invisible characters that Persian, Hindi and other languages need between letters.

use crate::limits::deceives;
use icu_properties::CodePointMapData;
use icu_properties::props::{CanonicalCombiningClass, JoiningType, Script};

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
    let (scripts, classes) = (CodePointMapData::<Script>::new(), CodePointMapData::<CanonicalCombiningClass>::new());
    if let (Some(virama), Some(next)) = (before.chars().next_back(), after.chars().next())
        && classes.get(virama) == CanonicalCombiningClass::Virama
        && scripts.get(virama) == scripts.get(next)
        && next.is_alphabetic()
    {
        return true;
    }
    let joining = |c: char| CodePointMapData::<JoiningType>::new().get(c);
    let is_letter = |ty: &JoiningType| *ty != JoiningType::Transparent;
    let (left, right) = (before.chars().rev().map(joining).find(is_letter), after.chars().map(joining).find(is_letter));
    c == '\u{200c}'
        && matches!(left, Some(JoiningType::LeftJoining | JoiningType::DualJoining))
        && matches!(right, Some(JoiningType::RightJoining | JoiningType::DualJoining))
}
