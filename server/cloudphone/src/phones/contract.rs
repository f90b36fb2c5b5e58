//! Everything that the contract in `spec/` says, as Rust: see `cargo doc`, or `cloudphone expand`.

toolwarrant::contract!("../../spec");
