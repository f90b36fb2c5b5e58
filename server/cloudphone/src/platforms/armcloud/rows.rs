//! The rows of the platform's lists about phones, which it calls *pads*, shown in the contract's
//! terms.
//!
//! Members may be missing or of another type. A value that cannot be read counts as missing, and a
//! row without a code is dropped. [`conditions`] is the only table of states, and [`views`] makes a
//! snapshot of a row.

mod conditions;
mod pad;
mod views;

pub use pad::{Pad, PadViews};
pub use views::{Abilities, UnservedOperations};

#[cfg(test)]
mod tests;
