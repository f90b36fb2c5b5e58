//! A phone at one time: a function of the seed, its index, the commands that it took, and the time.
//!
//! A phone takes storage with its first command or input. A command knows the state that it leads
//! to, so reading a phone does not repeat commands, and old ones can be
//! [forgotten](WrittenPhone::forget). Start at [`PhoneAt::draw`].

use super::cast::Part;
use super::fleet;
use super::handset::ScreenState;
use crate::phones::contract::{Command, DeviceSpec, DeviceState, Proxy, SetProxyArgs};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::tasks::TaskId;
use toolwarrant::text::Untrusted;

/// For this time before its effect, a command shows as `booting`, `stopping` or `restarting`.
const TRANSITION: Duration = Duration::from_secs(5);

/// The commands and inputs that a phone took.
#[derive(Default)]
pub(super) struct WrittenPhone {
    pub(super) taken: Vec<TakenCommand>,
    /// When its proxy was last switched off by hand. It is on again after the next command about
    /// the proxy, and after a restart of this program.
    pub(super) switched_off: Option<Timestamp>,
    /// With the number of boots after which it was used.
    pub(super) screen: (u64, ScreenState),
}

/// An accepted command with its consequences. It has no user name and no password.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TakenCommand {
    pub(super) at: Timestamp,
    pub(super) request: TaskId,
    pub(super) command: Command,
    /// The platform's final report, true or not.
    pub(super) ok: bool,
    pub(super) effect: Option<PhoneEffect>,
}

/// The state of a phone from the time at which a command acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PhoneEffect {
    pub(super) at: Timestamp,
    pub(super) running: bool,
    /// The boot id depends on it.
    pub(super) boots: u64,
}

pub(super) struct PhoneAt {
    pub(super) index: u32,
    pub(super) part: Part,
    pub(super) spec: Arc<DeviceSpec>,
    pub(super) power: DeviceState,
    pub(super) boots: u64,
    /// In use, or switched off by hand.
    pub(super) proxy: Option<Proxy>,
    pub(super) is_off: bool,
    /// Power and boots once all commands have acted.
    pub(super) last: (DeviceState, u64),
    pub(super) readable: bool,
    /// It looks the same before this time, unless it is written to.
    pub(super) until: Timestamp,
}

impl PhoneAt {
    pub(super) fn draw(seed: u64, index: u32, written: Option<&WrittenPhone>, now: Timestamp) -> Self {
        let (part, spec) = fleet::draw(seed, index);
        let (readable, until) = part.readable(seed, index, now);
        let (power, proxy) = (part.power(), part.proxy());
        let last = (power, 0);
        let phone = Self { index, part, spec, power, boots: 0, proxy, is_off: false, last, readable, until };
        if let Some(written) = written { phone.apply_commands(written, now) } else { phone }
    }

    fn apply_commands(
        mut self,
        WrittenPhone { taken, switched_off, screen: _ }: &WrittenPhone,
        now: Timestamp,
    ) -> Self {
        let has_acted = |taken: &&TakenCommand| taken.effect.is_some_and(|effect| effect.at <= now);
        if let Some(PhoneEffect { running, boots, .. }) = taken.iter().rfind(has_acted).and_then(|taken| taken.effect) {
            (self.power, self.boots) = (power(running), boots);
        }
        let about_proxy = taken.iter().rfind(|taken| has_acted(taken) && taken.is_about_proxy());
        if let Some(TakenCommand { command, .. }) = about_proxy {
            self.proxy = if let Command::SetProxy(args) = command { Some(proxy(args)) } else { None };
        }
        let proxy_since = about_proxy.and_then(|taken| taken.effect).map(|effect| effect.at);
        self.is_off = switched_off.is_some_and(|off| proxy_since.is_none_or(|since| since <= off));

        let mut shown = None;
        self.last = (self.power, self.boots);
        for effect in taken.iter().filter_map(|taken| taken.effect).filter(|effect| effect.at > now) {
            let begins = effect.at.minus(TRANSITION);
            let on_the_way = match self.last {
                (power, _) if power != DeviceState::Stopped && !effect.running => Some(DeviceState::Stopping),
                (DeviceState::Running, boots) if boots < effect.boots => Some(DeviceState::Restarting),
                (_, boots) if boots < effect.boots => Some(DeviceState::Booting),
                _ => None,
            };
            shown = shown.or(on_the_way.filter(|_| begins <= now));
            self.until = self.until.min(if begins > now { begins } else { effect.at });
            self.last = (power(effect.running), effect.boots);
        }
        self.power = shown.unwrap_or(self.power);
        self
    }

    pub(super) fn proxy_in_use(&self) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| !self.is_off)
    }
}

impl WrittenPhone {
    /// Forgets commands that were taken before this time, except the last that had an effect, and
    /// the last about the proxy: the state of the phone is known from these two.
    pub(super) fn forget(&mut self, before: Timestamp) {
        let old = self.taken.partition_point(|taken| taken.at < before);
        let last = |is_meant: fn(&TakenCommand) -> bool| {
            self.taken[..old].iter().rposition(|taken| taken.effect.is_some() && is_meant(taken))
        };
        let kept = [last(|_| true), last(TakenCommand::is_about_proxy)];
        let mut place = 0..;
        self.taken.retain(|_| {
            let place = place.next();
            place >= Some(old) || kept.contains(&place)
        });
    }
}

impl TakenCommand {
    fn is_about_proxy(&self) -> bool {
        matches!(self.command, Command::SetProxy(_) | Command::ClearProxy(_))
    }
}

fn power(running: bool) -> DeviceState {
    if running { DeviceState::Running } else { DeviceState::Stopped }
}

pub(super) fn proxy(SetProxyArgs { scheme, host, port, .. }: &SetProxyArgs) -> Proxy {
    Proxy { scheme: *scheme, host: Untrusted::clean(host.as_str()), port: *port }
}
