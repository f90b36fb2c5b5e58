//! The only table of states: the words of the adb server's list, and what asking a phone adds to
//! them, in the contract's terms.
//!
//! `device` in a list is no sign of life, because the server says it for minutes after a phone was
//! switched off. Such a phone counts as silent until it answers.

use crate::phones::contract::DeviceState::{self, Booting, Running, Stopped};
use AdbState as S;
use serde::{Deserialize, Serialize};

/// The state of a phone at an adb server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AdbState {
    Running,
    Booting,
    Stopped,
    Silent,
    TooOld,
    Shared,
    Absent,
    Offline,
    Unauthorized,
    NoPermissions,
    Recovery,
    Bootloader,
    Unconnected,
    Connecting,
}

/// A state, its words in a list, the state that clients see if it is known, the reason why the
/// phone cannot be operated, and the next action of the operator.
type StateRow = (AdbState, &'static [&'static str], Option<DeviceState>, &'static str, &'static str);

/// All states. The order is that of [`AdbState`].
const STATES: [StateRow; 14] = [
    (S::Running, &[], Some(Running), "", ""),
    (S::Booting, &[], Some(Booting), "the phone is booting", "wait until it has booted"),
    (S::Stopped, &[], Some(Stopped), "the phone is switched off", "boot it"),
    (S::Silent, &["device"], None, "the phone does not answer", "wake it, switch it on, or run `adb reconnect`"),
    (S::TooOld, &[], None, "its Android is older than 7", "use a phone with a later one"),
    (S::Shared, &[], None, "several phones have this serial", "name their USB paths in `only`, as `usb:PATH`"),
    (S::Absent, &[], None, "the adb server does not list the phone", "plug it in, or run `adb connect HOST:PORT`"),
    (S::Offline, &["offline"], None, "the adb server has lost the phone", "run `adb reconnect offline`"),
    (S::Unauthorized, &["unauthorized"], None, "the phone has not allowed adb", ON_SCREEN),
    (S::NoPermissions, &["no permissions"], None, "adb may not open the USB device of the phone", UDEV),
    (S::Recovery, &["recovery", "rescue", "sideload"], None, "the phone is in recovery", "run `adb -s SERIAL reboot`"),
    (S::Bootloader, &["bootloader"], None, "the phone is in its bootloader", "run `fastboot reboot`"),
    (S::Unconnected, &["detached", "host"], None, "adb is not connected to it", "run `adb reconnect`"),
    (S::Connecting, &["connecting", "authorizing"], None, "adb connects to the phone", "wait, and run `adb reconnect`"),
];

const ON_SCREEN: &str = "unlock the phone, and accept the question on its screen";
const UDEV: &str = "add a udev rule for the phone, plug it in again, and run `adb kill-server`";

impl AdbState {
    /// Returns the state that clients see; `None` if that is not known.
    pub(super) fn visible_state(self) -> Option<DeviceState> {
        STATES[self as usize].2
    }

    /// Returns true if the phone runs, or may do so in a moment.
    pub(super) fn may_run(self) -> bool {
        matches!(self, S::Running | S::Booting | S::Silent | S::Absent | S::Offline | S::Connecting)
    }

    /// Returns true if nothing speaks against switching the phone on or off.
    pub(super) fn may_be_off(self) -> bool {
        matches!(self, S::Running | S::Booting | S::Stopped | S::Silent | S::Absent | S::Offline)
    }

    /// Returns the reason why the phone cannot be operated: a lower-case fragment, and empty if it
    /// runs.
    pub(super) fn why(self) -> &'static str {
        STATES[self as usize].3
    }

    /// Returns the next action of the operator.
    pub(super) fn remedy(self) -> &'static str {
        STATES[self as usize].4
    }

    /// Splits the state off that ends a text.
    pub(super) fn split(text: &str) -> Option<(&str, Self)> {
        // This state explains itself in brackets.
        let text = text.rfind("no permissions (").map_or(text, |at| &text[..at + "no permissions".len()]);
        let words = STATES.iter().flat_map(|(state, words, ..)| words.iter().map(move |word| (*state, word)));
        words.into_iter().find_map(|(state, word)| {
            let rest = text.strip_suffix(word)?;
            rest.ends_with(char::is_whitespace).then_some((rest, state))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_row_and_each_but_running_a_reason_and_a_remedy() {
        for (at, (state, _, shown, why, remedy)) in STATES.iter().enumerate() {
            assert_eq!(*state as usize, at);
            let runs = *shown == Some(Running);
            assert_eq!((why.is_empty(), remedy.is_empty()), (runs, runs), "{state:?}");
        }
    }
}
