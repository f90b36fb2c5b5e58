//! The assignment of ids to phones. Pure: it does not use a clock, a file or a platform.
//!
//! A phone is identified by its seat, or by its code if it has no seat. An id is made of the code
//! that the phone had when it was first seen, and is never assigned again:
//!
//! * A seat that shows another code keeps its id, so the id no longer looks like the code.
//! * A code that appears on another seat is another phone. It gets its own id, which ends with `-2`
//!   or more if the plain id was assigned before. The phone that had the code is hidden until its
//!   seat is seen with a code. A phone without a seat stays hidden for good.
//! * A record of a changed code moves the id of a phone without a seat, if the old code is not
//!   listed and no other record moves a phone to it.
//! * A code that several seats show in one list does not identify any of them: those phones are
//!   hidden until a list is consistent. A seat that shows several codes does not count as a seat
//!   meanwhile.
//! * A phone that is gone keeps its id, and has it again when it comes back.

use super::row::{KeptRow, ListedPhone, Recoded, Row};
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use toolwarrant::Timestamp;

/// The number of lists in a row that must lack a phone before it is gone. Pages shift while they
/// are read.
const MISSED_MAX: u8 = 2;

/// The most ids of one platform, including those of phones that are gone. Further phones are left
/// out, because a forgotten id might be assigned to another phone.
const IDS_MAX: usize = 200_000;

/// The most phones whose codes differ only in case, or whose code one seat used after another.
const NAMESAKES_MAX: u32 = 99;

/// All phones that were ever seen.
#[derive(Debug)]
pub(super) struct Book<R: Row> {
    pub(super) name: PlatformName,
    /// The time when the last accepted list began.
    pub(super) listed_at: Option<Timestamp>,
    /// The number of phones of the last list that have no id.
    pub(super) left_out: usize,
    pub(super) holders: Vec<Holder<R>>,
    by_seat: HashMap<String, usize>,
    by_code: HashMap<String, usize>,
    ids: HashSet<DeviceId>,
    /// Codes that no phone has now, with the time at which they were seen to be given up. A reading
    /// that began before that time does not know of the change.
    given_up: HashMap<String, Timestamp>,
    /// True if the file lacks a change that affects ids or members.
    pub(super) dirty: bool,
}

/// The holder of an id.
#[derive(Debug)]
pub(super) struct Holder<R: Row> {
    pub(super) id: DeviceId,
    pub(super) seat: Option<String>,
    /// The code; `None` if another phone has it.
    pub(super) code: Option<String>,
    /// The time when the reading began that gave the code, or that showed that the code is another
    /// phone's.
    pub(super) read_at: Timestamp,
    /// The row; `None` if the phone is hidden or gone.
    pub(super) row: Option<Arc<KeptRow<R>>>,
    /// The number of lists in a row that lacked the phone.
    pub(super) missed: u8,
}

/// The seat in a row.
enum Seat {
    None,
    One(String),
    /// Other rows of the same list have it, too.
    Shared(String),
}

/// The result of taking over rows.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The slots whose phones may have changed.
    pub(super) touched: Vec<usize>,
    /// The number of phones without an id.
    left_out: usize,
}

impl<R: Row> Book<R> {
    /// Creates an empty book.
    pub(super) fn empty(name: PlatformName) -> Self {
        let (by_seat, by_code, ids, given_up) = Default::default();
        Self { name, listed_at: None, left_out: 0, holders: Vec::new(), by_seat, by_code, ids, given_up, dirty: false }
    }

