//! The commands that were accepted, and the state of each phone after them: a function of the
//! commands and the time.
//!
//! A phone takes storage with its first command, or when its proxy is switched by hand. Due effects
//! are folded into the state of a phone, so that the cost of reading it does not grow with its
//! commands. Old commands can be [forgotten](Truth::fold).

use crate::phones::contract::{DeviceState, Port, ProxyScheme};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::tasks::TaskId;

/// For this time before its effect, a command shows as `booting`, `stopping` or `restarting`.
const TRANSITION: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Truth {
    log: CommandLog,
    requests: HashMap<TaskId, Vec<usize>>,
    phones: BTreeMap<u32, WrittenPhone>,
}

#[derive(Debug, Default)]
struct CommandLog {
    forgotten: usize,
    taken: Vec<TakenCommand>,
}

impl CommandLog {
    fn get(&self, number: usize) -> Option<&TakenCommand> {
        self.taken.get(number.checked_sub(self.forgotten)?)
    }

    fn acts_at(&self, number: usize) -> Option<Timestamp> {
        self.get(number)?.acts_at
    }
}

/// A line of the journal, before the states of `phones`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Folded {
    pub(super) forgotten: usize,
    /// Effects up to here are in the states of the phones.
    pub(super) settled: Timestamp,
    pub(super) phones: usize,
    /// The number of commands after these states that may have taken effect by `settled`.
    pub(super) commands: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettledPhone {
    pub(super) phone: u32,
    pub(super) state: PhoneState,
}

/// An accepted command with its consequences: a line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TakenCommand {
    pub(super) at: Timestamp,
    #[serde(serialize_with = "task_id::write", deserialize_with = "task_id::read")]
    pub(super) request: TaskId,
    pub(super) phone: u32,
    pub(super) change: Change,
    pub(super) reply: ReplyTime,
    pub(super) answer: OperationEnd,
    pub(super) answer_at: Timestamp,
    pub(super) acts_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    SetProxy(ProxyEndpoint),
    ClearProxy,
    /// A phone that does not run gets a new boot id. A running one stays as it is.
    Boot,
    Shutdown,
    /// A running phone gets a new boot id. Any other stays as it is.
    Restart,
}

/// A proxy without its credentials, which are never stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyEndpoint {
    #[serde(deserialize_with = "scheme")]
    pub scheme: ProxyScheme,
    pub host: String,
    #[serde(deserialize_with = "port")]
    pub port: Port,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReplyTime {
    Operation,
    Held,
    Lost,
}

/// The platform's final report, true or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperationEnd {
    Ok,
    Err,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    pub at: Timestamp,
    pub phone: u32,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PhoneState {
    #[serde(deserialize_with = "power")]
    pub(super) power: DeviceState,
    pub(super) proxy: Option<ProxyEndpoint>,
    /// Switched off by hand, until the next command about the proxy. A restart of this program
    /// forgets it.
    #[serde(skip)]
    pub(super) proxy_off: bool,
    /// The boot id depends on it.
    pub(super) boots: u64,
    pub(super) deeds: u64,
}

#[derive(Debug)]
struct WrittenPhone {
    state: PhoneState,
    /// Commands that have yet to take effect, the earliest first.
    pending: Vec<usize>,
}

impl Truth {
    pub(super) fn after(folded: Folded, phones: Vec<SettledPhone>) -> Self {
        let phones = phones
            .into_iter()
            .map(|SettledPhone { phone, state }| (phone, WrittenPhone { state, pending: Vec::new() }));
        let log = CommandLog { forgotten: folded.forgotten, taken: Vec::new() };
        Self { log, requests: HashMap::new(), phones: phones.collect() }
    }

    /// Returns the number of the command, which names its operation. `untouched` makes the state of
    /// a phone without commands.
    pub(super) fn take(&mut self, taken: TakenCommand, untouched: impl FnOnce() -> PhoneState) -> usize {
        let acts = taken.acts_at.is_some();
        self.take_settled(taken, acts, untouched)
    }

