//! What was last read of each phone, for as long as it may be shown.
//!
//! Owns the age of a view, the bound on their number, and single flight: of all who want the same phone at once, one reads
//! and the others wait for that reading. Knows no upstream and no grants. Start at [`Views::get`].

use super::contract::{DeviceDetail, DeviceId};
use super::upstream::Snapshot;
use std::collections::HashMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use toolwarrant::{Clock, Prepared, Timestamp, Unresolved};

/// Oldest view that anybody is shown, counted from the moment at which its reading began.
pub const MAX_AGE: Duration = Duration::from_secs(2);

/// Most phones of which something is kept; a few hundred bytes each.
pub const CAPACITY: usize = 16_384;

/// What a reading found.
pub type View = Result<Arc<Seen>, Unresolved>;

/// A phone as it was read. Reads as the snapshot itself.
#[derive(Debug)]
pub struct Seen {
    /// What was read.
    pub snapshot: Arc<Snapshot>,
    /// What get_device says of it.
    pub detail: Prepared<DeviceDetail>,
}

impl From<Arc<Snapshot>> for Seen {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, detail: Prepared::default() }
    }
}

impl Deref for Seen {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// The latest view of each phone, found or missing. What could not be read is not kept.
#[derive(Debug)]
pub struct Views {
    clock: Clock,
    slots: Mutex<HashMap<DeviceId, Slot>>,
}

/// One reading, under way or done. Empty while it is under way, or when all who wanted it have gone.
type Slot = Arc<OnceCell<Reading>>;

#[derive(Debug)]
struct Reading {
    began: Timestamp,
    view: View,
}

impl Views {
    /// No views yet.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, slots: Mutex::default() }
    }

    /// The view of `id`: the one that is kept, the one that is being read, or the one that `read` finds.
    ///
    /// A caller that goes away while it reads hands the reading on to one that waits. A failed reading is told to all who
    /// waited for it; whoever comes later reads again.
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

    /// Keeps what was seen by a reading that `began` then, unless a later one is kept or under way.
    pub fn feed(&self, began: Timestamp, seen: &[Arc<Snapshot>]) {
        let mut slots = self.lock();
        for snapshot in seen {
            let kept = slots.get(&snapshot.id);
            if kept.is_none_or(|slot| slot.get().is_some_and(|reading| reading.began <= began)) {
                let reading = Reading { began, view: Ok(Arc::new(Arc::clone(snapshot).into())) };
                self.insert(&mut slots, &snapshot.id, Arc::new(OnceCell::from(reading)));
            }
        }
    }

    /// Keeps nothing of a phone that may have changed; who asks next reads. Until then a page that was begun before has no place.
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

    /// Makes room first. Either half of the places come free or all of them, so that a full sweep is rare under any load;
    /// what is lost is only read again.
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
