//! The store in PostgreSQL: the cases of every store, and what replicas that share it need.

mod shared;
mod suite;

use std::sync::OnceLock;
use test_postgres::TestPostgres;

/// The fingerprint of the master key.
const KEY: [u8; 32] = [7; 32];

/// Returns the server of the tests; `None` if PostgreSQL is not installed.
fn server() -> Option<&'static TestPostgres> {
    static SERVER: OnceLock<Option<TestPostgres>> = OnceLock::new();
    SERVER.get_or_init(TestPostgres::start).as_ref()
}