    /// Takes over a restored command. If `acts` is false, its effect is already in the state of its
    /// phone, or it has none.
    pub(super) fn take_settled(
        &mut self,
        taken: TakenCommand,
        acts: bool,
        untouched: impl FnOnce() -> PhoneState,
    ) -> usize {
        let number = self.log.forgotten + self.log.taken.len();
        let phone =
            self.phones.entry(taken.phone).or_insert_with(|| WrittenPhone { state: untouched(), pending: Vec::new() });
        if acts {
            let place = phone.pending.partition_point(|earlier| self.log.acts_at(*earlier) <= taken.acts_at);
            phone.pending.insert(place, number);
        }
        self.requests.entry(taken.request).or_default().push(number);
        self.log.taken.push(taken);
        number
    }

    /// Forgets the leading commands whose consequences were over at `before`, and applies effects
    /// up to `now`. Returns the rest.
    pub(super) fn fold(&mut self, now: Timestamp, before: Timestamp) -> (Folded, Vec<SettledPhone>, &[TakenCommand]) {
        let Self { log, requests, phones } = self;
        phones.values_mut().for_each(|phone| phone.settle(log, now));
        let over = |taken: &TakenCommand| taken.at.max(taken.answer_at).max(taken.acts_at.unwrap_or_default()) < before;
        let forgotten = log.taken.iter().position(|taken| !over(taken)).unwrap_or(log.taken.len());
        log.taken.drain(..forgotten);
        log.forgotten += forgotten;
        requests.values_mut().for_each(|numbers| numbers.retain(|number| *number >= log.forgotten));
        requests.retain(|_, numbers| !numbers.is_empty());
        let state = |(phone, WrittenPhone { state, .. }): (&u32, &WrittenPhone)| SettledPhone {
            phone: *phone,
            state: state.clone(),
        };
        let states: Vec<_> = phones.iter().map(state).collect();
        let (phones, commands) = (states.len(), log.taken.len());
        (Folded { forgotten: log.forgotten, settled: now, phones, commands }, states, &log.taken)
    }

    pub(super) fn state(&mut self, phone: u32, now: Timestamp) -> Option<PhoneState> {
        let phone = self.phones.get_mut(&phone)?;
        phone.settle(&self.log, now);
        Some(phone.state_at(&self.log, now))
    }

    /// Switches the proxy of a phone by hand, which is no effect of a command.
    pub(super) fn switch_proxy(&mut self, phone: u32, untouched: impl FnOnce() -> PhoneState) {
        let phone =
            self.phones.entry(phone).or_insert_with(|| WrittenPhone { state: untouched(), pending: Vec::new() });
        phone.state.proxy_off = !phone.state.proxy_off;
    }

    /// Returns the phones that were written to, in order: index, power state, number of effects,
    /// and true if the proxy is switched off.
    pub(super) fn phones_written(
        &mut self,
        phones: RangeInclusive<u32>,
        now: Timestamp,
    ) -> Vec<(u32, DeviceState, u64, bool)> {
        let Self { log, requests: _, phones: all } = self;
        let reached = |(index, phone): (&u32, &mut WrittenPhone)| {
            phone.settle(log, now);
            (*index, phone.power(log, now), phone.state.deeds, phone.state.proxy_off)
        };
        all.range_mut(phones).map(reached).collect()
    }

    pub(super) fn operation(&self, number: usize) -> Option<&TakenCommand> {
        self.log.get(number)
    }

    pub(super) fn numbers(&self, request: TaskId) -> &[usize] {
        self.requests.get(&request).map_or(&[], Vec::as_slice)
    }

