//! Reads a value of a TOML file as a type, and finds the problems with its shape: unknown and
//! missing keys, and values of a wrong type.
//!
//! Serde stops at the first problem. Each problem is therefore corrected or left out, and the value
//! is read again. Readers of other TOML files than contracts use it also.

use crate::names::{nearest, suggestion};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

#[derive(Debug)]
pub struct Misshape {
    pub span: Range<usize>,
    pub message: String,
    pub help: Option<String>,
}

/// Each problem costs another pass.
pub const PROBLEMS_MAX: usize = 20;

const NOWHERE: Range<usize> = usize::MAX..usize::MAX;

/// Checks the other values even if it returns `None` for one that is absent or has a wrong type.
///
/// Reads a key that resembles a known key as that key, and leaves out other unknown keys, so that
/// the rest can be checked.
pub fn read<T: DeserializeOwned>(mut value: Spanned<DeValue<'_>>, found: &mut dyn FnMut(Misshape)) -> Option<T> {
    let (mut whole, mut left_out) = (true, Vec::new());
    for _ in 0..PROBLEMS_MAX {
        let error = match T::deserialize(ValueDeserializer::from(value.clone())) {
            Ok(read) => return whole.then_some(read),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_else(|| value.span());
        if span == NOWHERE {
            return None;
        }
        let message = error.message();
        let mut tell = |message, help| found(Misshape { span: span.clone(), message, help });
        if let Some((name, known)) = split_quoted(message, "unknown field ") {
            tell(format!("unknown key `{name}`"), Some(suggestion(name, known.iter().copied())));
            rename(&mut value, &span, nearest(name, known))?;
        } else if let Some((name, _)) = split_quoted(message, "missing field ") {
            whole = false;
            if !left_out.iter().any(|key| key == name) {
                tell(format!("missing key `{name}`"), Some(format!("add `{name} = ...`")));
            }
            add(&mut value, &span, name)?;
        } else {
            whole = false;
            match split_quoted(message, "unknown variant ") {
                Some((name, known)) => tell(format!("unknown value `{name}`"), Some(describe_values(name, &known))),
                None => tell(message.to_owned(), None),
            }
            left_out.push(leave_out(&mut value, &span)?);
        }
    }
    None
}

fn describe_values(name: &str, known: &[&str]) -> String {
    let meant = nearest(name, known.iter().copied()).map(|meant| format!("did you mean `{meant}`? "));
    let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("{}allowed are {}", meant.unwrap_or_default(), known.join(", "))
}

fn rename(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>, meant: Option<&str>) -> Option<()> {
    tables(value, &mut |_, table| {
        let key = table.keys().find(|key| key.span() == *span)?.clone();
        let written = table.remove(&key)?;
        if let Some(meant) = meant {
            table.entry(Spanned::new(span.clone(), meant.to_owned().into())).or_insert(written);
        }
        Some(())
    })
}

/// Adds a placeholder, so that the next missing key is found also.
fn add(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>, name: &str) -> Option<()> {
    tables(value, &mut |at, table| {
        let absent = Spanned::new(NOWHERE, DeValue::String("".into()));
        (at == *span).then(|| table.insert(Spanned::new(NOWHERE, name.to_owned().into()), absent)).map(|_| ())
    })
}

fn leave_out(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    tables(value, &mut |_, table| {
        let key = table.iter().find(|(_, value)| value.span() == *span)?.0.clone();
        table.remove(&key).map(|_| key.get_ref().to_string())
    })
}

fn tables<'i, T>(
    value: &mut Spanned<DeValue<'i>>,
    change: &mut dyn FnMut(Range<usize>, &mut DeTable<'i>) -> Option<T>,
) -> Option<T> {
    let span = value.span();
    match value.get_mut() {
        DeValue::Table(table) => {
            change(span, table).or_else(|| table.iter_mut().find_map(|(_, inner)| tables(inner, change)))
        }
        DeValue::Array(array) => array.iter_mut().find_map(|inner| tables(inner, change)),
        _ => None,
    }
}

fn split_quoted<'m>(message: &'m str, begin: &str) -> Option<(&'m str, Vec<&'m str>)> {
    let mut quoted = message.strip_prefix(begin)?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}
