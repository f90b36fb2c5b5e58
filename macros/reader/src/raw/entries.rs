//! Values with their places in the file, and tables of named entries.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

#[derive(Debug, Clone)]
pub(crate) struct At<T>(toml::Spanned<T>);

impl<T> At<T> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.0.span()
    }

    pub(crate) fn with<U>(&self, value: U) -> At<U> {
        At(toml::Spanned::new(self.span(), value))
    }
}

impl<T> Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get_ref()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Spanned::deserialize(deserializer).map(Self)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Named<T> {
    pub(crate) entries: Vec<(At<String>, T)>,
    pub(crate) unread: Unread,
}

/// Their problems are already reported, so a use of one is not reported as unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread {
    pub(crate) names: Vec<String>,
    /// The whole file is broken, so that it may contain any name.
    pub(crate) anything: bool,
}

impl Unread {
    pub(crate) fn may_be(&self, name: &str) -> bool {
        self.anything || self.names.iter().any(|unread| unread == name)
    }
}

impl<T> Named<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&At<String>, &T)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &At<String>> {
        self.iter().map(|(name, _)| name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|(name, _)| name.as_str())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Named<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of named entries")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Named { entries, unread: Unread::default() })
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// The values of an enum or of a map.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Members(Named<At<String>>),
    Type(String),
}

impl Values {
    pub(crate) fn members(&self) -> Option<&Named<At<String>>> {
        match self {
            Self::Members(members) => Some(members),
            Self::Type(_) => None,
        }
    }

    pub(crate) fn ty(&self) -> Option<&str> {
        match self {
            Self::Members(_) => None,
            Self::Type(ty) => Some(ty),
        }
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of named entries, or a type")
            }
            fn visit_str<E>(self, name: &str) -> Result<Values, E> {
                Ok(Values::Type(name.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Values, A::Error> {
                Named::deserialize(MapAccessDeserializer::new(map)).map(Values::Members)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged, expecting = "expected a former name, or a list of former names")]
pub(crate) enum FormerNames {
    One(String),
    Several(Vec<String>),
}

impl FormerNames {
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}
