//! The signature of a request: the vectors of another implementation, and properties.

mod properties;
mod vectors;
