//! The contract in `spec/` as Rust types. See `cargo doc`, or `cloudphone expand`.

toolwarrant::contract!("../../spec");
