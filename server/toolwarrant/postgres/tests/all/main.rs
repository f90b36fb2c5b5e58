//! The store in PostgreSQL: the cases of every store, and what a store of several machines needs.

mod shared;
mod suite;

const KEY: [u8; 32] = [7; 32];
