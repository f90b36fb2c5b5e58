//! The signature of a request: the vectors of another implementation, and properties.

#![expect(clippy::disallowed_methods, reason = "tests read what they wrote")]

mod properties;
mod vectors;
