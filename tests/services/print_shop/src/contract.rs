//! What the contract in `spec/` says, as Rust.

toolwarrant::contract!("spec");
