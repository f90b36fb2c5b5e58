//! The assignment of ids to phones, without a clock, a store or a platform.
//!
//! A phone is identified by its serial, or by its code if it has no serial. An id is made of the
//! code that the phone had when it was first seen, and is never assigned again:
//!
//! * A serial that shows another code keeps its id, so the id no longer looks like the code.
//! * A code that appears on another serial is another phone. Its id ends with `-2` or more if the
//!   plain id was assigned before. The phone that had the code is hidden until its serial is seen
//!   with a code. A phone without a serial stays hidden for good.
//! * A phone without a serial whose code changes is another phone.
//! * A code that several serials show in one list does not identify any of them: those phones are
//!   hidden until a list is consistent. A serial that shows several codes does not count as a
//!   serial meanwhile.
//! * A phone that is gone keeps its id, and has it again when it comes back.

use super::knowledge::{Knowledge, LastReading};
use super::row::{KeptRow, Row};
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use toolwarrant::Timestamp;

/// A phone is gone after this number of lists in a row without it, because pages shift while they
/// are read.
const MISSED_MAX: u8 = 2;

/// The most ids of one platform, gone phones included. Further phones are left out, because a
/// forgotten id might be assigned to another phone.
const IDS_MAX: usize = 200_000;

/// The most phones whose codes differ only in case, or whose code one serial used after another.
const NAMESAKES_MAX: u32 = 99;

/// The only map of an account's phones, with what is known of each.
#[derive(Debug)]
pub(super) struct AccountPhones<R: Row> {
    pub(super) name: PlatformName,
    pub(super) listed_at: Option<Timestamp>,
    /// The last list whose phones are shown.
    pub(super) shown_at: Option<Timestamp>,
    /// The knowledge of the account itself.
    pub(super) known: Knowledge,
    pub(super) is_account_stored: bool,
    /// Phones of the last list without an id.
    left_out: usize,
    pub(super) holders: Vec<Holder<R>>,
    by_serial: HashMap<String, usize>,
    by_code: HashMap<String, usize>,
    pub(super) by_id: BTreeMap<DeviceId, usize>,
    /// Codes that no phone has now, and when they were given up. A reading that began earlier does
    /// not know of the change.
    given_up: HashMap<String, Timestamp>,
    /// The holders whose stored entries lack a change of ids or members.
    pub(super) dirty: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Holder<R: Row> {
    pub(super) id: DeviceId,
    pub(super) serial: Option<String>,
    pub(super) code: Option<String>,
    /// When the reading began that gave the code, or showed that it is another phone's.
    pub(super) read_at: Timestamp,
    /// `None` if the phone is hidden or gone.
    pub(super) row: Option<Arc<KeptRow<R>>>,
    /// Lists in a row without the phone.
    pub(super) missed: u8,
    /// False until the id is in the store. Until then the phone is not shown, because the next
    /// process could give its id to another.
    pub(super) is_stored: bool,
    pub(super) known: Knowledge,
    pub(super) last: LastReading,
}

enum Serial {
    None,
    One(String),
    Shared(String),
}

impl<R: Row> Holder<R> {
    pub(super) fn new(id: DeviceId) -> Self {
        let (serial, code, row, missed, is_stored, known, last) = Default::default();
        Self { id, serial, code, read_at: Timestamp(0), row, missed, is_stored, known, last }
    }

    pub(super) fn visible_row(&self) -> Option<&Arc<KeptRow<R>>> {
        self.row.as_ref().filter(|_| self.is_stored)
    }
}

impl<R: Row> AccountPhones<R> {
    pub(super) fn new(name: PlatformName) -> Self {
        let (listed_at, shown_at, known, is_account_stored, left_out, holders) = Default::default();
        let (by_serial, by_code, by_id, given_up, dirty) = Default::default();
        Self {
            name,
            listed_at,
            shown_at,
            known,
            is_account_stored,
            left_out,
            holders,
            by_serial,
            by_code,
            by_id,
            given_up,
            dirty,
        }
    }

