//! The name of an application.

use crate::view::{AnswerView, PageOf, Show};
use serde::{Serialize, Serializer};
use std::fmt;
use toolwarrant_base::clock::Timestamp;

/// The name of an application, with the day of its deletion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApplicationName {
    pub name: String,
    pub deleted_at: Option<Timestamp>,
}

impl fmt::Display for ApplicationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deleted_at {
            Some(at) => write!(f, "{} (deleted {})", self.name, &at.to_string()[..10]),
            None => f.write_str(&self.name),
        }
    }
}

impl From<&str> for ApplicationName {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), deleted_at: None }
    }
}

impl Serialize for ApplicationName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Show for ApplicationName {
    fn show(&self) -> AnswerView {
        AnswerView::Link(self.to_string(), PageOf::Application(self.name.clone()))
    }
}
