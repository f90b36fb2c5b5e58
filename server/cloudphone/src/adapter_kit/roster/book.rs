//! Which id leads to which phone. Pure: no clock, no file, no platform.
//!
//! A phone is known by its seat, or by its code where it has no seat. An id is made of the code that the phone had when it was first
//! seen, and is never given again:
//!
//! * A seat that shows another code keeps its id, so the id no longer looks like the code.
//! * A code that turns up on another seat is another phone: it gets an id of its own, with `-2` or more at its end where the plain one
//!   was given before. The phone that had the code is hidden until its seat is seen with a code; one without a seat, for good.
//! * A record of a changed code moves the id of a phone without a seat, where the old code is not listed and no one else is moved to it.
//! * A code that several seats show in one list says nothing of any: those phones are hidden until a list is consistent. A seat that shows
//!   several codes is no seat for as long.
//! * A phone that is gone keeps its id, and has it again when it comes back.

use super::row::{KeptRow, Phone, Recoded, Row};
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use toolwarrant::Timestamp;

/// Lists in a row that lack a phone before it is gone. Pages shift while they are read.
const MISSED_MAX: u8 = 2;

/// Most ids of one platform, of phones that are gone too. More phones are left out, as a forgotten id might be given to another.
const IDS_MAX: usize = 200_000;

/// Most phones whose codes differ in case only, or were used by one seat after another.
const NAMESAKES_MAX: u32 = 99;

/// All phones that were ever seen.
#[derive(Debug)]
pub(super) struct Book<R: Row> {
    pub(super) name: PlatformName,
    /// When the last list began that was taken over.
    pub(super) listed_at: Option<Timestamp>,
    /// Phones of the last list without an id.
    pub(super) left_out: usize,
    pub(super) holders: Vec<Holder<R>>,
    by_seat: HashMap<String, usize>,
    by_code: HashMap<String, usize>,
    ids: HashSet<DeviceId>,
    /// When codes that no phone has were seen to be given up; a reading that began before knows nothing of it.
    given_up: HashMap<String, Timestamp>,
    /// Whether the file lacks something that decides about ids or members.
    pub(super) dirty: bool,
}

/// The holder of an id.
#[derive(Debug)]
pub(super) struct Holder<R: Row> {
    pub(super) id: DeviceId,
    pub(super) seat: Option<String>,
    /// `None`: another phone has it.
    pub(super) code: Option<String>,
    /// When the reading began that the code, or that it is another's, comes from.
    pub(super) read_at: Timestamp,
    /// `None`: it is hidden or gone.
    pub(super) row: Option<Arc<KeptRow<R>>>,
    /// Lists in a row that did not have it.
    pub(super) missed: u8,
}

/// What a row says of its seat.
enum Seat {
    None,
    One(String),
    /// Others of the same list say so too.
    Shared(String),
}

/// What became of rows.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// The slots that may be shown otherwise.
    pub(super) touched: Vec<usize>,
    /// The number of phones without an id.
    left_out: usize,
}

impl<R: Row> Book<R> {
    /// Makes a book of no phone.
    pub(super) fn empty(name: PlatformName) -> Self {
        let (by_seat, by_code, ids, given_up) = Default::default();
        Self { name, listed_at: None, left_out: 0, holders: Vec::new(), by_seat, by_code, ids, given_up, dirty: false }
    }

