//! The handlers of the tools: one file for each file in `spec/tools` whose tools have handlers, with the same name.
//!
//! A handler turns a view into the contract's types, or judges what a write means for one phone. The pipeline has already checked
//! who may call and what the phone offers; [`devices`](super::devices) finds and pages phones.

mod devices;
mod power;
mod proxy;
mod sessions;

use toolwarrant::{Words, words};

/// Returns the name of a variant on the wire.
type Name<T> = fn(&T) -> &'static str;

/// Checks whether a phone has the variant of an operation that an argument asks for. The error says which it has.
fn offered<T: PartialEq>(argument: &'static str, asked: &T, has: &[T], name: Name<T>) -> Result<(), Words> {
    if has.contains(asked) {
        return Ok(());
    }
    let has: Vec<_> = has.iter().map(|variant| words!["`", name(variant), "`"]).collect();
    Err(words!["`", argument, "` is `", name(asked), "`, and this device offers only ", Words::list(&has, ", ")])
}
