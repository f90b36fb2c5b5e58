//! What each tool does: one file for each in `spec/tools`, of the same name.
//!
//! A method here turns a view into the contract's types. It holds no rule: who may call and what a phone offers was settled
//! before, and how phones are found and paged is [`devices`](super::devices)' affair.

mod devices;
mod sessions;