    pub(super) fn add(&mut self, holder: Holder<R>) -> Result<usize, &'static str> {
        let (slot, Holder { id, serial, code, row, .. }) = (self.holders.len(), &holder);
        let is_ours = id.as_str().strip_prefix(self.name.as_str()).is_some_and(|rest| rest.starts_with('-'));
        if !is_ours || self.by_id.contains_key(id) {
            return Err("its id belongs to another platform, or occurs twice");
        }
        if serial.as_ref().is_some_and(|serial| self.by_serial.contains_key(serial)) {
            return Err("another phone has its serial");
        }
        if code.as_ref().is_some_and(|code| self.by_code.contains_key(code)) {
            return Err("another phone has its code");
        }
        if row.as_ref().is_some_and(|row| Some(row.code()) != code.as_deref()) {
            return Err("its row has another code");
        }
        self.by_id.insert(id.clone(), slot);
        self.by_serial.extend(serial.clone().map(|serial| (serial, slot)));
        self.by_code.extend(code.clone().map(|code| (code, slot)));
        self.holders.push(holder);
        Ok(slot)
    }

    pub(super) fn get(&self, id: &DeviceId) -> Option<&Holder<R>> {
        self.by_id.get(id).map(|slot| &self.holders[*slot])
    }

    pub(super) fn get_mut(&mut self, id: &DeviceId) -> Option<&mut Holder<R>> {
        self.by_id.get(id).map(|slot| &mut self.holders[*slot])
    }

    /// Without an id, returns what is known of the account.
    pub(super) fn knowledge_mut(&mut self, id: Option<&DeviceId>) -> Option<&mut Knowledge> {
        match id {
            Some(id) => self.get_mut(id).map(|holder| &mut holder.known),
            None => Some(&mut self.known),
        }
    }

    /// Shows the last change. New phones are shown once their ids are stored.
    pub(super) fn show(&mut self, is_stored: bool) {
        self.shown_at = self.listed_at;
        if !is_stored {
            return;
        }
        self.is_account_stored = true;
        for slot in mem::take(&mut self.dirty) {
            self.holders[slot].is_stored = true;
        }
    }

    /// Takes over a list. One that began before the last one does not count phones as missing.
    pub(super) fn list(&mut self, rows: Vec<R>, began: Timestamp) {
        let left_out = self.merge(rows, began);
        if self.listed_at.is_some_and(|listed_at| began < listed_at) {
            return;
        }
        if left_out > self.left_out {
            tracing::warn!(platform = %self.name, left_out, "phones are left out: no id can be made of their platform's codes");
        }
        self.is_account_stored &= self.listed_at.is_some();
        (self.listed_at, self.left_out) = (Some(began), left_out);
        self.given_up.retain(|_, at| *at > began);
        let lacked = |holder: &Holder<R>| holder.row.is_some() && holder.read_at < began;
        for (slot, holder) in self.holders.iter_mut().enumerate().filter(|(_, holder)| lacked(holder)) {
            holder.missed += 1;
            if holder.missed >= MISSED_MAX {
                holder.row = None;
                self.dirty.insert(slot);
            }
        }
    }

    /// Returns the number of rows of which no id can be made.
    pub(super) fn merge(&mut self, rows: Vec<R>, began: Timestamp) -> usize {
        let (rows, contested) = consistent(rows);
        for code in contested {
            if let Some(&slot) = self.by_code.get(&code)
                && self.holders[slot].read_at <= began
            {
                tracing::warn!(id = %self.holders[slot].id, "several phones of a platform have the same code");
                self.hide(slot, began);
            }
        }
        rows.into_iter().filter_map(|(row, serial)| self.place(row, serial, began)).count()
    }

