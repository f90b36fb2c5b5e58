//! The Rust code generated from the contract in `spec/`.

toolwarrant::contract!("spec");
