//! Arguments with parts: lists, objects and maps, and free JSON. Hosts of agents send some of them
//! as a string of JSON, which is read once as what it contains.

use super::mistakes::Step;
use super::{Argument, Arguments, Mistakes, NotAllowed, Nullable, Reader, Shown, add_value, names, note, read_text};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;
use toolwarrant_base::json;
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::words;
use toolwarrant_common::JSON_LEVELS;

fn unquote(json: &str) -> Cow<'_, str> {
    read_text(json).unwrap_or(Cow::Borrowed(json))
}

impl<T: Argument> Argument for Vec<T> {
    const SHOWN: Shown = T::SHOWN;
    fn describe_values() -> Words {
        words!["a list, each item ", T::describe_values()]
    }
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        read_list::<T, Self>(json, usize::MAX, mistakes)
    }
}

/// A list of at most `MAX` items.
#[derive(Debug)]
struct AtMost<T, const MAX: usize>(Vec<T>);

impl<T: Argument, const MAX: usize> Argument for AtMost<T, MAX> {
    const SHOWN: Shown = T::SHOWN;
    fn describe_values() -> Words {
        words!["a list of at most ", MAX, ", each item ", T::describe_values()]
    }
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        read_list::<T, Self>(json, MAX, mistakes).map(Self)
    }
}

impl Reader<'_> {
    /// Takes a list of at most `MAX` items.
    pub fn require_list<T: Argument, const MAX: usize>(&mut self, name: &'static str) -> Option<Vec<T>> {
        self.require::<AtMost<T, MAX>>(name).map(|list| list.0)
    }

    pub fn optional_list<T: Argument, const MAX: usize>(&mut self, name: &'static str) -> Option<Option<Vec<T>>> {
        self.optional::<AtMost<T, MAX>>(name).map(|given| given.map(|list| list.0))
    }

    pub fn nullable_list<T: Argument, const MAX: usize>(
        &mut self,
        name: &'static str,
    ) -> Option<Option<Nullable<Vec<T>>>> {
        self.nullable::<AtMost<T, MAX>>(name).map(|given| given.map(|given| given.map(|list| list.0)))
    }
}

fn read_list<T: Argument, L: Argument>(json: &str, max: usize, mistakes: &mut Mistakes) -> Option<Vec<T>> {
    let text = unquote(json);
    let items: Option<Vec<&RawValue>> = json::read(&text).ok();
    let Some(items) = items.filter(|items| items.len() <= max) else {
        add_value::<L>(json, mistakes);
        return None;
    };
    let mut read = Vec::with_capacity(items.len());
    for (n, item) in items.iter().enumerate() {
        let from = mistakes.next();
        read.extend(T::read_value(item.get(), mistakes));
        mistakes.place(from, &Step::Item(n));
    }
    (read.len() == items.len()).then_some(read)
}

/// Reads an object of the contract. In contrast to the arguments themselves, it takes no member
/// that the contract does not have.
pub fn read_object<A: Arguments + Argument>(json: &str, mistakes: &mut Mistakes) -> Option<A> {
    let text = unquote(json);
    let Some(members) = json::members(&text) else {
        add_value::<A>(json, mistakes);
        return None;
    };
    let mut reader = Reader { members, mistakes: mem::take(mistakes), ..Reader::default() };
    let read = <A as Arguments>::read(&mut reader);
    let Reader { members, taken, mistakes: found, .. } = reader;
    *mistakes = found;
    if taken == members.len() {
        return read;
    }
    let known = names::<A>();
    for (name, _) in members.iter().filter(|(name, _)| !known.iter().any(|known| known == name)) {
        let taken = || known.iter().map(|name| words!["`", *name, "`"]).collect::<Vec<_>>();
        let what = || words![" is no member here; it takes ", Words::list(&taken(), ", ")];
        mistakes.add_at(&Step::Name(Echo::of(name)), what);
    }
    None
}

/// An object with at most `MAX` members, whose names are free.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct FreeMap<V, const MAX: usize>(BTreeMap<String, V>);

impl<V, const MAX: usize> FreeMap<V, MAX> {
    /// Checks the number of members.
    ///
    /// # Errors
    /// There are too many.
    pub fn new(members: BTreeMap<String, V>) -> Result<Self, NotAllowed> {
        if members.len() <= MAX { Ok(Self(members)) } else { Err(NotAllowed("an object of so few members")) }
    }

    /// Returns the members.
    #[must_use]
    pub const fn get(&self) -> &BTreeMap<String, V> {
        &self.0
    }
}

impl<V: Argument, const MAX: usize> Argument for FreeMap<V, MAX> {
    const SHOWN: Shown = Shown::Digest;
    fn describe_values() -> Words {
        words!["an object of at most ", MAX, " members, each ", V::describe_values()]
    }
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        let text = unquote(json);
        let Some(members) = json::members(&text).filter(|members| members.len() <= MAX) else {
            add_value::<Self>(json, mistakes);
            return None;
        };
        let (mut map, count) = (BTreeMap::new(), members.len());
        for (n, (name, value)) in members.into_iter().enumerate() {
            let (from, step) = (mistakes.next(), mistakes.step(&name, n));
            let read = V::read_value(value.get(), mistakes);
            mistakes.place(from, &step);
            match (map.entry(name.into_owned()), read) {
                (Entry::Occupied(_), _) => mistakes.add_at(&step, || " is given more than once".into()),
                (Entry::Vacant(entry), Some(value)) => drop(entry.insert(value)),
                (Entry::Vacant(_), None) => {}
            }
        }
        (map.len() == count).then_some(Self(map))
    }
}

/// The text of any JSON object of at most `MAX` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeJson<const MAX: usize>(Box<str>);

impl<const MAX: usize> FreeJson<MAX> {
    /// Checks a text.
    ///
    /// # Errors
    /// It is no JSON object, too long, too deep, or has a name twice.
    pub fn new(text: &str) -> Result<Self, NotAllowed> {
        let is_allowed = text.len() <= MAX && json::is_plain_object(text, JSON_LEVELS);
        if is_allowed { Ok(Self(text.into())) } else { Err(NotAllowed("a JSON object within its limits")) }
    }

    /// Returns the text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> Argument for FreeJson<MAX> {
    const SHOWN: Shown = Shown::Digest;
    fn read_value(json: &str, mistakes: &mut Mistakes) -> Option<Self> {
        note(Self::new(&unquote(json)).ok(), json, mistakes)
    }
    fn describe_values() -> Words {
        words!["a JSON object of at most ", MAX, " bytes"]
    }
}

impl<const MAX: usize> Serialize for FreeJson<MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        json::read::<&RawValue>(&self.0).map_err(S::Error::custom)?.serialize(to)
    }
}
