//! The handlers of the tools. Each file of `spec/tools` whose tools have handlers has a file of the
//! same name here.
//!
//! A handler converts a view into the contract's types, or checks a write against one phone. The
//! pipeline has already checked the permission of the caller and the capabilities of the phone.
//! [`devices`](super::devices) finds and pages phones.

mod devices;
mod power;
mod proxy;
mod sessions;

use toolwarrant::text::{Words, words};

/// Returns the name of a variant on the wire.
type Name<T> = fn(&T) -> &'static str;

/// Checks that a phone offers the variant that an argument asks for. The error lists the variants
/// that it offers.
fn check_offer<T: PartialEq>(argument: &'static str, asked: &T, has: &[T], name: Name<T>) -> Result<(), Words> {
    if has.contains(asked) {
        return Ok(());
    }
    let has: Vec<_> = has.iter().map(|variant| words!["`", name(variant), "`"]).collect();
    Err(words!["`", argument, "` is `", name(asked), "`, and this device offers only ", Words::list(&has, ", ")])
}
