//! What each tool does: one file for each in `spec/tools` that has a tool with a handler, of the same name.
//!
//! A method here turns a view into the contract's types, or judges what a write means for one phone. It holds no rule: who may
//! call and what a phone offers was settled before, and how phones are found and paged is [`devices`](super::devices)' affair.

mod devices;
mod power;
mod proxy;
mod sessions;

/// Whether a phone has the variant of an operation that an argument asks for; if not, which it has.
fn offered<T: PartialEq>(argument: &str, asked: &T, has: &[T], name: fn(&T) -> &'static str) -> Result<(), String> {
    if has.contains(asked) {
        return Ok(());
    }
    let has: Vec<_> = has.iter().map(|variant| format!("`{}`", name(variant))).collect();
    Err(format!("`{argument}` is `{}`, and this device offers {}", name(asked), has.join(", ")))
}
