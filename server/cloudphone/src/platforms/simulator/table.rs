//! The last shown view of each phone, with the inputs that it was made from. It is shown again
//! while they stay the same.
//!
//! A piece of the table takes storage when one of its phones is first shown. Pages share the lock
//! of a piece while they copy. A caller that finds a changed phone holds it exclusively while it
//! makes the new view: at most once per change. Start at [`Table::show`].

use super::cast::Part;
use crate::phones::contract::DeviceState;
use crate::phones::port::{DeviceSnapshot, See};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, RwLockWriteGuard};
use toolwarrant::base::ignore_poison;

const PIECE: u32 = 128;

#[derive(Debug)]
pub(super) struct Table(Box<[Piece]>);

/// On its own cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Piece {
    written: AtomicBool,
    shown: RwLock<Box<[Option<LastView>]>>,
}

#[derive(Debug)]
pub(super) struct LastView {
    pub(super) look: Look,
    pub(super) seen: Arc<DeviceSnapshot>,
}

/// The inputs that decide how a phone is shown, besides seed and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) part: Part,
    pub(super) power: DeviceState,
    pub(super) readable: bool,
    /// The proxy depends on it, and on the switch.
    pub(super) deeds: u64,
    pub(super) proxy_off: bool,
}

impl Table {
    pub(super) fn of(devices: u32) -> Self {
        Self((0..devices.div_ceil(PIECE)).map(|_| Piece::default()).collect())
    }

    pub(super) fn write(&self, index: u32) {
        self.at(index).written.store(true, Ordering::Release);
    }

    /// Returns true if a phone of the same piece was written to.
    pub(super) fn is_written(&self, index: u32) -> bool {
        self.at(index).written.load(Ordering::Acquire)
    }

    /// Shows phones of one piece. `is_so` returns true if a phone still looks as shown.
    pub(super) fn show(
        &self,
        indices: impl Iterator<Item = u32> + Clone,
        is_so: impl Fn(u32, &Look) -> bool,
        make: impl Fn(u32) -> LastView,
        see: See<'_>,
    ) {
        let Some(first) = indices.clone().next() else { return };
        let piece = self.at(first);
        let shown = ignore_poison(piece.shown.read());
        let mut seen = Vec::with_capacity(indices.size_hint().0);
        let mut was_so = true;
        for index in indices.clone() {
            match shown.get(place(index)) {
                Some(Some(shown)) if is_so(index, &shown.look) => seen.push(&shown.seen),
                _ => {
                    was_so = false;
                    break;
                }
            }
        }
        if was_so {
            return see(&seen);
        }
        drop(seen);
        drop(shown);
        let mut shown = ignore_poison(piece.shown.write());
        if shown.is_empty() {
            *shown = (0..PIECE).map(|_| None).collect();
        }
        for index in indices.clone() {
            let shown = &mut shown[place(index)];
            if !shown.as_ref().is_some_and(|shown| is_so(index, &shown.look)) {
                let made = make(index);
                match shown {
                    // The change is not visible to clients.
                    Some(LastView { look, seen }) if *seen == made.seen => *look = made.look,
                    _ => *shown = Some(made),
                }
            }
        }
        let shown = RwLockWriteGuard::downgrade(shown);
        see(&indices.filter_map(|index| shown[place(index)].as_ref()).map(|shown| &shown.seen).collect::<Vec<_>>());
    }

    fn at(&self, index: u32) -> &Piece {
        &self.0[((index - 1) / PIECE) as usize]
    }
}

pub(super) fn next_piece(index: u32) -> u32 {
    (index - 1) / PIECE * PIECE + PIECE + 1
}

fn place(index: u32) -> usize {
    ((index - 1) % PIECE) as usize
}
