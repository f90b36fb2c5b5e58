//! Maps and JSON of others in results. Their names and texts are cleaned as
//! [`UntrustedText`] is.

use crate::args::{FreeJson, NotAllowed};
use crate::reply::{TargetIds, VisitId};
use crate::text::{Altered, UntrustedText};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use toolwarrant_base::json;
use toolwarrant_common::UNTRUSTED_NAME_MAX_CHARS;

/// At most `MAX` members, whose names come from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UntrustedMap<V, const MAX: usize> {
    members: BTreeMap<String, V>,
    altered: usize,
}

impl<V, const MAX: usize> UntrustedMap<V, MAX> {
    /// Cleans the names, and cuts them after 256 characters.
    ///
    /// # Errors
    /// There are too many members, or two have the same name.
    pub fn new(members: impl IntoIterator<Item = (String, V)>) -> Result<Self, NotAllowed> {
        let mut map = Self { members: BTreeMap::new(), altered: 0 };
        for (name, value) in members {
            let name = UntrustedText::<UNTRUSTED_NAME_MAX_CHARS>::clean(&name);
            map.altered += name.count_altered();
            let is_known = map.members.insert(name.as_str().to_owned(), value).is_some();
            if is_known || map.members.len() > MAX {
                return Err(NotAllowed("a map of so few members with different names"));
            }
        }
        Ok(map)
    }
}

impl<V: Altered, const MAX: usize> Altered for UntrustedMap<V, MAX> {
    fn count_altered(&self) -> usize {
        self.altered + self.members.values().map(Altered::count_altered).sum::<usize>()
    }
}

impl<V: TargetIds, const MAX: usize> TargetIds for UntrustedMap<V, MAX> {
    fn visit_ids(&self, visit: VisitId<'_>) {
        self.members.values().for_each(|value| value.visit_ids(visit));
    }
}

impl<V: Serialize, const MAX: usize> Serialize for UntrustedMap<V, MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.members.serialize(to)
    }
}

/// A JSON object from outside, of at most `MAX` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedJson<const MAX: usize> {
    json: FreeJson<MAX>,
    altered: usize,
}

impl<const MAX: usize> UntrustedJson<MAX> {
    /// Cleans the strings and names in a JSON object. Numbers stay as they are.
    ///
    /// # Errors
    /// The text is no JSON object, too long, too deep, or has a name twice.
    pub fn new(text: &str) -> Result<Self, NotAllowed> {
        let mut altered = 0;
        let cleaned = json::replace_strings(FreeJson::<MAX>::new(text)?.as_str(), &mut |string| {
            let cleaned = UntrustedText::<MAX>::clean(string);
            altered += cleaned.count_altered();
            cleaned.as_str().to_owned()
        });
        Ok(Self { json: FreeJson::new(&cleaned)?, altered })
    }
}

impl<const MAX: usize> Altered for UntrustedJson<MAX> {
    fn count_altered(&self) -> usize {
        self.altered
    }
}

impl<const MAX: usize> Serialize for UntrustedJson<MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}
