//! Null that differs from absent.

use serde::{Serialize, Serializer};

/// The value of an optional argument for which null differs from absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nullable<T> {
    /// The client sent null.
    Null,
    /// The client sent a value.
    Value(T),
}

impl<T> Nullable<T> {
    /// Changes the value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Nullable<U> {
        match self {
            Self::Null => Nullable::Null,
            Self::Value(value) => Nullable::Value(change(value)),
        }
    }
}

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_none(),
            Self::Value(value) => value.serialize(to),
        }
    }
}
