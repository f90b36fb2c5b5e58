//! The start of a phone, as a reading shows it.

use std::fmt;
use std::time::Duration;

/// A start of a phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneStart {
    /// A value that changes at each start of the phone, and only then.
    pub value: String,
    /// The platform's own name of the phone, if a platform can replace the phone behind an id.
    /// Readings from two different phones do not prove a start.
    pub on: Option<String>,
    /// The time from the start until the reading, by the phone itself; `None` if it does not say.
    pub age: Option<Duration>,
}

impl PhoneStart {
    /// Returns the start with the platform's own name of the phone.
    #[must_use]
    pub fn on(self, name: &str) -> Self {
        Self { on: Some(name.to_owned()), ..self }
    }
}

/// As evidence shows it.
impl fmt::Display for PhoneStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on {
            Some(on) => write!(f, "{}@{on}", self.value),
            None => f.write_str(&self.value),
        }
    }
}
