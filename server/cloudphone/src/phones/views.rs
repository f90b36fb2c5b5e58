//! A cache of the latest reading of each phone that was read individually, of bounded age and size.
//! If several callers want the same phone, one reads it and the others wait. Start at
//! [`Views::get`].

use super::contract::DeviceId;
use super::port::DeviceSnapshot;
use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::OnceCell;
use toolwarrant::base::ignore_poison;
use toolwarrant::handler::Unresolved;
use toolwarrant::{Clock, Timestamp};

/// From the start of the reading.
pub const MAX_AGE: Duration = Duration::from_secs(2);

/// Each phone takes a few hundred bytes.
pub const CAPACITY: usize = 16_384;

/// Callers in different parts do not wait for each other.
const PARTS: usize = 32;

pub type View = Result<Arc<DeviceSnapshot>, Unresolved>;

/// Failed readings are not stored.
#[derive(Debug)]
pub struct Views {
    clock: Clock,
    hasher: RandomState,
    parts: [Mutex<Slots>; PARTS],
}

type Slots = HashMap<DeviceId, Slot>;

/// Empty while the reading runs, after all its callers have gone, and after it was forgotten.
type Slot = Arc<OnceCell<Reading>>;

#[derive(Debug)]
struct Reading {
    began: Timestamp,
    view: View,
}

impl Views {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, hasher: RandomState::new(), parts: Default::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the view of a phone: from the cache, from a running reading, or from `read`.
    /// `listed` is the phone as lists show it, and when that reading began. It is used if it is
    /// recent, and no view is older than it.
    ///
    /// If the caller that reads goes away, a waiting one reads. Callers that waited for a failed
    /// reading get its error; later ones read again.
    pub async fn get<F: Future<Output = View> + Send>(
        &self,
        id: &DeviceId,
        listed: Option<(Arc<DeviceSnapshot>, Timestamp)>,
        read: impl FnOnce() -> F + Send,
    ) -> View {
        let slot = match self.look(id, listed) {
            Ok(view) => return view,
            Err(slot) => slot,
        };
        let reading = slot
            .get_or_init(|| async {
                let began = self.clock.now();
                Reading { began, view: read().await }
            })
            .await;
        reading.view.clone()
    }

    /// Drops a view. The next caller reads the phone again, even if a list shows it.
    pub fn forget(&self, id: &DeviceId) {
        insert(&mut self.part(id), id, Slot::default(), self.clock.now());
    }

    fn look(&self, id: &DeviceId, listed: Option<(Arc<DeviceSnapshot>, Timestamp)>) -> Result<View, Slot> {
        let now = self.clock.now();
        let listed = listed.filter(|(_, began)| is_recent(*began, now));
        let mut slots = self.part(id);
        if let Some(slot) = slots.get(id) {
            let Some(reading) = slot.get() else { return Err(Arc::clone(slot)) };
            match listed.filter(|(_, began)| *began >= reading.began) {
                Some((seen, _)) => return Ok(Ok(seen)),
                None if reading.is_current(now) => return Ok(reading.view.clone()),
                // The list may also be from before the change that dropped the view.
                None => {}
            }
        } else if let Some((seen, _)) = listed {
            return Ok(Ok(seen));
        }
        let slot = Slot::default();
        insert(&mut slots, id, Arc::clone(&slot), now);
        Err(slot)
    }

    fn part(&self, id: &DeviceId) -> MutexGuard<'_, Slots> {
        let part = self.hasher.hash_one(id) as usize % PARTS;
        ignore_poison(self.parts[part].lock())
    }
}

impl Reading {
    fn is_current(&self, now: Timestamp) -> bool {
        !matches!(self.view, Err(Unresolved::Unavailable(_))) && is_recent(self.began, now)
    }
}

fn is_recent(began: Timestamp, now: Timestamp) -> bool {
    now <= began.plus(MAX_AGE)
}

/// Drops old views of a full part and, if more than half remain, all, so that sweeps are rare.
fn insert(slots: &mut Slots, id: &DeviceId, slot: Slot, now: Timestamp) {
    const MOST: usize = CAPACITY / PARTS;
    if slots.len() >= MOST {
        slots.retain(|_, slot| slot.get().is_none_or(|reading| reading.is_current(now)));
        if slots.len() > MOST / 2 {
            slots.clear();
        }
    }
    slots.insert(id.clone(), slot);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phones::port::ReadPort;
    use crate::platforms::simulator::Sim;
    use std::future::ready;

    #[tokio::test]
    async fn views_stay_within_their_capacity_and_what_is_stale_goes_first() {
        const MOST: usize = CAPACITY / PARTS;
        let clock = Clock::manual(Timestamp(0));
        let views = Views::new(clock.clone());
        let id = |index: usize| DeviceId::new(&format!("phone-{index}")).ok().unwrap();
        let part = |id: &DeviceId| views.hasher.hash_one(id) as usize % PARTS;
        let of_one_part: Vec<_> = (0..).map(id).filter(|id| part(id) == 0).take(2 * MOST).collect();
        let missing = || ready(Err(Unresolved::NotFound));
        for (index, id) in of_one_part[..MOST].iter().enumerate() {
            if index == MOST / 2 + 1 {
                clock.advance(MAX_AGE + Duration::from_millis(1));
            }
            let _ = views.get(id, None, missing).await;
        }
        let _ = views.get(&of_one_part[MOST], None, missing).await;
        assert_eq!(views.part(&of_one_part[0]).len(), MOST / 2);
        for id in &of_one_part {
            let _ = views.get(id, None, missing).await;
            assert!(views.part(id).len() <= MOST);
        }
    }

    #[tokio::test]
    async fn no_caller_sees_a_view_older_than_a_list_or_a_list_older_than_a_reading() {
        let clock = Clock::manual(Timestamp(1_000));
        let views = Views::new(clock.clone());
        let sim = |seed| Sim::new(seed, 1, clock.clone(), &[0; 32]).list_page(None, 1).unwrap().remove(0);
        let [listed, read] = [sim(1), sim(2)];
        let id = &read.id;
        let unread = || async { unreachable!("a view is kept") };
        let get = async |began| {
            let view = views.get(id, Some((Arc::clone(&listed), Timestamp(began))), unread).await.unwrap();
            assert!(Arc::ptr_eq(&view, &listed) || Arc::ptr_eq(&view, &read));
            Arc::ptr_eq(&view, &listed)
        };
        views.get(id, None, || ready(Ok(Arc::clone(&read)))).await.unwrap();
        assert!(!get(999).await);
        assert!(get(1_000).await);
        assert!(!get(999).await);
        clock.advance(MAX_AGE);
        clock.advance(Duration::from_millis(1));
        assert!(get(1_001).await);

        views.forget(id);
        let anew = || ready(Ok(Arc::clone(&read)));
        let seen = views.get(id, Some((Arc::clone(&listed), clock.now())), anew).await.unwrap();
        assert!(Arc::ptr_eq(&seen, &read), "a list may have been begun before what it was forgotten for");

        let before = clock.now();
        clock.advance(Duration::from_millis(1));
        views.forget(id);
        let list = || Some((Arc::clone(&listed), before));
        views.get(id, list(), || ready(Err(Unresolved::Unavailable("silent".into())))).await.unwrap_err();
        let seen = views.get(id, list(), anew).await.unwrap();
        assert!(Arc::ptr_eq(&seen, &read), "and so may one from before a reading that failed");
    }
}
