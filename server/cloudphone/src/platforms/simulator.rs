//! The built-in upstream: a fleet without real phones, for development, demonstration and tests.
//!
//! Every phone is a function of the seed, its index, its commands, the inputs of its screen and the
//! time. Only phones that were written to, touched or shown take storage. The first phones play one
//! [`Part`] each, with any seed; the others draw theirs. Time and randomness come only from the
//! arguments of [`Sim::new`]. The reports of a phone follow a script; [`Sim::deeds`] returns what
//! really happened. Start at [`CAST`].

mod cast;
mod control;
mod fleet;
mod handset;
mod journal;
mod picture;
mod screen;
mod table;
mod truth;

pub use cast::{CAST, Part};
pub use fleet::DEVICES_MAX;
pub use truth::{Change, Deed, ProxyEndpoint};

use crate::phones::contract::{
    DeviceId, DeviceState, PowerAction, Proxy, ProxyScheme, SessionMode, SessionToken, texts,
};
use crate::phones::port::{AtHand, DeviceReading, Offers, Paces, ReadPort, See, Session, SessionError, Unreachable};
use fleet::{Draw, device_id, mix};
use handset::Screens;
use hmac::{Hmac, KeyInit, Mac};
use journal::Journal;
use sha2::Sha256;
use std::borrow::Cow;
use std::cell::LazyCell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use table::{LastView, Look, Table};
use toolwarrant::base::{hex, ignore_poison};
use toolwarrant::handler::Flag;
use toolwarrant::tasks::TaskId;
use toolwarrant::text::{Secret, Untrusted};
use toolwarrant::{Clock, Timestamp};
use truth::{PhoneState, Truth};

const SESSION_LIFETIME: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub struct Sim {
    seed: u64,
    devices: u32,
    clock: Clock,
    tokens: Hmac<Sha256>,
    issued: AtomicU64,
    rotated: AtomicU64,
    cut: AtomicBool,
    table: Table,
    screens: Screens,
    record: Mutex<Record>,
}

#[derive(Debug)]
struct Record {
    truth: Truth,
    journal: Journal,
}

impl Record {
    fn fold_if_grown(&mut self, now: Timestamp) {
        let Self { truth, journal } = self;
        if journal.has_grown()
            && let Err(error) = journal.fold(truth, now)
        {
            tracing::warn!(%error, "the journal of the simulated phones cannot be folded, and keeps growing");
        }
    }
}

struct PhoneAt {
    index: u32,
    part: Part,
    state: PhoneState,
    readable: bool,
}

impl PhoneAt {
    fn look(&self) -> Look {
        let Self { index: _, part, state, readable } = self;
        let PhoneState { power, proxy: _, proxy_off, boots: _, deeds } = state;
        Look { part: *part, power: *power, readable: *readable, deeds: *deeds, proxy_off: *proxy_off }
    }
}

impl Sim {
    /// Creates a fleet without a journal. Session tokens are as hard to guess as `token_key`.
    #[must_use]
    pub fn new(seed: u64, devices: u32, clock: Clock, token_key: &[u8; 32]) -> Self {
        let Ok(tokens) = Hmac::new_from_slice(token_key) else { unreachable!("HMAC takes keys of any length") };
        Self {
            seed,
            devices: devices.min(DEVICES_MAX),
            clock,
            tokens,
            issued: AtomicU64::new(0),
            rotated: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            table: Table::of(devices.min(DEVICES_MAX)),
            screens: Screens::default(),
            record: Mutex::new(Record { truth: Truth::default(), journal: Journal::Memory }),
        }
    }

    /// Repeats the commands in a journal, and writes further ones to it. No other process may have
    /// it open.
    pub fn with_journal(self, path: &Path) -> io::Result<Self> {
        let (journal, truth) = Journal::open(path, self.seed, |phone| self.part(phone).initial_state())?;
        let mut record = Record { truth, journal };
        record.fold_if_grown(self.clock.now());
        let reached = record.truth.phones_written(1..=self.devices, self.clock.now());
        reached.into_iter().for_each(|(index, ..)| self.table.write(index));
        Ok(Self { record: Mutex::new(record), ..self })
    }

    /// Checks a journal, even if a fleet has it open.
    pub fn examine(path: &Path) -> io::Result<()> {
        journal::examine(path)
    }

    /// Makes the platform unreachable. Commands that it has accepted continue.
    pub fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    pub fn mend(&self) {
        self.cut.store(false, Relaxed);
    }

    #[must_use]
    pub fn deeds(&self, request: TaskId) -> Vec<Deed> {
        self.record().truth.deeds(self.clock.now(), |taken| taken.request == request)
    }

    #[must_use]
    pub fn deeds_on(&self, id: &DeviceId) -> u64 {
        self.find(id).map_or(0, |phone| phone.state.deeds)
    }

    /// Returns real effects on a phone, in order of time. Old commands may be forgotten.
    #[must_use]
    pub fn deeds_of(&self, id: &DeviceId) -> Vec<Deed> {
        let index = fleet::index(id.as_str(), self.devices).unwrap_or_default();
        self.record().truth.deeds(self.clock.now(), |taken| taken.phone == index)
    }

    pub fn phones_of(&self, part: Part) -> impl Iterator<Item = DeviceId> {
        (1..=self.devices).filter(move |index| self.part(*index) == part).map(device_id)
    }

    fn part(&self, index: u32) -> Part {
        Draw::new(self.seed, index).part(index)
    }

    fn find(&self, id: &DeviceId) -> Option<PhoneAt> {
        Some(self.phone(fleet::index(id.as_str(), self.devices)?, self.clock.now()))
    }

