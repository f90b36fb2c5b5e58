//! Everything that the contract in `spec/` says, as Rust: see `cargo doc`, or `cargo xtask expand`.

toolwarrant::contract!("../../../spec", runtime = ::toolwarrant::runtime);