    /// Gives the row to its holder, unless a later reading is known. Returns it if no id can be
    /// made.
    fn place(&mut self, row: R, serial: Serial, began: Timestamp) -> Option<R> {
        let code = row.code();
        let by_code = self.by_code.get(code).copied();
        let with_code = |admits: &dyn Fn(Option<&str>) -> bool| {
            by_code.filter(|slot| admits(self.holders[*slot].serial.as_deref()))
        };
        let known = match &serial {
            Serial::None => by_code,
            Serial::One(serial) => self.by_serial.get(serial).copied().or_else(|| with_code(&|other| other.is_none())),
            Serial::Shared(serial) => with_code(&|other| other.is_none_or(|other| other == serial)),
        };
        let later = |slot: Option<usize>| slot.is_some_and(|slot| self.holders[slot].read_at > began);
        if later(known) || later(by_code) || self.given_up.get(code).is_some_and(|at| *at > began) {
            return None;
        }
        if let Some(other) = by_code.filter(|other| known != Some(*other)) {
            self.hide(other, began);
        }
        let Some(slot) = known.or_else(|| self.admit(&row)) else { return Some(row) };
        let holder = &mut self.holders[slot];
        let serial = match serial {
            Serial::One(serial) if holder.serial.as_ref() != Some(&serial) => Some(serial),
            _ => None,
        };
        if holder.code.as_deref() != Some(row.code()) {
            if let Some(old) = holder.code.replace(row.code().to_owned()) {
                self.by_code.remove(&old);
                self.given_up.insert(old, began);
            }
            self.given_up.remove(row.code());
            self.by_code.insert(row.code().to_owned(), slot);
            self.dirty.insert(slot);
        }
        if holder.row.is_none() || serial.is_some() {
            self.dirty.insert(slot);
        }
        if let Some(serial) = serial {
            self.by_serial.insert(serial.clone(), slot);
            holder.serial = Some(serial);
        }
        // An equal row keeps the old one, with the value that was made of it.
        if holder.row.as_ref().is_none_or(|kept| kept.row != row) {
            holder.row = Some(Arc::new(row.into()));
        }
        (holder.read_at, holder.missed) = (began, 0);
        None
    }

    fn hide(&mut self, slot: usize, began: Timestamp) {
        let holder = &mut self.holders[slot];
        if let Some(code) = holder.code.take() {
            self.by_code.remove(&code);
            self.given_up.insert(code, began);
        }
        holder.row = None;
        holder.read_at = began;
        self.dirty.insert(slot);
    }

    /// Assigns an id to a new phone, still without serial and code; `None` if no id is available.
    fn admit(&mut self, row: &R) -> Option<usize> {
        if self.holders.len() >= IDS_MAX || row.code().is_empty() {
            return None;
        }
        let plain = row.plain_id(&self.name);
        let others = (2..=NAMESAKES_MAX).map(|n| format!("{plain}-{n}"));
        let ids = [plain.clone()].into_iter().chain(others).map_while(|id| DeviceId::new(&id).ok());
        let id = ids.into_iter().find(|id| !self.by_id.contains_key(id))?;
        self.add(Holder::new(id)).ok()
    }
}

/// Returns one row per code, and the codes that several phones have.
fn consistent<R: Row>(rows: Vec<R>) -> (Vec<(R, Serial)>, Vec<String>) {
    let mut of_serial = HashMap::<String, HashSet<String>>::new();
    let mut of_code = BTreeMap::<String, (R, Option<String>)>::new();
    let mut contested = HashSet::new();
    for row in rows {
        let (code, serial) = (row.code().to_owned(), row.serial());
        if let Some(serial) = &serial {
            of_serial.entry(serial.clone()).or_default().insert(code.clone());
        }
        // A shifted page shows a phone twice. The second row is the later one.
        if let Some((_, other)) = of_code.insert(code.clone(), (row, serial.clone()))
            && other != serial
        {
            contested.insert(code);
        }
    }
    of_code.retain(|code, _| !contested.contains(code));
    let identified = |(row, serial): (R, Option<String>)| match serial {
        None => (row, Serial::None),
        Some(serial) if of_serial[&serial].len() == 1 => (row, Serial::One(serial)),
        Some(serial) => (row, Serial::Shared(serial)),
    };
    (of_code.into_values().map(identified).collect(), contested.into_iter().collect())
}
