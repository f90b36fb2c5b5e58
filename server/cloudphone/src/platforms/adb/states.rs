//! The only table of states: the words of the adb server's list, and what a phone's answer adds to
//! them.
//!
//! The server says `device` for minutes after a phone was switched off. Such a phone counts as
//! silent until it answers.

use super::facts::PhoneFacts;
use crate::phones::contract::DeviceState::{self, Booting, Running, Stopped};
use AdbState as S;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AdbState {
    Running,
    Booting,
    Unbooted,
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
    Unclear,
}

/// Words in a list, the state that clients see, why the phone cannot be operated, and the
/// operator's next action.
type StateRow = (AdbState, &'static [&'static str], Option<DeviceState>, &'static str, &'static str);

/// In the order of [`AdbState`].
const STATES: [StateRow; 16] = [
    (S::Running, &[], Some(Running), "", ""),
    (S::Booting, &[], Some(Booting), "the phone is booting", "wait until it has booted"),
    (S::Unbooted, &[], Some(Booting), "the phone runs for 10 minutes and does not say that it has booted", UNBOOTED),
    (S::Stopped, &[], Some(Stopped), "the phone is switched off", "boot it"),
    (S::Silent, &["device"], None, "the phone does not answer", "wake it, switch it on, or run `adb reconnect`"),
    (S::TooOld, &[], None, "its Android is older than 7", "use a phone with a later one"),
    (S::Shared, &[], None, "several phones have this serial", "name their USB paths in `only`, as `usb:PATH`"),
    (S::Absent, &[], None, "the adb server does not list the phone", "plug it in, or run `adb connect HOST:PORT`"),
    (S::Offline, &["offline"], None, "the adb server has lost the phone", "run `adb reconnect offline`"),
    (S::Unauthorized, &["unauthorized"], None, "the phone has not allowed adb", ON_SCREEN),
    (S::NoPermissions, &["no permissions"], None, "adb may not open the USB device of the phone", UDEV),
    (S::Recovery, &["recovery", "rescue", "sideload"], None, "the phone is in recovery", "run `adb -s SERIAL reboot`"),
    (S::Bootloader, &["bootloader"], None, "the phone is in its bootloader or fastbootd", "run `fastboot reboot`"),
    (S::Unconnected, &["detached", "host"], None, "adb is not connected to it", "run `adb reconnect`"),
    (S::Connecting, &["connecting", "authorizing"], None, "adb connects to the phone", "wait, and run `adb reconnect`"),
    (S::Unclear, &[], None, "it is not clear which of two phones this is, because one is a copy", COPY),
];

const UNBOOTED: &str = "restart it; a build that never sets `sys.boot_completed` cannot be served";
const COPY: &str = "connect both, or run `adb -s SERIAL shell rm /data/local/tmp/.cloudphone` for the copy";
const ON_SCREEN: &str = "unlock the phone, and accept the question on its screen";
const UDEV: &str = "add a udev rule for the phone, plug it in again, and run `adb kill-server`";

impl AdbState {
    pub(super) fn of_answer(facts: &PhoneFacts) -> Self {
        match (facts.has_booted, facts.has_run_long) {
            (true, _) => S::Running,
            (false, false) => S::Booting,
            (false, true) => S::Unbooted,
        }
    }

    pub(super) fn visible_state(self) -> Option<DeviceState> {
        STATES[self as usize].2
    }

    pub(super) fn may_run(self) -> bool {
        matches!(self, S::Running | S::Booting | S::Unbooted | S::Silent | S::Absent | S::Offline | S::Connecting)
    }

    /// Returns true if nothing speaks against switching the phone on or off.
    pub(super) fn may_be_off(self) -> bool {
        matches!(self, S::Running | S::Booting | S::Unbooted | S::Stopped | S::Silent | S::Absent | S::Offline)
    }

    pub(super) fn why(self) -> &'static str {
        STATES[self as usize].3
    }

    pub(super) fn remedy(self) -> &'static str {
        STATES[self as usize].4
    }

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