    /// Returns effects up to `now`, in order of time, without those of forgotten commands.
    pub(super) fn deeds(&self, now: Timestamp, is_asked: impl Fn(&TakenCommand) -> bool) -> Vec<Deed> {
        let done = |taken: &TakenCommand| {
            let at = taken.acts_at.filter(|at| is_asked(taken) && *at <= now)?;
            Some(Deed { at, phone: taken.phone, change: taken.change.clone() })
        };
        let mut done: Vec<_> = self.log.taken.iter().filter_map(done).collect();
        done.sort_by_key(|deed| deed.at);
        done
    }
}

impl WrittenPhone {
    fn settle(&mut self, log: &CommandLog, now: Timestamp) {
        let due = self.pending.partition_point(|number| log.acts_at(*number).is_some_and(|at| at <= now));
        for taken in self.pending.drain(..due).filter_map(|number| log.get(number)) {
            self.state.apply(&taken.change);
        }
    }

    fn state_at(&self, log: &CommandLog, now: Timestamp) -> PhoneState {
        PhoneState { power: self.power(log, now), ..self.state.clone() }
    }

    fn power(&self, log: &CommandLog, now: Timestamp) -> DeviceState {
        let begun = self.pending.iter().filter_map(|number| log.get(*number));
        let mut begun = begun.filter(|taken| taken.acts_at.is_some_and(|at| at <= now.plus(TRANSITION)));
        begun.find_map(|taken| self.state.on_the_way(&taken.change)).unwrap_or(self.state.power)
    }
}

impl PhoneState {
    pub(super) fn proxy_in_use(&self) -> Option<&ProxyEndpoint> {
        self.proxy.as_ref().filter(|_| !self.proxy_off)
    }

    fn apply(&mut self, change: &Change) {
        let running = self.power == DeviceState::Running;
        self.deeds += 1;
        match change {
            Change::SetProxy(proxy) => (self.proxy, self.proxy_off) = (Some(proxy.clone()), false),
            Change::ClearProxy => (self.proxy, self.proxy_off) = (None, false),
            Change::Boot if running => {}
            Change::Boot => {
                self.power = DeviceState::Running;
                self.boots += 1;
            }
            Change::Shutdown => self.power = DeviceState::Stopped,
            Change::Restart => self.boots += u64::from(running),
        }
    }

    fn on_the_way(&self, change: &Change) -> Option<DeviceState> {
        let running = self.power == DeviceState::Running;
        match change {
            Change::Boot if !running => Some(DeviceState::Booting),
            Change::Shutdown if self.power != DeviceState::Stopped => Some(DeviceState::Stopping),
            Change::Restart if running => Some(DeviceState::Restarting),
            Change::SetProxy(_) | Change::ClearProxy | Change::Boot | Change::Shutdown | Change::Restart => None,
        }
    }
}

fn power<'de, D: Deserializer<'de>>(from: D) -> Result<DeviceState, D::Error> {
    let name = String::deserialize(from)?;
    let known = DeviceState::ALL.iter().copied().find(|state| state.as_str() == name);
    known.ok_or_else(|| de::Error::custom(format!("`{name}` is not a state")))
}

fn scheme<'de, D: Deserializer<'de>>(from: D) -> Result<ProxyScheme, D::Error> {
    let name = String::deserialize(from)?;
    let known = ProxyScheme::ALL.iter().copied().find(|scheme| scheme.as_str() == name);
    known.ok_or_else(|| de::Error::custom(format!("`{name}` is not a scheme")))
}

fn port<'de, D: Deserializer<'de>>(from: D) -> Result<Port, D::Error> {
    Port::new(i64::deserialize(from)?).map_err(|_| de::Error::custom("no TCP port"))
}

mod task_id {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use toolwarrant::tasks::TaskId;

    pub(super) fn write<S: Serializer>(id: &TaskId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<TaskId, D::Error> {
        let text = String::deserialize(from)?;
        TaskId::parse(&text).ok_or_else(|| de::Error::custom(format!("`{text}` is not a task id")))
    }
}
