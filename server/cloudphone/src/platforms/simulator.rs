//! The built-in upstream: a fleet without real phones, for development, demonstration and tests.
//!
//! Every phone is a function of the seed, its index, its commands, the inputs of its screen and the
//! time. Only phones that were written to, touched or shown take storage. The first phones play one
//! [`Part`] each, with any seed; the others draw theirs. Time and randomness come only from the
//! arguments of [`Sim::new`]. The reports of a phone follow a script; [`Sim::deeds_of`] returns the
//! commands that really took effect. Start at [`CAST`].

mod cast;
mod control;
mod fleet;
mod handset;
mod journal;
mod phone;
mod picture;
mod screen;

pub use cast::{CAST, Part};

use crate::phones::contract::{Command, DeviceId, DeviceState, PowerAction, ProxyScheme, SessionMode, texts};
use crate::phones::port::{AtHand, DeviceReading, DeviceSnapshot, Offers, Paces, ReadPort, See, Unreachable};
use fleet::{DEVICES_MAX, device_id};
use hmac::{Hmac, KeyInit};
use journal::Journal;
use phone::{PhoneAt, TakenCommand, WrittenPhone};
use sha2::Sha256;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use toolwarrant::base::ignore_poison;
use toolwarrant::handler::Flag;
use toolwarrant::text::Untrusted;
use toolwarrant::{Clock, Timestamp};

pub struct Sim {
    seed: u64,
    devices: u32,
    clock: Clock,
    tokens: Hmac<Sha256>,
    /// Of issued tokens, and of addresses of rotating proxies.
    count: AtomicU64,
    cut: AtomicBool,
    phones: RwLock<Phones>,
}

#[derive(Default)]
struct Phones {
    written: BTreeMap<u32, WrittenPhone>,
    /// The phone of index 1 comes first.
    shown: Vec<Option<ShownPhone>>,
    journal: Option<Journal>,
}

/// A phone as it was shown last, so that its JSON is made once for each change.
struct ShownPhone {
    valid: Range<Timestamp>,
    seen: Arc<DeviceSnapshot>,
}

impl Phones {
    /// Returns a phone to be written to, whose view ends.
    fn write(&mut self, index: u32) -> &mut WrittenPhone {
        if let Some(Some(view)) = self.shown.get_mut(place(index)) {
            view.valid.end = view.valid.start;
        }
        self.written.entry(index).or_default()
    }

    fn store(&mut self, taken: &TakenCommand) -> io::Result<()> {
        let Self { written, shown: _, journal } = self;
        let Some(journal) = journal else { return Ok(()) };
        if journal.has_grown(taken.at) {
            written.values_mut().for_each(|phone| phone.forget(taken.at.minus(journal::REMEMBERED)));
            let rewritten = journal.rewrite(written.values().flat_map(|phone| &phone.taken), taken.at);
            if let Err(error) = rewritten {
                tracing::warn!(%error, "the journal of the simulated phones keeps growing, as it cannot be rewritten");
            }
        }
        journal.append(taken)
    }

    fn snapshot(&self, index: u32, now: Timestamp) -> Option<&Arc<DeviceSnapshot>> {
        let view = self.shown.get(place(index))?.as_ref()?;
        view.valid.contains(&now).then_some(&view.seen)
    }
}

