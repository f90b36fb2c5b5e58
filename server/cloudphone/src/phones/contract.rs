//! The contract in `spec/` as Rust types. See `cargo doc`, or `toolwarrant expand`.

toolwarrant::contract!("../../spec");
