//! The display of a pad, as switches set it.

use serde::{Deserialize, Serialize};

/// How `screencap` behaves.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Display {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Zeros after the picture fill it up.
    pub(crate) bytes: usize,
    pub(crate) fault: Option<String>,
}

impl Display {
    pub(crate) const FAULTS: [&str; 4] = ["no_picture", "endless", "silent", "turns"];
}
