//! The handlers of the tools, one file for each file of `spec/tools`. The pipeline has already
//! checked the permission of the caller and the capabilities of the phone.

mod devices;
mod power;
mod proxy;
mod screen;
mod sessions;

use toolwarrant::text::{Words, words};

type Name<T> = fn(&T) -> &'static str;

fn check_offer<T: PartialEq>(argument: &'static str, asked: &T, has: &[T], name: Name<T>) -> Result<(), Words> {
    if has.contains(asked) {
        return Ok(());
    }
    let has: Vec<_> = has.iter().map(|variant| words!["`", name(variant), "`"]).collect();
    Err(words!["`", argument, "` is `", name(asked), "`, and this device offers only ", Words::list(&has, ", ")])
}