    /// Creates a book from its stored content.
    ///
    /// # Errors
    /// The contradiction in the content.
    pub(super) fn new(
        name: PlatformName,
        listed_at: Option<Timestamp>,
        holders: Vec<Holder<R>>,
    ) -> Result<Self, &'static str> {
        let mut book = Self { listed_at, ..Self::empty(name) };
        for (slot, holder) in holders.iter().enumerate() {
            let Holder { id, seat, code, read_at: _, row, missed: _ } = holder;
            let ours = id.as_str().strip_prefix(book.name.as_str()).is_some_and(|rest| rest.starts_with('-'));
            if !ours || !book.ids.insert(id.clone()) {
                return Err("an id belongs to another platform, or occurs twice");
            }
            if seat.as_ref().is_some_and(|seat| book.by_seat.insert(seat.clone(), slot).is_some()) {
                return Err("a seat occurs twice");
            }
            if code.as_ref().is_some_and(|code| book.by_code.insert(code.clone(), slot).is_some()) {
                return Err("a code occurs twice");
            }
            if row.as_ref().is_some_and(|row| Some(row.code()) != code.as_deref()) {
                return Err("a row does not have the code of its phone");
            }
        }
        book.holders = holders;
        Ok(book)
    }

    /// Returns all phones that are shown.
    pub(super) fn visible_phones(&self) -> BTreeMap<DeviceId, ListedPhone<R>> {
        let all = (0..self.holders.len()).map(|slot| self.visible_phone_at(slot));
        all.filter_map(|(id, phone)| Some((id, phone?))).collect()
    }

    /// Returns the id at `slot`, and its phone if it is shown.
    pub(super) fn visible_phone_at(&self, slot: usize) -> (DeviceId, Option<ListedPhone<R>>) {
        let Holder { id, row, read_at, .. } = &self.holders[slot];
        (id.clone(), row.as_ref().map(|row| (Arc::clone(row), *read_at)))
    }

    /// Returns true if a row has no seat, and its code belongs to no phone now.
    pub(super) fn is_stranger(&self, row: &R) -> bool {
        row.seat().is_none() && self.by_code.get(row.code()).is_none_or(|slot| self.holders[*slot].row.is_none())
    }

    /// See [`DeviceRegistry::is_puzzled_by`](super::Roster::is_puzzled_by).
    pub(super) fn is_puzzled_by(&self, rows: &[R]) -> bool {
        let listed: HashSet<&str> = rows.iter().map(Row::code).collect();
        let lacks =
            |holder: &Holder<R>| holder.row.is_some() && !holder.code.as_deref().is_some_and(|c| listed.contains(c));
        rows.iter().any(|row| self.is_stranger(row)) && self.holders.iter().any(lacks)
    }

    /// Takes over a list of the whole platform whose reading began at `began`. A list that began
    /// before the last one does not count phones as missing.
    pub(super) fn list(&mut self, rows: Vec<R>, recoded: &[Recoded], began: Timestamp) {
        let Merged { touched: _, left_out } = self.merge(rows, recoded, began);
        if self.listed_at.is_some_and(|listed_at| began < listed_at) {
            return;
        }
        if left_out > self.left_out {
            tracing::warn!(platform = %self.name, left_out, "phones are left out: no id can be made of their platform's codes");
        }
        self.dirty |= self.listed_at.is_none();
        (self.listed_at, self.left_out) = (Some(began), left_out);
        self.given_up.retain(|_, at| *at > began);
        for holder in self.holders.iter_mut().filter(|holder| holder.row.is_some() && holder.read_at < began) {
            holder.missed += 1;
            if holder.missed >= MISSED_MAX {
                holder.row = None;
                self.dirty = true;
            }
        }
    }

    /// Takes over rows whose reading began at `began`.
    pub(super) fn merge(&mut self, rows: Vec<R>, recoded: &[Recoded], began: Timestamp) -> Merged {
        let (rows, contested) = consistent(rows);
        let moved = self.slots_of_moved(&rows, recoded);
        let mut merged = Merged::default();
        for code in contested {
            if let Some(&slot) = self.by_code.get(&code)
                && self.holders[slot].read_at <= began
            {
                tracing::warn!(id = %self.holders[slot].id, "several phones of a platform have the same code");
                self.hide(slot, began);
                merged.touched.push(slot);
            }
        }
        for (row, seat) in rows {
            self.place(row, seat, &moved, began, &mut merged);
        }
        // A list that began earlier may still contain the intermediate codes.
        for Recoded { from, to: _ } in recoded.iter().filter(|record| !self.by_code.contains_key(&record.from)) {
            self.given_up.insert(from.clone(), began);
        }
        merged
    }

    /// Returns, per code to which a record moved a phone, the slot of that phone.
    fn slots_of_moved(&self, rows: &[(R, Seat)], recoded: &[Recoded]) -> HashMap<String, usize> {
        let listed: HashSet<&str> = rows.iter().map(|(row, _)| row.code()).collect();
        let mut before = HashMap::<&str, Option<&str>>::new();
        for Recoded { from, to } in recoded {
            let told = before.entry(to).or_insert(Some(from));
            *told = told.filter(|other| other == from);
        }
        let mut moved = HashMap::<usize, Vec<&str>>::new();
        for (row, _) in rows.iter().filter(|(row, seat)| matches!(seat, Seat::None) && self.is_stranger(row)) {
            let mut code = row.code();
            // At most as many steps as there are records, because records may form a cycle.
            for _ in recoded {
                let Some(Some(from)) = before.get(code).copied() else { break };
                if listed.contains(from) {
                    break;
                }
                if let Some(slot) = self.by_code.get(from) {
                    moved.entry(*slot).or_default().push(row.code());
                    break;
                }
                code = from;
            }
        }
        let only = |(slot, codes): (usize, Vec<&str>)| match codes[..] {
            [code] => Some((code.to_owned(), slot)),
            _ => None,
        };
        moved.into_iter().filter_map(only).collect()
    }

    /// Finds or creates the holder of a row and gives it the row, unless a later reading is known.
    fn place(&mut self, row: R, seat: Seat, moved: &HashMap<String, usize>, began: Timestamp, merged: &mut Merged) {
        let code = row.code();
        let by_code = self.by_code.get(code).copied();
        let with_code =
            |admits: &dyn Fn(Option<&str>) -> bool| by_code.filter(|slot| admits(self.holders[*slot].seat.as_deref()));
        let known = match &seat {
            Seat::None => moved.get(code).copied().or(by_code),
            Seat::One(seat) => self.by_seat.get(seat).copied().or_else(|| with_code(&|other| other.is_none())),
            Seat::Shared(seat) => with_code(&|other| other.is_none_or(|other| other == seat)),
        };
        let later = |slot: Option<usize>| slot.is_some_and(|slot| self.holders[slot].read_at > began);
        if later(known) || later(by_code) || self.given_up.get(code).is_some_and(|at| *at > began) {
            return;
        }
        if let Some(other) = by_code.filter(|other| known != Some(*other)) {
            self.hide(other, began);
            merged.touched.push(other);
        }
        let Some(slot) = known.or_else(|| self.admit(&row)) else {
            merged.left_out += 1;
            return;
        };
        let holder = &mut self.holders[slot];
        let seat = match seat {
            Seat::One(seat) if holder.seat.as_ref() != Some(&seat) => Some(seat),
            _ => None,
        };
        if holder.code.as_deref() != Some(row.code()) {
            if let Some(old) = holder.code.replace(row.code().to_owned()) {
                self.by_code.remove(&old);
                self.given_up.insert(old, began);
            }
            self.given_up.remove(row.code());
            self.by_code.insert(row.code().to_owned(), slot);
            self.dirty = true;
        }
        self.dirty |= holder.row.is_none() || seat.is_some();
        if let Some(seat) = seat {
            self.by_seat.insert(seat.clone(), slot);
            holder.seat = Some(seat);
        }
        // An equal row keeps the old one, together with the value that was made of it.
        if holder.row.as_ref().is_none_or(|kept| kept.row != row) {
            holder.row = Some(Arc::new(row.into()));
        }
        (holder.read_at, holder.missed) = (began, 0);
        merged.touched.push(slot);
    }

    /// Removes code and row of a holder. The reading that began at `began` showed that the code is
    /// another phone's.
    fn hide(&mut self, slot: usize, began: Timestamp) {
        let holder = &mut self.holders[slot];
        if let Some(code) = holder.code.take() {
            self.by_code.remove(&code);
            self.given_up.insert(code, began);
        }
        holder.row = None;
        holder.read_at = began;
        self.dirty = true;
    }

    /// Assigns an id to a phone that was never seen, still without a seat and a code. Returns
    /// `None` if no id is available.
    fn admit(&mut self, row: &R) -> Option<usize> {
        if self.holders.len() >= IDS_MAX || row.code().is_empty() {
            return None;
        }
        let plain = row.plain_id(&self.name);
        let others = (2..=NAMESAKES_MAX).map(|n| format!("{plain}-{n}"));
        let ids = [plain.clone()].into_iter().chain(others).map_while(|id| DeviceId::new(&id).ok());
        let id = ids.into_iter().find(|id| !self.ids.contains(id))?;
        self.ids.insert(id.clone());
        self.holders.push(Holder { id, seat: None, code: None, read_at: Timestamp(0), row: None, missed: 0 });
        Some(self.holders.len() - 1)
    }
}

/// Returns the rows of a list, one per code, with their seats, and the codes that several phones
/// have in it.
fn consistent<R: Row>(rows: Vec<R>) -> (Vec<(R, Seat)>, Vec<String>) {
    let mut of_seat = HashMap::<String, HashSet<String>>::new();
    let mut of_code = BTreeMap::<String, (R, Option<String>)>::new();
    let mut contested = HashSet::new();
    for row in rows {
        let (code, seat) = (row.code().to_owned(), row.seat());
        if let Some(seat) = &seat {
            of_seat.entry(seat.clone()).or_default().insert(code.clone());
        }
        // If a page has shifted, a list shows a phone twice. The second row was read later.
        if let Some((_, other)) = of_code.insert(code.clone(), (row, seat.clone()))
            && other != seat
        {
            contested.insert(code);
        }
    }
    of_code.retain(|code, _| !contested.contains(code));
    let seated = |(row, seat): (R, Option<String>)| match seat {
        None => (row, Seat::None),
        Some(seat) if of_seat[&seat].len() == 1 => (row, Seat::One(seat)),
        Some(seat) => (row, Seat::Shared(seat)),
    };
    (of_code.into_values().map(seated).collect(), contested.into_iter().collect())
}