    /// Makes a book of what a file has.
    ///
    /// # Errors
    /// What contradicts itself.
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
                return Err("an id is another platform's, or stands there twice");
            }
            if seat.as_ref().is_some_and(|seat| book.by_seat.insert(seat.clone(), slot).is_some()) {
                return Err("a seat stands there twice");
            }
            if code.as_ref().is_some_and(|code| book.by_code.insert(code.clone(), slot).is_some()) {
                return Err("a code stands there twice");
            }
            if row.as_ref().is_some_and(|row| Some(row.code()) != code.as_deref()) {
                return Err("a row has another code than its phone");
            }
        }
        book.holders = holders;
        Ok(book)
    }

    /// All phones that are shown.
    pub(super) fn shown(&self) -> BTreeMap<DeviceId, Phone<R>> {
        let all = (0..self.holders.len()).map(|slot| self.shown_at(slot));
        all.filter_map(|(id, phone)| Some((id, phone?))).collect()
    }

    /// The id at `slot`, and its phone if it is shown.
    pub(super) fn shown_at(&self, slot: usize) -> (DeviceId, Option<Phone<R>>) {
        let Holder { id, row, read_at, .. } = &self.holders[slot];
        (id.clone(), row.as_ref().map(|row| (Arc::clone(row), *read_at)))
    }

    /// Whether a row has no seat and a code that no phone has at present.
    pub(super) fn is_stranger(&self, row: &R) -> bool {
        row.seat().is_none() && self.by_code.get(row.code()).is_none_or(|slot| self.holders[*slot].row.is_none())
    }

    /// See [`Roster::is_puzzled_by`](super::Roster::is_puzzled_by).
    pub(super) fn is_puzzled_by(&self, rows: &[R]) -> bool {
        let listed: HashSet<&str> = rows.iter().map(Row::code).collect();
        let lacks =
            |holder: &Holder<R>| holder.row.is_some() && !holder.code.as_deref().is_some_and(|c| listed.contains(c));
        rows.iter().any(|row| self.is_stranger(row)) && self.holders.iter().any(lacks)
    }

    /// Takes over a list of the whole platform whose reading `began` then. A list that began before the last one misses no phone.
    pub(super) fn list(&mut self, rows: Vec<R>, recoded: &[Recoded], began: Timestamp) {
        let Merged { touched: _, left_out } = self.merge(rows, recoded, began);
        if self.listed_at.is_some_and(|listed_at| began < listed_at) {
            return;
        }
        if left_out > self.left_out {
            tracing::warn!(platform = %self.name, left_out, "phones are left out: no id can be made of what their platform calls them");
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

    /// Takes over rows whose reading `began` then.
    pub(super) fn merge(&mut self, rows: Vec<R>, recoded: &[Recoded], began: Timestamp) -> Merged {
        let (rows, contested) = consistent(rows);
        let moved = self.moved(&rows, recoded);
        let mut merged = Merged::default();
        for code in contested {
            if let Some(&slot) = self.by_code.get(&code)
                && self.holders[slot].read_at <= began
            {
                tracing::warn!(id = %self.holders[slot].id, "several phones of a platform have one code");
                self.hide(slot, began);
                merged.touched.push(slot);
            }
        }
        for (row, seat) in rows {
            self.place(row, seat, &moved, began, &mut merged);
        }
        // A list that began before may still have the codes between.
        for Recoded { from, to: _ } in recoded.iter().filter(|record| !self.by_code.contains_key(&record.from)) {
            self.given_up.insert(from.clone(), began);
        }
        merged
    }

    /// For each code that a phone was moved to, by a record: the slot of that phone.
    fn moved(&self, rows: &[(R, Seat)], recoded: &[Recoded]) -> HashMap<String, usize> {
        let listed: HashSet<&str> = rows.iter().map(|(row, _)| row.code()).collect();
        let mut before = HashMap::<&str, Option<&str>>::new();
        for Recoded { from, to } in recoded {
            let told = before.entry(to).or_insert(Some(from));
            *told = told.filter(|other| other == from);
        }
        let mut moved = HashMap::<usize, Vec<&str>>::new();
        for (row, _) in rows.iter().filter(|(row, seat)| matches!(seat, Seat::None) && self.is_stranger(row)) {
            let mut code = row.code();
            // As many steps as there are records: they may go in a circle.
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

    /// Finds or makes the holder of a row, and gives it the row, unless something later is known.
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
        // A row that tells the same stays, with what was made of it.
        if holder.row.as_ref().is_none_or(|kept| kept.row != row) {
            holder.row = Some(Arc::new(row.into()));
        }
        (holder.read_at, holder.missed) = (began, 0);
        merged.touched.push(slot);
    }

    /// Takes its code and its row from a holder: by the reading that `began` then, the code is another's.
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

    /// Gives a phone that was never seen an id, without a seat and a code yet. `None` if there is none to give.
    fn admit(&mut self, row: &R) -> Option<usize> {
        if self.holders.len() >= IDS_MAX || row.code().is_empty() {
            return None;
        }
        let plain = format!("{}-{}", self.name, row.code().to_ascii_lowercase());
        let others = (2..=NAMESAKES_MAX).map(|n| format!("{plain}-{n}"));
        let ids = [plain.clone()].into_iter().chain(others).map_while(|id| DeviceId::new(&id).ok());
        let id = ids.into_iter().find(|id| !self.ids.contains(id))?;
        self.ids.insert(id.clone());
        self.holders.push(Holder { id, seat: None, code: None, read_at: Timestamp(0), row: None, missed: 0 });
        Some(self.holders.len() - 1)
    }
}

/// The rows of a list, one for each code, with their seats; and the codes that several phones have in it.
fn consistent<R: Row>(rows: Vec<R>) -> (Vec<(R, Seat)>, Vec<String>) {
    let mut of_seat = HashMap::<String, HashSet<String>>::new();
    let mut of_code = BTreeMap::<String, (R, Option<String>)>::new();
    let mut contested = HashSet::new();
    for row in rows {
        let (code, seat) = (row.code().to_owned(), row.seat());
        if let Some(seat) = &seat {
            of_seat.entry(seat.clone()).or_default().insert(code.clone());
        }
        // A page that has shifted shows a phone twice; the second time it was read later.
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
