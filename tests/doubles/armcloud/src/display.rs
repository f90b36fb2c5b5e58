//! The display of a pad, as switches set it.

use crate::scene::Shown;
use serde::{Deserialize, Serialize};

/// How `screencap` behaves.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Display {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// A picture with fewer is filled up with zeros.
    pub(crate) bytes: usize,
    pub(crate) fault: Option<ScreenFault>,
}

/// The answer of the double to a tool of the screen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScreenTold {
    /// The number of such acts on this pad, this one included.
    pub(crate) count: u64,
    pub(crate) is_done: bool,
    pub(crate) is_moving: bool,
    pub(crate) shown: Shown,
    pub(crate) list: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScreenFault {
    /// Prints a text.
    NoPicture,
    /// Never stops printing.
    Endless,
    /// Prints nothing, and does not end.
    Silent,
    /// Turns each second picture.
    Turns,
    /// Fails as the phone sleeps.
    Asleep,
    /// Is not there.
    Missing,
    /// Prints a half.
    Half,
    /// Prints a warning first.
    Preceded,
    /// Takes 300 ms.
    Slow,
    /// Is black, as what an app protects.
    Black,
}
