//! The only reader of JSON, because every text may come from outside. It bounds length and depth.
//!
//! `serde_json` reads the text of a member with a private name as JSON again, with a fresh limit of
//! depth. So this module refuses such a name, however it is written, before it reads. Start at
//! [`read`].

#![expect(clippy::disallowed_methods, reason = "they are the means of this module")]

use memchr::{memchr, memchr2};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::de::{Read, SliceRead, StrRead};
use serde_json::{Deserializer, Error, Value};

/// Greatest length in bytes. Most receivers of texts have a lower limit of their own.
pub const BYTES_MAX: usize = 64 << 20;

/// Reads a text as a type that may borrow from it.
///
/// # Errors
/// The text is no JSON of this type, too long, deeper than 127 levels, or has a private name.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    whole(deserializer(text)?)
}

/// Reads bytes as [`read`] reads a text.
///
/// # Errors
/// As of [`read`].
pub fn read_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    check(bytes)?;
    whole(Deserializer::new(SliceRead::new(bytes)))
}

/// Reads a value as another type.
///
/// # Errors
/// As of [`read`].
pub fn convert<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    read(&value.to_string())
}

/// Returns what a visitor reads from. It does not check that the text ends there.
///
/// # Errors
/// The text is too long, or has a private name.
pub fn deserializer(text: &str) -> Result<Deserializer<StrRead<'_>>, Error> {
    check(text.as_bytes())?;
    Ok(Deserializer::new(StrRead::new(text)))
}

fn whole<'a, R: Read<'a>, T: Deserialize<'a>>(mut from: Deserializer<R>) -> Result<T, Error> {
    let read = T::deserialize(&mut from)?;
    from.end().map(|()| read)
}

const PRIVATE: &str = "$serde_json::private::";

fn check(text: &[u8]) -> Result<(), Error> {
    if text.len() > BYTES_MAX {
        return Err(Error::custom(format_args!("the text is longer than {BYTES_MAX} bytes")));
    }
    // A private name has a dollar sign, or an escape in its place. Few texts have either.
    match memchr2(b'$', b'\\', text) {
        Some(_) if has_private_name(text) => {
            Err(Error::custom(format_args!("no member may have a name that begins with `{PRIVATE}`")))
        }
        _ => Ok(()),
    }
}

/// Finds strings as the parser does, up to the first fault, at which the parser ends.
fn has_private_name(mut text: &[u8]) -> bool {
    while let Some((string, rest)) = next_string(text) {
        let is_name = rest.trim_ascii_start().first() == Some(&b':');
        if is_name && is_private(string) {
            return true;
        }
        text = rest;
    }
    false
}

/// Returns the next string with its quotation marks, and what follows.
fn next_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let string = &text[memchr(b'"', text)?..];
    let mut end = 1;
    loop {
        end += memchr2(b'"', b'\\', string.get(end..)?)?;
        match string[end] {
            b'"' => return Some(string.split_at(end + 1)),
            _ => end += 2,
        }
    }
}

fn is_private(string: &[u8]) -> bool {
    matches!(string, [_, b'$' | b'\\', ..])
        && serde_json::from_slice::<String>(string).is_ok_and(|name| name.starts_with(PRIVATE))
}
