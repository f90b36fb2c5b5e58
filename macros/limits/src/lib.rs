//! The limits that the compiler of contracts tells clients and that the server keeps, and the characters that neither lets through.
//!
//! Both use this one table, so that they cannot drift. It depends on nothing.

/// Largest integer that every JSON reader keeps exact, 2^53 - 1 (RFC 8259, section 6), and the largest in an argument.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Longest text from outside, in characters, that is passed on, such as a name.
pub const UNTRUSTED_MAX_CHARS: usize = 64;

/// Longest text from outside, in characters, in evidence, timelines and logs. Two IPv6 addresses with words between them fit.
pub const REMARK_MAX_CHARS: usize = 256;

/// Longest URL, in characters.
pub const URL_MAX_CHARS: usize = 2_048;

/// Largest `wait_seconds` of a call. An answer is never held longer.
pub const MAX_WAIT_SECONDS: u32 = 50;

/// Days for which an ended task can be read.
pub const TASKS_KEPT_DAYS: u32 = 7;

/// Returns true for control characters, line separators, Unicode's format characters, which hide or reorder text, and its fillers.
#[must_use]
pub fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e01ef}')
}