fn place(index: u32) -> usize {
    index as usize - 1
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
            count: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            phones: RwLock::default(),
        }
    }

    /// Restores the commands in a journal, and writes further ones to it. No other process may have
    /// it open.
    pub fn with_journal(self, path: &Path) -> io::Result<Self> {
        let (journal, taken) = Journal::open(path, self.seed)?;
        let mut phones = Phones { journal: Some(journal), ..Phones::default() };
        for taken in taken {
            // A fleet that has become smaller keeps the commands of the phones that it lacks.
            let index = fleet::index(taken.command.device().as_str(), DEVICES_MAX).unwrap_or(DEVICES_MAX);
            phones.write(index).taken.push(taken);
        }
        Ok(Self { phones: RwLock::new(phones), ..self })
    }

    /// Checks a journal, even if a fleet has it open.
    pub fn examine(path: &Path) -> io::Result<()> {
        journal::read(path).map(drop)
    }

    /// Makes the platform unreachable. Commands that it has accepted continue.
    pub fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    pub fn mend(&self) {
        self.cut.store(false, Relaxed);
    }

    /// Returns the commands that took effect on a phone, in order. Old ones may be forgotten.
    #[must_use]
    pub fn deeds_of(&self, id: &DeviceId) -> Vec<Command> {
        let (phones, now) = (self.phones(), self.clock.now());
        let written = fleet::index(id.as_str(), self.devices).and_then(|index| phones.written.get(&index));
        let done = written.iter().flat_map(|written| &written.taken);
        let done = done.filter(|taken| taken.effect.is_some_and(|effect| effect.at <= now));
        done.map(|taken| taken.command.clone()).collect()
    }

    pub fn phones_of(&self, part: Part) -> impl Iterator<Item = DeviceId> {
        (1..=self.devices).filter(move |index| fleet::draw(self.seed, *index).0 == part).map(device_id)
    }

    fn find(&self, phones: &Phones, id: &DeviceId) -> Option<PhoneAt> {
        Some(self.draw(phones, fleet::index(id.as_str(), self.devices)?, self.clock.now()))
    }

    fn draw(&self, phones: &Phones, index: u32, now: Timestamp) -> PhoneAt {
        PhoneAt::draw(self.seed, index, phones.written.get(&index), now)
    }

    fn show(&self, indices: impl Iterator<Item = u32> + Clone, see: See<'_>) {
        let now = self.clock.now();
        let (phones, mut seen) = (self.phones(), Vec::with_capacity(indices.size_hint().1.unwrap_or(0)));
        seen.extend(indices.clone().map_while(|index| phones.snapshot(index, now)));
        if seen.len() == indices.clone().count() {
            return see(&seen);
        }
        drop(seen);
        drop(phones);
        let mut phones = self.phones_mut();
        for index in indices.clone() {
            if phones.snapshot(index, now).is_none() {
                self.renew_view(&mut phones, index, now);
            }
        }
        let phones = RwLockWriteGuard::downgrade(phones);
        see(&indices.filter_map(|index| phones.snapshot(index, now)).collect::<Vec<_>>());
    }

    fn renew_view(&self, phones: &mut Phones, index: u32, now: Timestamp) {
        let phone = self.draw(phones, index, now);
        let (valid, reading) = (now..phone.until, phone.reading());
        let shown = &mut phones.shown;
        shown.resize_with(shown.len().max(index as usize), || None);
        match &mut shown[place(index)] {
            // A client cannot see the change.
            Some(view) if view.seen.snapshot == reading => view.valid = valid,
            view => *view = Some(ShownPhone { valid, seen: Arc::new(reading.into()) }),
        }
    }

    fn reach(&self) -> Result<(), Unreachable> {
        if self.cut.load(Relaxed) { Err(Unreachable("the platform is cut off".into())) } else { Ok(()) }
    }

    fn phones(&self) -> RwLockReadGuard<'_, Phones> {
        ignore_poison(self.phones.read())
    }

    fn phones_mut(&self) -> RwLockWriteGuard<'_, Phones> {
        ignore_poison(self.phones.write())
    }
}

impl PhoneAt {
    /// Keeps the last flags while the phone cannot be read.
    fn reading(&self) -> DeviceReading {
        let Self { index, part, spec, power, boots: _, proxy: _, is_off: _, last: _, readable, until: _ } = self;
        let running = match power {
            DeviceState::Running => Flag::Offered,
            _ if *part == Part::Unreadable => Flag::Offered,
            DeviceState::Stopped => Flag::Curable { why: "the phone is stopped", cure: texts::BOOT_FIRST },
            DeviceState::Stopping => Flag::Curable { why: "the phone is stopping", cure: texts::BOOT_FIRST },
            DeviceState::Booting => Flag::Curable { why: "the phone is booting", cure: texts::SOON_UP },
            DeviceState::Restarting => Flag::Curable { why: "the phone is restarting", cure: texts::SOON_UP },
            DeviceState::Unknown => Flag::Refused("the phone cannot be read"),
        };
        let mut snapshot = DeviceReading {
            id: device_id(*index),
            name: Untrusted::clean(&format!("Phone {index}")),
            state: readable.then_some(*power),
            offers: Offers { proxy: running.clone(), power: Flag::Offered, session: running },
            spec: spec.clone(),
            power_actions: Cow::Borrowed(PowerAction::ALL),
            proxy_schemes: Cow::Borrowed(ProxyScheme::ALL),
            proxy: self.proxy_in_use().filter(|_| *readable).cloned(),
            session_modes: Cow::Borrowed(SessionMode::ALL),
            paces: Paces::default(),
        };
        part.play(&mut snapshot);
        snapshot
    }
}

impl ReadPort for Sim {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.reach()?;
        let first = after.map_or(1, |id| fleet::index_after(id, self.devices));
        self.show(first..first.saturating_add(limit.into()).min(self.devices + 1), see);
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.reach()?;
        self.show(ids.iter().filter_map(|id| fleet::index(id, self.devices)), see);
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        let mut found = None;
        let read = self.read(&[id.as_str()], &mut |phones| found = phones.first().copied().cloned());
        AtHand::Now(read.map(|()| found))
    }
}

#[cfg(test)]
mod tests;
