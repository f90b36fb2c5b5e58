//! The start of a phone, as a reading shows it.

use std::time::Duration;

/// A start of a phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneStart {
    /// A value that changes at each start of the phone, and only then. If a platform can replace
    /// the phone behind an id, the value ends with `@` and the platform's own name of the phone.
    /// Readings from two different phones do not prove a start.
    pub value: String,
    /// The time from the start until the reading, by the phone itself; `None` if it does not say.
    pub age: Option<Duration>,
}

impl PhoneStart {
    /// Returns the start with the platform's own name of the phone.
    #[must_use]
    pub fn on(self, name: &str) -> Self {
        Self { value: format!("{}@{name}", self.value), ..self }
    }
}
