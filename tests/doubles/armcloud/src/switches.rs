//! The switches: deviations from the platform's usual behaviour, for all pads or for one.
//!
//! [`Set`] lists them. The switch of a pad has priority over the same switch for all pads. A switch
//! can be limited to a number of next calls, tasks or scripts, and to one endpoint.

use crate::display::ScreenFault;
use crate::endpoints;
use crate::truth::Seat;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::num::NonZeroU64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    /// The task ends with 3 without its effect.
    Never,
    /// The task has its effect, although it fails or never ends.
    Always,
    /// Only lists show a start.
    Show,
}

/// No command runs: its task ends with 3 and empty output, ends with -1, or stays at 2; over adb
/// alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shell {
    Silent,
    Fails,
    Hangs,
}

/// Durations are in milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Set {
    // Of a request. A switch of a pad applies to requests that name the pad.
    /// It waits this long before it acts.
    pub(crate) stall_ms: Setting<u64>,
    /// Does nothing and closes the connection.
    pub(crate) drop_before_acting: Setting<bool>,
    /// Acts, and closes the connection without an answer.
    pub(crate) drop_after_acting: Setting<bool>,
    /// Acts, and resets the connection before the first byte of the answer.
    pub(crate) reset_before_answer: Setting<bool>,
    /// Acts, and resets the connection after the first byte of the answer.
    pub(crate) reset_after_first_byte: Setting<bool>,
    /// Acts, and closes the connection after half of the answer's body.
    pub(crate) half_body: Setting<bool>,
    /// Acts, and waits this long before it answers.
    pub(crate) stall_answer_ms: Setting<u64>,
    /// Does nothing, and answers with this code: with status 401 for codes of signatures, 429 with
    /// its headers.
    pub(crate) code: Setting<i64>,
    /// Acts, but answers with this code.
    pub(crate) code_after_acting: Setting<i64>,
    /// Does nothing, and answers with this status and a page of HTML.
    pub(crate) http_status: Setting<u16>,
    // Of a task, from its creation on.
    /// The final status. The task has no effect unless it is 3.
    pub(crate) task_end: Setting<i64>,
    pub(crate) effect: Setting<Effect>,
    /// The effect comes this long after the task's end.
    pub(crate) effect_late_ms: Setting<u64>,
    /// The task stays at 2 without effect.
    pub(crate) task_never_ends: Setting<bool>,
    // Of a script on a pad, and of its requests.
    pub(crate) shell: Setting<Shell>,
    /// The tools that the pad has, by default all; `wget` and `nc` are toybox's.
    pub(crate) tools: Setting<Vec<String>>,
    /// A command's requests do not go through the platform's proxy.
    pub(crate) shell_ignores_proxy: Setting<bool>,
    /// The `user:password` that the proxies of the pad require.
    pub(crate) proxy_login: Setting<String>,
    /// The proxies of the pad answer with this body themselves, and do not connect.
    pub(crate) proxy_lies: Setting<String>,
    /// The proxies of the pad use another exit for each request.
    pub(crate) proxy_rotates: Setting<bool>,
    /// The proxies of the pad accept no connection.
    pub(crate) proxy_dead: Setting<bool>,
    /// The address from which requests without a proxy leave, as behind a NAT or an app.
    pub(crate) own_address: Setting<Ipv4Addr>,
    /// The address from which all requests seem to come, as behind a port forwarder.
    pub(crate) forwarder: Setting<Ipv4Addr>,
    /// The size of the pictures of its screen as `WIDTHxHEIGHT`, by default 90x160.
    pub(crate) screen: Setting<String>,
    /// The pictures of the screen have at least this size.
    pub(crate) screen_bytes: Setting<usize>,
    pub(crate) screen_fault: Setting<ScreenFault>,
    /// The picture changes by itself each time that these milliseconds have passed.
    pub(crate) screen_moves_ms: Setting<u64>,
    /// An input shows this long after it.
    pub(crate) screen_late_ms: Setting<u64>,
    /// The list of `uiautomator`, in place of that of the screen.
    pub(crate) screen_list: Setting<String>,
    // Of a pad, until it is set again.
    /// The duration of a task, by default 500.
    pub(crate) task_ms: Setting<u64>,
    /// The duration of a restart, by default 3000.
    pub(crate) restart_ms: Setting<u64>,
    /// From the end of a start until the pad is online, by default 1000.
    pub(crate) online_ms: Setting<u64>,
    /// The duration of a start or a stop, by default 3000.
    pub(crate) power_ms: Setting<u64>,
    /// The time that a command takes in addition to its own, by default 100.
    pub(crate) command_ms: Setting<u64>,
    /// The age of the state in lists and readings of the pad.
    pub(crate) lag_ms: Setting<u64>,
    /// Treats the pad as one that does not exist.
    pub(crate) unknown_pad: Setting<bool>,
    /// The `padStatus` that is shown.
    pub(crate) pad_status: Setting<i64>,
    /// The `cvmStatus` that is shown.
    pub(crate) cvm_status: Setting<i64>,
    /// The `publicIp` that `userPadList` shows.
    pub(crate) public_address: Setting<String>,
    /// The state of the pad in the list of adb; `absent` if it is not in the list.
    pub(crate) adb_state: Setting<String>,
    /// From the next restart over adb on, the connection of the pad leads to the pad with this
    /// code, and that pad's to it.
    pub(crate) adb_swaps_with: Setting<String>,
    /// An emulator of one image with the pad of this code: the same serial of its own and, at each
    /// start, its data.
    pub(crate) adb_copy_of: Setting<String>,
    /// adb on the pad has no shells with an exit status, as before Android 7.
    pub(crate) adb_old: Setting<bool>,
    // Of the whole platform.
    /// Closes the ports of the platform and of adb and every connection, until it is turned off.
    pub(crate) refuse_connections: Setting<bool>,
    /// The seconds by which the platform's clock is ahead.
    pub(crate) clock_skew_s: Setting<i64>,
}

