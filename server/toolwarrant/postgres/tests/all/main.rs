//! The store in PostgreSQL: the cases of every store, and what replicas that share it need.

mod shared;
mod suite;

/// The fingerprint of the master key.
const KEY: [u8; 32] = [7; 32];
