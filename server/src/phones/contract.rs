//! Everything that the contract in `spec/` says, as Rust: see `cargo doc`, or `cargo expand phones::contract`.

toolwarrant_macros::contract!("../spec", runtime = crate::framework);