/// Written as a value, or as `{"value": .., "calls": N, "endpoint": NAME}`.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct Setting<T> {
    pub(crate) value: Option<T>,
    #[serde(default)]
    calls: Option<NonZeroU64>,
    #[serde(default)]
    endpoint: Option<String>,
}

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Self { value: None, calls: None, endpoint: None }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Value::deserialize(from)?;
        let whole = if written.is_object() { written } else { json!({"value": written}) };
        let setting = Self::deserialize(whole).map_err(D::Error::custom)?;
        match &setting.endpoint {
            Some(name) if !endpoints::is_name(name) => {
                Err(D::Error::custom(format_args!("no endpoint has the name `{name}`")))
            }
            _ => Ok(setting),
        }
    }
}

impl<T: Clone> Setting<T> {
    fn is_for(&self, endpoint: &str) -> bool {
        self.value.is_some() && self.endpoint.as_deref().is_none_or(|own| own == endpoint)
    }

    fn take(&mut self, endpoint: &str) -> Option<T> {
        let value = self.value.clone().filter(|_| self.is_for(endpoint))?;
        if let Some(calls) = self.calls {
            self.calls = NonZeroU64::new(calls.get() - 1);
            self.value = self.value.take().filter(|_| self.calls.is_some());
        }
        Some(value)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Switches {
    pub(crate) all: Set,
    pads: HashMap<Seat, Set>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) endpoint: &'static str,
    pub(crate) seats: &'a [Seat],
}

impl Switches {
    pub(crate) fn set(&mut self, seat: Option<Seat>, set: Set) {
        match seat {
            None => self.all = set,
            Some(seat) => drop(self.pads.insert(seat, set)),
        }
    }

    /// Does not count as a call.
    pub(crate) fn look<T: Clone>(&self, seat: Seat, of: impl Fn(&Set) -> &Setting<T>) -> Option<T> {
        let own = self.pads.get(&seat).and_then(|set| of(set).value.clone());
        own.or_else(|| of(&self.all).value.clone())
    }

    /// Counts as one of the calls of a limited switch.
    pub(crate) fn take<T: Clone>(&mut self, asked: Asked<'_>, of: impl Fn(&mut Set) -> &mut Setting<T>) -> Option<T> {
        for seat in asked.seats {
            if let Some(value) = self.pads.get_mut(seat).and_then(|set| of(set).take(asked.endpoint)) {
                return Some(value);
            }
        }
        of(&mut self.all).take(asked.endpoint)
    }

    pub(crate) fn is_set(&mut self, asked: Asked<'_>, of: impl Fn(&mut Set) -> &mut Setting<bool>) -> bool {
        self.take(asked, of) == Some(true)
    }
}
