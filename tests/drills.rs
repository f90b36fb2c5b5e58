//! Drills: the product under extreme load and faults. `cargo xtask drill` runs each in full; a
//! small share of it runs with the other tests.

pub(crate) mod crash;
#[cfg(target_os = "linux")]
mod rack;

use serde::de::DeserializeOwned;

/// Reads the JSON value that the xtask command passes.
fn options<T: DeserializeOwned>() -> T {
    let json = std::env::var("DRILL").expect("options: `cargo xtask drill` runs this test");
    serde_json::from_str(&json).expect("the options of this drill")
}
