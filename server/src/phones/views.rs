//! A cache of the latest reading of each phone.
//!
//! It bounds the age and the number of views. If several callers want the same phone at once, one reads it and the others wait for
//! that reading. Knows no upstream and no grants. Start at [`Views::get`].

use super::contract::{DeviceDetail, DeviceId};
use super::upstream::Snapshot;
use std::collections::HashMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use toolwarrant::{Clock, Prepared, RenderBudget, Timestamp, Unresolved};

/// Greatest age of a view that is shown, counted from the beginning of its reading.
pub const MAX_AGE: Duration = Duration::from_secs(2);

/// Most phones in the cache; each takes a few hundred bytes.
pub const CAPACITY: usize = 16_384;

/// The outcome of a reading.
pub type View = Result<Arc<Seen>, Unresolved>;

/// A phone as it was read. Dereferences to the snapshot.
#[derive(Debug)]
pub struct Seen {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The result of get_device for it, made once.
    pub detail: Prepared<DeviceDetail>,
}

impl From<Arc<Snapshot>> for Seen {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, detail: Prepared::within(&Arc::new(RenderBudget::new(usize::MAX))) }
    }
}

impl Deref for Seen {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// The latest view of each phone, found or missing. Failed readings are not kept.
#[derive(Debug)]
pub struct Views {
    clock: Clock,
    slots: Mutex<HashMap<DeviceId, Slot>>,
}

/// One reading. Empty while it is under way, or if all callers that wanted it have gone.
type Slot = Arc<OnceCell<Reading>>;

#[derive(Debug)]
struct Reading {
    began: Timestamp,
    view: View,
}

impl Views {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, slots: Mutex::default() }
    }

    /// Returns the view of a phone: from the cache, from a reading under way, or from `read`.
    ///
    /// If the caller that reads goes away, one that waits reads instead. All that waited for a failed reading get its error; later
    /// callers read again.
    pub async fn get<F: Future<Output = View> + Send>(&self, id: &DeviceId, read: impl FnOnce() -> F + Send) -> View {
        let slot = self.slot(id);
        let reading = slot
            .get_or_init(|| async {
                let began = self.clock.now();
                Reading { began, view: read().await }
            })
            .await;
        reading.view.clone()
    }

    /// Stores snapshots from a reading that `began` then, unless a later reading is stored or one is under way.
    pub fn feed(&self, began: Timestamp, seen: &[Arc<Snapshot>]) {
        let mut slots = self.lock();
        for snapshot in seen {
            let began = snapshot.as_of.unwrap_or(began).min(began);
            let kept = slots.get(&snapshot.id);
            if kept.is_none_or(|slot| slot.get().is_some_and(|reading| reading.began <= began)) {
                let reading = Reading { began, view: Ok(Arc::new(Arc::clone(snapshot).into())) };
                self.insert(&mut slots, &snapshot.id, Arc::new(OnceCell::from(reading)));
            }
        }
    }

    /// Drops the view of a phone that may have changed; the next caller reads it again. Until then no page can store an older view.
    pub fn forget(&self, id: &DeviceId) {
        self.insert(&mut self.lock(), id, Slot::default());
    }

    fn slot(&self, id: &DeviceId) -> Slot {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(id).filter(|slot| self.is_current(slot)) {
            return Arc::clone(slot);
        }
        let slot = Slot::default();
        self.insert(&mut slots, id, Arc::clone(&slot));
        slot
    }

    /// Stores a slot. A full cache first drops views that are too old, and if more than half remain, all of them: sweeps are then rare
    /// under any load. What is dropped is only read again.
    fn insert(&self, slots: &mut HashMap<DeviceId, Slot>, id: &DeviceId, slot: Slot) {
        if slots.len() >= CAPACITY {
            slots.retain(|_, slot| self.is_current(slot));
            if slots.len() > CAPACITY / 2 {
                slots.clear();
            }
        }
        slots.insert(id.clone(), slot);
    }

    fn is_current(&self, slot: &Slot) -> bool {
        slot.get().is_none_or(|reading| {
            !matches!(reading.view, Err(Unresolved::Unavailable)) && self.clock.now() <= reading.began.plus(MAX_AGE)
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeviceId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phones::upstream::Upstream;
    use crate::phones::upstream::sim::Sim;
    use std::future::ready;

    #[tokio::test]
    async fn views_stay_within_their_capacity_and_what_is_stale_goes_first() {
        let clock = Clock::manual(Timestamp(0));
        let views = Views::new(clock.clone());
        let id = |index: usize| DeviceId::new(&format!("phone-{index}")).ok().unwrap();
        let missing = || ready(Err(Unresolved::NotFound));
        for index in 0..CAPACITY {
            if index == CAPACITY / 2 + 1 {
                clock.advance(MAX_AGE + Duration::from_millis(1));
            }
            let _ = views.get(&id(index), missing).await;
        }
        let _ = views.get(&id(CAPACITY), missing).await;
        assert_eq!(views.lock().len(), CAPACITY / 2);
        for index in 0..CAPACITY {
            let _ = views.get(&id(index), missing).await;
            assert!(views.lock().len() <= CAPACITY);
        }
    }

    #[tokio::test]
    async fn a_page_does_not_replace_a_view_from_a_later_reading() {
        let clock = Clock::manual(Timestamp(1_000));
        let views = Views::new(clock.clone());
        let sim = Sim::new(1, 1, clock.clone(), &[0; 32]);
        let [page, read] = [sim.page(None, 1).await.unwrap(), sim.page(None, 1).await.unwrap()];
        let unread = || async { unreachable!("a view is kept") };

        views.feed(Timestamp(1_000), &read);
        views.feed(Timestamp(999), &page);
        assert!(Arc::ptr_eq(&views.get(&read[0].id, unread).await.unwrap().snapshot, &read[0]));
        views.feed(Timestamp(1_001), &page);
        assert!(Arc::ptr_eq(&views.get(&read[0].id, unread).await.unwrap().snapshot, &page[0]));

        views.forget(&read[0].id);
        views.feed(Timestamp(1_002), &page);
        let anew = || async { Ok(Arc::new(Arc::clone(&read[0]).into())) };
        let seen = views.get(&read[0].id, anew).await.unwrap();
        assert!(Arc::ptr_eq(&seen.snapshot, &read[0]), "a page may have been begun before what it was forgotten for");
    }
}
