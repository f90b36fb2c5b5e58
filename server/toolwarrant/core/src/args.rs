//! Reads arguments from JSON, in one pass that reports every mistake.
//!
//! Generated code implements [`Arguments`] and [`Argument`]. A refusal never shows a secret. It
//! shows other values as an [`Echo`]. Start at [`parse`].

mod mistakes;
mod nullable;
mod parts;

pub use mistakes::Mistakes;
pub use nullable::Nullable;
pub use parts::{FreeJson, FreeMap, read_object};

use mistakes::{MAX_LISTED, Step};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::Arc;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json::{self, members};
use toolwarrant_base::text::Secret;
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::{hex, words};
use toolwarrant_common::{MAX_INTEGER, nearest};
use zeroize::Zeroize;

/// Longest name that can be a misspelt argument, in bytes.
const MAX_NAME: usize = 64;

pub trait Arguments: Sized + Send + Sync {
    /// Former names of arguments, each with the present name.
    const FORMER: &'static [(&'static str, &'static str)] = &[];
    /// The arguments for which null differs from absent.
    const NULLABLE: &'static [&'static str] = &[];
    /// Returns `None` only if the reader has recorded a mistake.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
}

pub trait Argument: Sized {
    const SHOWN: Shown = Shown::AsSent;
    /// True if an empty string is a value, also of an optional argument.
    const MAY_BE_EMPTY: bool = false;
    fn describe_values() -> Words;
    /// Notes each mistake at its place.
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self>;
}

/// Notes a mistake if a value without parts was not `read`.
pub fn note<T: Argument>(read: Option<T>, json: &str, mistakes: &mut Mistakes) -> Option<T> {
    if read.is_none() {
        add_value::<T>(json, mistakes);
    }
    read
}

fn add_value<T: Argument>(json: &str, mistakes: &mut Mistakes) {
    mistakes.add_value((T::SHOWN == Shown::AsSent).then_some(json), T::describe_values);
}

/// How an argument appears in the audit. A refusal repeats only one that appears as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    AsSent,
    /// As its length and its digest.
    Digest,
    Secret,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ArgumentErrors {
    pub what: Words,
    pub names: Vec<String>,
    /// Also missing ones.
    pub wrong: Vec<&'static str>,
}

/// Longest arguments, in bytes, that the audit shows exactly as sent.
const SHOWN_AS_IT_CAME: usize = 512;

/// Longest value, in bytes, that the audit shows exactly as sent.
const USUAL_VALUE: usize = 64;

const NAMES_SHOWN: usize = 256;

#[derive(Debug)]
pub struct Taken<A> {
    pub args: A,
    /// Compact, with secrets and long values replaced. `None`: they may be shown as sent.
    pub shown: Option<Box<RawValue>>,
    pub left_out: Vec<String>,
}

/// Reads arguments from a JSON object. Hosts of agents add members of their own. So this leaves out
/// those that are no argument of the tool and resemble none, also if they are one of another tool.
pub fn parse<A: Arguments>(raw: &str) -> Result<Taken<A>, ArgumentErrors> {
    let mut reader = Reader { members: members(raw).unwrap_or_default(), ..Reader::default() };
    let args = A::read(&mut reader);
    let left_out = if reader.taken < reader.members.len() { reader.leave_out::<A>() } else { Vec::new() };
    match args {
        Some(args) if reader.mistakes.is_empty() && reader.taken == reader.members.len() => {
            let as_it_came = reader.hidden.is_empty() && left_out.is_empty() && raw.len() <= SHOWN_AS_IT_CAME;
            Ok(Taken { args, shown: (!as_it_came).then(|| reader.to_compact()), left_out })
        }
        _ => Err(reader.refuse(&names::<A>())),
    }
}

/// Reads the arguments of a stored command. In contrast to [`parse`], it admits former names, and
/// unknown arguments that are null. The error shows no values: one may be a former secret.
pub fn parse_stored<A: Arguments>(raw: &str) -> Result<A, Words> {
    let mut members = members(raw).unwrap_or_default();
    for (name, _) in &mut members {
        if let Some((_, present)) = A::FORMER.iter().find(|(former, _)| former == name) {
            *name = Cow::Borrowed(present);
        }
    }
    members.retain(|(name, value)| value.get() != "null" || A::NULLABLE.iter().any(|nullable| nullable == name));
    let mut reader = Reader { members, mistakes: Mistakes::without_values(), ..Reader::default() };
    match A::read(&mut reader) {
        Some(args) if reader.mistakes.is_empty() && reader.taken == reader.members.len() => Ok(args),
        _ => Err(reader.refuse(&names::<A>()).what),
    }
}

