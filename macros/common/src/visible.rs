//! Writes out the characters of a text that a terminal or a build server interprets, or that a
//! reader cannot see.
//!
//! Build servers read `##[` and `##vso[` anywhere in a line as commands, and `::` where a line
//! begins. So `##` is broken, and text from outside begins no line.

use crate::joiners::is_needed;
use crate::limits::deceives;
use std::fmt::Write;

#[must_use]
pub fn escape_text(text: &str) -> String {
    write_out(text, |c, out| out.extend(c.escape_unicode()))
}

#[must_use]
pub fn escape_line(text: &str) -> String {
    escape_text(text).replace('\n', "\\u{a}")
}

#[must_use]
pub fn escape_json(text: &str) -> String {
    write_out(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn write_out(text: &str, write: fn(char, &mut String)) -> String {
    text.char_indices().fold(String::with_capacity(text.len()), |mut out, (at, c)| {
        let is_hidden = c != '\n' && deceives(c) && !is_needed(&text[..at], c, &text[at + c.len_utf8()..]);
        if is_hidden || (c == '#' && out.ends_with('#')) {
            write(c, &mut out)
        } else {
            out.push(c)
        }
        out
    })
}
