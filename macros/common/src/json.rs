//! The only reader of JSON, because every text may come from outside. It bounds length and depth.
//!
//! `serde_json` reads the text of a member with a private name as JSON again, with a fresh limit of
//! depth. So this module refuses such a name, however it is written, before it reads. Start at
//! [`read`].

#![expect(clippy::disallowed_methods, reason = "they are the means of this module")]

use memchr::{memchr, memchr2, memmem};
use serde::de::{Deserialize, DeserializeOwned, Error as _, MapAccess, Visitor};
use serde_json::de::StrRead;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// Greatest length in bytes. Most receivers of texts have a lower limit of their own.
pub const BYTES_MAX: usize = 64 << 20;

/// Reads a text as a type that may borrow from it.
///
/// # Errors
/// The text is no JSON of this type, too long, deeper than 127 levels, or has a private name.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    check(text.as_bytes())?;
    serde_json::from_str(text)
}

/// Reads bytes as [`read`] reads a text.
///
/// # Errors
/// As of [`read`].
pub fn read_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    check(bytes)?;
    serde_json::from_slice(bytes)
}

/// Reads a value as another type.
///
/// # Errors
/// As of [`read`].
pub fn convert<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    read(&value.to_string())
}

/// Reads an object, but not the values of its members. It keeps their order, and a name that occurs
/// twice. A value that is not read needs no check.
#[must_use]
pub fn members(raw: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(raw).ok().map(|Members(members)| members)
}

/// Returns what a visitor reads from. It does not check that the text ends there.
///
/// # Errors
/// The text is too long, or has a private name.
pub fn deserializer(text: &str) -> Result<Deserializer<StrRead<'_>>, Error> {
    check(text.as_bytes())?;
    Ok(Deserializer::from_str(text))
}

/// Returns true if a text is an object that every reader reads alike: at most `levels` deep,
/// without a name that occurs twice, and without numbers and characters that do not exist.
#[must_use]
pub fn is_plain_object(text: &str, levels: usize) -> bool {
    text.trim_ascii_start().starts_with('{') && check(text.as_bytes()).is_ok() && is_plain(text.trim_ascii(), levels)
}

fn is_plain(json: &str, levels: usize) -> bool {
    let below = |values: &[&RawValue]| levels > 0 && values.iter().all(|value| is_plain(value.get(), levels - 1));
    match json.as_bytes().first() {
        Some(b'{') => members(json).is_some_and(|members| {
            let names: HashSet<_> = members.iter().map(|(name, _)| name).collect();
            let values: Vec<_> = members.iter().map(|(_, value)| *value).collect();
            names.len() == members.len() && below(&values)
        }),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(json).is_ok_and(|values| below(&values)),
        _ => serde_json::from_str::<Value>(json).is_ok(),
    }
}

/// Writes JSON again with other strings. The text must be JSON.
#[must_use]
pub fn replace_strings(json: &str, replace: &mut dyn FnMut(&str) -> String) -> String {
    let (mut out, mut rest) = (String::with_capacity(json.len()), json);
    while let Some((string, after)) = next_string(rest.as_bytes()) {
        let (start, end) = (rest.len() - after.len() - string.len(), rest.len() - after.len());
        let plain = serde_json::from_str::<Cow<'_, str>>(&rest[start..end]).unwrap_or_default();
        out.push_str(&rest[..start]);
        out.push_str(&Value::from(replace(&plain)).to_string());
        rest = &rest[end..];
    }
    out + rest
}

const PRIVATE: &str = "$serde_json::private::";

fn check(text: &[u8]) -> Result<(), Error> {
    if text.len() > BYTES_MAX {
        return Err(Error::custom(format_args!("the text is longer than {BYTES_MAX} bytes")));
    }
    // A private name begins with a dollar sign, or with its only escape. Few texts have either.
    let begins = |rest: &[u8]| memchr(b'$', rest).is_some() || memmem::find(rest, br"\u0024").is_some();
    if memchr2(b'$', b'\\', text).is_some_and(|at| begins(&text[at..])) && has_private_name(text) {
        return Err(Error::custom(format_args!("a name of a member begins with `{PRIVATE}`")));
    }
    Ok(())
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

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