pub fn judge_stored<A: Arguments>(raw: &str) -> Result<(), Words> {
    parse_stored::<A>(raw).map(drop)
}

fn names<A: Arguments>() -> Vec<&'static str> {
    let mut reader = Reader { names: Some(Vec::new()), ..Reader::default() };
    let _ = A::read(&mut reader);
    reader.names.unwrap_or_default()
}

/// Returns true if a name is near to an argument, a part of one, as `user` is of `username`, or has
/// one among its words, as `nextCursor` has `cursor`.
fn resembles(name: &str, arguments: &[&'static str]) -> bool {
    if name.len() > MAX_NAME {
        return false;
    }
    let lower = name.to_ascii_lowercase();
    let mut words = "_".to_owned();
    for c in name.chars() {
        words.extend(c.is_ascii_uppercase().then_some('_'));
        words.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    words.push('_');
    let shares = |argument: &&str| {
        let argument = argument.to_ascii_lowercase();
        (lower.len() > 1 && argument.contains(&lower)) || words.contains(&format!("_{argument}_"))
    };
    arguments.iter().any(shares) || nearest(&lower, arguments.iter().copied()).is_some()
}

fn list_names(members: &[(Cow<'_, str>, &RawValue)]) -> Vec<String> {
    let (mut names, mut room) = (Vec::new(), NAMES_SHOWN);
    for (n, (name, _)) in members.iter().enumerate() {
        let name = Echo::of(name).as_str().to_owned();
        let Some(left) = room.checked_sub(name.len() + 3) else {
            names.push(format!("and {} more", members.len() - n));
            break;
        };
        room = left;
        names.push(name);
    }
    names
}

pub fn judge<A: Arguments>(raw: &str) -> Result<(), ArgumentErrors> {
    parse::<A>(raw).map(drop)
}

#[derive(Debug, Default)]
pub struct Reader<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
    taken: usize,
    /// If set, collects the arguments that the tool asks for.
    names: Option<Vec<&'static str>>,
    /// Arguments that do not appear as sent.
    hidden: Vec<(&'static str, Shown)>,
    mistakes: Mistakes,
    wrong: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    pub fn require<T: Argument>(&mut self, name: &'static str) -> Option<T> {
        match self.take::<T>(name) {
            Some(json) => self.value(name, json),
            None => {
                self.wrong.push(name);
                self.mistakes.add_at(&Step::Member(name), || words![" is required: ", T::describe_values()]);
                None
            }
        }
    }

    /// Takes an argument that may be absent, null or an empty string.
    pub fn optional<T: Argument>(&mut self, name: &'static str) -> Option<Option<T>> {
        match self.take::<T>(name) {
            None | Some("null") => Some(None),
            Some("\"\"") if !T::MAY_BE_EMPTY => Some(None),
            Some(json) => self.value(name, json).map(Some),
        }
    }

    /// Takes an argument that may be absent, or null with a meaning of its own.
    pub fn nullable<T: Argument>(&mut self, name: &'static str) -> Option<Option<Nullable<T>>> {
        let is_null = |(member, value): &(Cow<'_, str>, &RawValue)| member == name && value.get() == "null";
        let is_null = self.members.iter().any(is_null);
        let read = self.optional::<T>(name)?;
        Some(read.map(Nullable::Value).or(is_null.then_some(Nullable::Null)))
    }

    fn take<T: Argument>(&mut self, name: &'static str) -> Option<&'a str> {
        if let Some(names) = &mut self.names {
            names.push(name);
        }
        if T::SHOWN != Shown::AsSent {
            self.hidden.push((name, T::SHOWN));
        }
        let mut found = self.members.iter().filter(|(member, _)| member == name).map(|(_, value)| value.get());
        let (first, second) = (found.next(), found.next());
        self.taken += usize::from(first.is_some());
        if second.is_some() {
            self.mistakes.add_at(&Step::Member(name), || " is given more than once".into());
        }
        first
    }

    fn value<T: Argument>(&mut self, name: &'static str, json: &str) -> Option<T> {
        let from = self.mistakes.next();
        let read = T::read_value(json, &mut self.mistakes);
        if read.is_none() {
            self.wrong.push(name);
            self.mistakes.place(from, &Step::Member(name));
        }
        read
    }

    /// Removes foreign members and returns their names. If there are more than a host adds, all
    /// stay and are refused.
    fn leave_out<A: Arguments>(&mut self) -> Vec<String> {
        let own = names::<A>();
        let is_known = |name: &str| own.contains(&name) || A::FORMER.iter().any(|(former, _)| *former == name);
        if self.members.iter().filter(|(name, _)| !is_known(name)).count() > MAX_LISTED {
            return Vec::new();
        }
        let stays = |(name, _): &(Cow<'_, str>, &RawValue)| is_known(name) || resembles(name, &own);
        let (members, left_out) = mem::take(&mut self.members).into_iter().partition::<Vec<_>, _>(stays);
        self.members = members;
        list_names(&left_out)
    }

    /// Drops white space between members, which can have any length. Writes long values in the
    /// shortest way, because an escape is six times as long as its character.
    fn to_compact(&self) -> Box<RawValue> {
        let mut object = String::with_capacity(128);
        for (name, value) in &self.members {
            let hidden = self.hidden.iter().find(|(hidden, _)| hidden == name).map(|(_, shown)| shown);
            let value = match (hidden, value.get()) {
                (Some(Shown::Secret), _) => "\"[secret]\"".into(),
                (Some(Shown::Digest), value) if value != "null" => digest(value).into(),
                (_, value) if value.len() > USUAL_VALUE => {
                    let short = json::read::<serde_json::Value>(value).ok();
                    short.map_or(Cow::Borrowed(value), |short| short.to_string().into())
                }
                (_, value) => value.into(),
            };
            object.extend([if object.is_empty() { "{\"" } else { ",\"" }, name, "\":", &value]);
        }
        object.push_str(if object.is_empty() { "{}" } else { "}" });
        RawValue::from_string(object).unwrap_or_default()
    }

    fn refuse(self, known: &[&'static str]) -> ArgumentErrors {
        let Self { members, taken: _, names: _, hidden: _, mistakes, wrong } = self;
        let strangers = members.iter().filter(|(name, _)| !known.iter().any(|known| known == name));
        let strangers = strangers.map(|(name, _)| words!["`", Echo::of(name), "` is no argument of this tool"]);
        let (mut said, unlisted) = mistakes.say();
        let mistaken = said.len();
        said.extend(strangers);
        let stranger = said.len() > mistaken;
        let more = said.len().saturating_sub(MAX_LISTED) + unlisted;
        said.truncate(MAX_LISTED);
        if more > 0 {
            said.push(words!["and ", more, " more"]);
        }
        if stranger && known.is_empty() {
            said.push("it takes none".into());
        } else if stranger {
            let known: Vec<_> = known.iter().map(|name| words!["`", *name, "`"]).collect();
            said.push(words!["it takes ", Words::list(&known, ", ")]);
        }
        ArgumentErrors { what: Words::list(&said, "; "), names: list_names(&members), wrong }
    }
}

/// Describes a text, or JSON as it was sent, by its length and its digest.
fn digest(json: &str) -> String {
    let text = read_text(json).unwrap_or(Cow::Borrowed(json));
    let sha256 = hex::encode(&Sha256::digest(text.as_bytes()));
    format!("{{\"characters\":{},\"sha256\":\"{sha256}\"}}", text.chars().count())
}

/// The rule for the strings of a type. Lengths are in characters and include the prefix.
#[derive(Debug, Clone, Copy)]
pub struct StringRule {
    pub min: usize,
    pub max: usize,
    pub prefix: &'static str,
    /// The ASCII ranges of the characters after the prefix; empty allows every character.
    pub charset: &'static [(u8, u8)],
}

impl StringRule {
    #[must_use]
    pub fn admits(&self, text: &str) -> bool {
        let Self { min, max, prefix, charset } = *self;
        let Some(rest) = text.strip_prefix(prefix) else { return false };
        if !charset.is_empty() {
            let admitted = |byte: u8| charset.iter().any(|(from, to)| (*from..=*to).contains(&byte));
            return (min..=max).contains(&text.len()) && rest.bytes().all(admitted);
        }
        text.len() <= max.saturating_mul(4) && (min..=max).contains(&text.chars().count())
    }

    /// Returns true if an admitted text can begin so.
    #[must_use]
    pub fn can_begin(&self, text: &str) -> bool {
        self.prefix.starts_with(text) || Self { min: 0, ..*self }.admits(text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct NotAllowed(pub &'static str);

pub trait StringType: Sized {
    const RULE: StringRule;
    const ALLOWED: &'static str;
    /// True if it is a text with lines, whose content the audit does not show.
    const IS_TEXT: bool = false;
}

#[must_use]
pub const fn form_in_audit<T: StringType>() -> Shown {
    if T::IS_TEXT { Shown::Digest } else { Shown::AsSent }
}

/// Returns true if `text` is a value of a generated string type.
#[must_use]
pub fn admits<T: StringType>(text: &str) -> bool {
    T::RULE.admits(text)
}

pub fn string<T: StringType>(text: &str) -> Result<Arc<str>, NotAllowed> {
    if T::RULE.admits(text) { Ok(text.into()) } else { Err(NotAllowed(T::ALLOWED)) }
}

pub fn integer(number: i64, range: RangeInclusive<i64>, allowed: &'static str) -> Result<i64, NotAllowed> {
    if range.contains(&number) { Ok(number) } else { Err(NotAllowed(allowed)) }
}

/// Admits finite numbers alone.
pub fn number(number: f64, range: RangeInclusive<f64>, allowed: &'static str) -> Result<f64, NotAllowed> {
    if number.is_finite() && range.contains(&number) { Ok(number) } else { Err(NotAllowed(allowed)) }
}

pub fn read_name<T: Copy>(json: &str, all: &[T], name: fn(T) -> &'static str) -> Option<T> {
    let text = read_text(json)?;
    all.iter().copied().find(|value| name(*value) == text)
}

pub fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> Words {
    let names: Vec<_> = all.iter().map(|value| words!["`", name(*value), "`"]).collect();
    words!["one of ", Words::list(&names, ", ")]
}

#[must_use]
pub fn read_text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { json::read(json).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// Parses a number of JSON.
#[must_use]
pub fn read_number(json: &str) -> Option<f64> {
    /// No number needs more digits.
    const MAX_CHARS: usize = 64;
    if json.len() > MAX_CHARS { None } else { json::read(json).ok() }
}

/// Parses an integer in any JSON notation, up to [`MAX_INTEGER`].
#[must_use]
pub fn read_integer(json: &str) -> Option<i64> {
    /// No integer up to [`MAX_INTEGER`] needs more, and a megabyte of zeroes after the point is not
    /// worth parsing.
    const MAX_CHARS: usize = 32;
    if json.len() > MAX_CHARS {
        return None;
    }
    let number = json.parse().ok().or_else(|| {
        let float: f64 = json::read(json).ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "a float out of range becomes an integer out of range")]
        (float.fract() == 0.0).then_some(float as i64)
    })?;
    (-MAX_INTEGER..=MAX_INTEGER).contains(&number).then_some(number)
}

impl Argument for String {
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        note(read_text(json).map(Cow::into_owned), json, mistakes)
    }
    fn describe_values() -> Words {
        "a string".into()
    }
}

impl Argument for i64 {
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        note(read_integer(json), json, mistakes)
    }
    fn describe_values() -> Words {
        "an integer".into()
    }
}

impl Argument for bool {
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        note(json.parse().ok(), json, mistakes)
    }
    fn describe_values() -> Words {
        "true or false".into()
    }
}

impl Argument for Timestamp {
    /// The reader of times takes other forms of ISO 8601 as well.
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        let is_rfc3339 = |text: &[u8]| {
            let at = |n: usize| text.get(n).map(u8::to_ascii_uppercase);
            [at(4), at(10), at(16)] == [Some(b'-'), Some(b'T'), Some(b':')] && !text.contains(&b'[')
        };
        let text = read_text(json).filter(|text| is_rfc3339(text.as_bytes()));
        note(text.and_then(|_| json::read(json).ok()), json, mistakes)
    }
    fn describe_values() -> Words {
        "a time in RFC 3339 such as 2026-12-31T18:00:00Z".into()
    }
}

impl<T: Argument + Zeroize> Argument for Secret<T> {
    const SHOWN: Shown = Shown::Secret;
    const MAY_BE_EMPTY: bool = T::MAY_BE_EMPTY;
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        note(T::read_value(json, &mut Mistakes::without_values()).map(Self::new), json, mistakes)
    }
    fn describe_values() -> Words {
        T::describe_values()
    }
}