    fn phone(&self, index: u32, now: Timestamp) -> PhoneAt {
        self.phone_in(&mut self.record().truth, index, now)
    }

    fn phone_in(&self, truth: &mut Truth, index: u32, now: Timestamp) -> PhoneAt {
        let part = self.part(index);
        let state = truth.state(index, now).unwrap_or_else(|| part.initial_state());
        PhoneAt { index, part, state, readable: self.is_readable(index, part, || now) }
    }

    fn is_readable(&self, index: u32, part: Part, now: impl FnOnce() -> Timestamp) -> bool {
        part.readable(now, |pair| mix([self.seed, index.into(), pair]).is_multiple_of(2))
    }

    fn show(&self, indices: impl Iterator<Item = u32> + Clone, see: See<'_>) {
        let (Some(first), Some(last)) = (indices.clone().min(), indices.clone().max()) else { return };
        let now = LazyCell::new(|| self.clock.now());
        let reached = match self.table.is_written(first) {
            true => self.record().truth.phones_written(first..=last, *now),
            false => Vec::new(),
        };
        let is_so = |index, shown: &Look| {
            let part = shown.part;
            if reached.is_empty() && part.is_steady() {
                return true;
            }
            let (power, deeds, proxy_off) = match reached.binary_search_by_key(&index, |(reached, ..)| *reached) {
                Ok(place) => (reached[place].1, reached[place].2, reached[place].3),
                Err(_) => (part.power(), 0, false),
            };
            *shown == Look { part, power, readable: self.is_readable(index, part, || *now), deeds, proxy_off }
        };
        let make = |index| {
            let phone = self.phone(index, *now);
            LastView { look: phone.look(), seen: Arc::new(self.snapshot(&phone).into()) }
        };
        self.table.show(indices, is_so, make, see);
    }

    /// Keeps the last flags while the phone cannot be read.
    fn snapshot(&self, phone: &PhoneAt) -> DeviceReading {
        let PhoneAt { index, part, state, readable } = phone;
        let running = match state.power {
            DeviceState::Running => Flag::Offered,
            _ if *part == Part::Unreadable => Flag::Offered,
            DeviceState::Stopped => Flag::Curable { why: "the phone is stopped", cure: texts::BOOT_FIRST },
            DeviceState::Stopping => Flag::Curable { why: "the phone is stopping", cure: texts::BOOT_FIRST },
            DeviceState::Booting => Flag::Curable { why: "the phone is booting", cure: texts::SOON_UP },
            DeviceState::Restarting => Flag::Curable { why: "the phone is restarting", cure: texts::SOON_UP },
            DeviceState::Unknown => Flag::Refused("the phone cannot be read"),
        };
        let mut draw = Draw::new(self.seed, *index);
        draw.part(*index);
        let mut snapshot = DeviceReading {
            id: device_id(*index),
            name: Untrusted::clean(&format!("Phone {index}")),
            state: readable.then_some(state.power),
            offers: Offers { proxy: running.clone(), power: Flag::Offered, session: running },
            spec: draw.spec(),
            power_actions: Cow::Borrowed(PowerAction::ALL),
            proxy_schemes: Cow::Borrowed(ProxyScheme::ALL),
            proxy: state.proxy_in_use().filter(|_| *readable).map(proxy_view),
            session_modes: Cow::Borrowed(SessionMode::ALL),
            paces: Paces::default(),
        };
        part.play(&mut snapshot);
        snapshot
    }

    fn issue(&self, id: &DeviceId) -> Result<Session, SessionError> {
        self.reach()?;
        let refused = |why: &str| SessionError::Refused(format!("{id}: {why}").into());
        let phone = self.find(id).ok_or_else(|| refused("no such phone"))?;
        if let Some(why) = self.snapshot(&phone).offers.session.refusal() {
            return Err(refused(why));
        }
        let count = self.issued.fetch_add(1, Relaxed);
        let code = self.tokens.clone().chain_update(count.to_be_bytes()).finalize().into_bytes();
        let token = SessionToken::new(&hex::encode(&code)).map_err(|_| refused("its token is none"))?;
        Ok(Session {
            token: Secret::new(token),
            url: None,
            expires_at: (phone.part != Part::Reticent).then(|| self.clock.now().plus(SESSION_LIFETIME)),
        })
    }

    fn reach(&self) -> Result<(), Unreachable> {
        if self.cut.load(Relaxed) { Err(Unreachable("the platform is cut off".into())) } else { Ok(()) }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        ignore_poison(self.record.lock())
    }
}

impl ReadPort for Sim {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.reach()?;
        let mut first = after.map_or(1, |id| fleet::index_after(id, self.devices));
        let end = first.saturating_add(limit.into()).min(self.devices + 1);
        while first < end {
            let next = end.min(table::next_piece(first));
            self.show(first..next, see);
            first = next;
        }
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.reach()?;
        let indices: Vec<_> = ids.iter().filter_map(|id| fleet::index(id, self.devices)).collect();
        for indices in indices.chunk_by(|a, b| table::next_piece(*a) == table::next_piece(*b)) {
            self.show(indices.iter().copied(), see);
        }
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        AtHand::Now(self.reach().map(|()| {
            let mut found = None;
            let index = fleet::index(id.as_str(), self.devices);
            self.show(index.into_iter(), &mut |phones| found = phones.first().copied().cloned());
            found
        }))
    }
}

fn proxy_view(endpoint: &ProxyEndpoint) -> Proxy {
    let ProxyEndpoint { scheme, host, port } = endpoint;
    Proxy { scheme: *scheme, host: Untrusted::clean(host), port: *port }
}

#[cfg(test)]
mod tests;
