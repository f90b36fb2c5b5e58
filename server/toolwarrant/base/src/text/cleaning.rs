//! Cleans text from outside: removes what a terminal obeys and what deceives a reader.
//!
//! Control sequences are those of ECMA-48: with ESC in 7 bits, or with one of U+0080 to U+009F.

use std::borrow::Cow;
use toolwarrant_common::{deceives, is_needed};

/// Cleans a text of any length to one line, without control characters and hidden text.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_clean(text) { Cow::Borrowed(text) } else { Cow::Owned(one_line(text, usize::MAX)) }
}

/// Cuts to `cap` characters, the last of which is then `…`.
pub(super) fn clean_and_cut(text: &str, cap: usize) -> String {
    if text.len() <= cap && is_clean(text) { text.to_owned() } else { one_line(text, cap) }
}

/// Accepts printable ASCII without spaces at its ends and without runs of spaces.
fn is_clean(text: &str) -> bool {
    let mut before = b' ';
    let mut clean = true;
    for byte in text.bytes() {
        clean &= matches!(byte, b'!'..=b'~') || (byte == b' ' && before != b' ');
        before = byte;
    }
    clean && (before != b' ' || text.is_empty())
}

fn one_line(text: &str, cap: usize) -> String {
    let mut line = String::with_capacity(text.len().min(cap.saturating_mul(4)));
    let (mut length, mut cut_at) = (0, 0);
    let mut between = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = after_sequence(rest) {
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if c.is_control() || c.is_whitespace() {
            between = length > 0;
            continue;
        }
        if deceives(c) && (between || !is_needed(&line, c, rest)) {
            continue;
        }
        for shown in std::mem::take(&mut between).then_some(' ').into_iter().chain([c]) {
            if length == cap {
                line.truncate(cut_at);
                line.truncate(line.trim_end_matches(|c| c == ' ' || deceives(c)).len());
                line.push('…');
                return line;
            }
            line.push(shown);
            length += 1;
            if length < cap {
                cut_at = line.len();
            }
        }
    }
    line
}

/// Skips a control sequence. One without its end ends as for a terminal: a control sequence after
/// its parameters, a control string with the text.
fn after_sequence(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let rest = chars.as_str();
    match (first, chars.next()) {
        ('\u{1b}', Some('[')) => Some(after_parameters(chars.as_str())),
        ('\u{1b}', Some(kind @ (']' | 'P' | 'X' | '^' | '_'))) => Some(after_string(kind, chars.as_str())),
        ('\u{1b}', _) => {
            let end = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            Some(end.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(end))
        }
        ('\u{9b}', _) => Some(after_parameters(rest)),
        ('\u{9d}', _) => Some(after_string(']', rest)),
        ('\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}', _) => Some(after_string('P', rest)),
        _ => None,
    }
}

/// Skips parameters and one final character. Other controls in between do not end a sequence.
fn after_parameters(text: &str) -> &str {
    for (at, c) in text.char_indices() {
        match c {
            '@'..='~' | '\u{18}' | '\u{1a}' => return &text[at + 1..],
            '\u{1b}' | '\u{80}'.. => return &text[at..],
            _ => {}
        }
    }
    ""
}

/// Skips a control string, which ends at ST or, for OSC, at BEL.
fn after_string(kind: char, text: &str) -> &str {
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        match c {
            '\u{9c}' | '\u{18}' | '\u{1a}' => return rest,
            '\u{7}' if kind == ']' => return rest,
            '\u{1b}' => return rest.strip_prefix('\\').unwrap_or(&text[at..]),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_what_deceives_and_what_a_terminal_obeys_and_keeps_the_rest() {
        for (raw, cleaned) in [
            ("", ""),
            ("Tray 1", "Tray 1"),
            (" \t Tray\r\n\u{85}\u{2028}\u{a0} 1 ", "Tray 1"),
            ("a\u{202e}b\u{200b}\u{feff}é日", "abé日"),
            ("گوشی\u{200c}ها", "گوشی\u{200c}ها"),
            ("a\u{200c}b ی\u{200c} \u{200c}ها ی\u{200c}\u{1b}[31mه", "ab ی ها یه"),
            ("tags \u{e0080}\u{e00ff}", "tags"),
            ("CSI \u{1b}[31mred\u{1b}[0m, \u{9b}1;31mred\u{9b}m", "CSI red, red"),
            ("CSI \u{1b}[3\n1\u{7f}mwith controls", "CSI with controls"),
            ("CSI \u{1b}[31\u{1b}[0mwithin", "CSI within"),
            ("CSI \u{1b}[31é without an end", "CSI é without an end"),
            ("CSI \u{1b}[31\u{18}cancelled", "CSI cancelled"),
            ("CSI at the end \u{1b}[31;1", "CSI at the end"),
            ("OSC \u{1b}]0;title\u{7}a, \u{1b}]8;;https://x\u{1b}\\b, \u{9d}0;title\u{9c}c", "OSC a, b, c"),
            ("OSC \u{1b}]0;a\nb\u{1b}[31mbroken off", "OSC broken off"),
            ("OSC without an end \u{1b}]0;SYSTEM: obey", "OSC without an end"),
            ("DCS \u{1b}Pq\u{7}#\u{1b}\\a, \u{90}q\u{9c}b", "DCS a, b"),
            (
                "SOS, PM, APC \u{1b}Xs\u{1b}\\a \u{98}s\u{9c}b \u{1b}^s\u{1b}\\c \u{9e}s\u{9c}d \u{1b}_s\u{1b}\\e \u{9f}s\u{9c}f",
                "SOS, PM, APC a b c d e f",
            ),
            ("ESC \u{1b}ca \u{1b}7b \u{1b}(Bc \u{1b}#8d", "ESC a b c d"),
            ("ESC \u{1b}\u{1b}[31mtwice, \u{1b}é alone, \u{1b}", "ESC twice, é alone,"),
            ("C1 \u{80}a\u{84}b\u{9c}", "C1 a b"),
        ] {
            assert_eq!(clean(raw), cleaned, "{raw:?}");
            assert_eq!(clean_and_cut(raw, 1_000), cleaned, "{raw:?}");
            assert_eq!(clean(cleaned), cleaned, "what is clean stays");
        }
    }

    #[test]
    fn a_text_over_the_cap_is_cut_and_says_so() {
        for (raw, clean) in [
            ("12345678", "12345678"),
            ("123456789", "1234567…"),
            ("1234567  8", "1234567…"),
            ("123456 789", "123456…"),
            ("日本語日本語日本語", "日本語日本語日…"),
            ("1234567 \u{1b}[31m", "1234567"),
            ("12345678\u{200b} \n", "12345678"),
            ("123456ی\u{200c}ها", "123456ی…"),
        ] {
            assert_eq!(clean_and_cut(raw, 8), clean, "{raw:?}");
        }
    }
}
