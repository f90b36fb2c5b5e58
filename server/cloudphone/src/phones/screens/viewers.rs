//! The places of those who wait for a picture.

use crate::phones::contract::DeviceId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use toolwarrant::base::ignore_poison;
use toolwarrant::text::{Words, words};

/// Beyond it, the application that has most gives a place to one that has fewer.
const ALL_MAX: usize = 256;
const APPLICATION_MAX: usize = 128;
const PHONE_MAX: usize = 32;

/// The oldest first.
#[derive(Default)]
pub(super) struct Viewers(Mutex<Vec<Arc<ViewerPlace>>>);

struct ViewerPlace {
    id: DeviceId,
    application: Box<str>,
    given_up: Notify,
}

/// A place, until it is dropped.
pub(super) struct TakenPlace<'a> {
    viewers: &'a Viewers,
    place: Arc<ViewerPlace>,
}

impl Viewers {
    pub(super) fn enter(&self, id: &DeviceId, application: &str) -> Result<TakenPlace<'_>, Words> {
        let mut places = self.places();
        let own = || places.iter().filter(|place| *place.application == *application);
        if own().filter(|place| place.id == *id).count() >= PHONE_MAX {
            return Err(refusal(PHONE_MAX, "watch this phone"));
        }
        if own().count() >= APPLICATION_MAX {
            return Err(refusal(APPLICATION_MAX, "of this application watch a phone"));
        }
        if places.len() >= ALL_MAX {
            let given_up = find_excess(&places, own().count()).ok_or_else(everyone)?;
            places.remove(given_up).given_up.notify_one();
        }
        let place = Arc::new(ViewerPlace { id: id.clone(), application: application.into(), given_up: Notify::new() });
        places.push(Arc::clone(&place));
        Ok(TakenPlace { viewers: self, place })
    }

    fn places(&self) -> MutexGuard<'_, Vec<Arc<ViewerPlace>>> {
        ignore_poison(self.0.lock())
    }
}

/// Returns the oldest place of an application that has most, if these are more than `own` and one.
fn find_excess(places: &[Arc<ViewerPlace>], own: usize) -> Option<usize> {
    let mut held = HashMap::<&str, usize>::new();
    places.iter().for_each(|place| *held.entry(&place.application).or_default() += 1);
    let most = *held.values().max().filter(|most| **most > own + 1)?;
    places.iter().position(|place| held.get(&*place.application) == Some(&most))
}

fn everyone() -> Words {
    refusal(ALL_MAX, "watch a phone of this server")
}

fn refusal(most: usize, what: &'static str) -> Words {
    words!["at most ", most as u64, " people at a time ", what, "; try again when one has left"]
}

impl TakenPlace<'_> {
    /// Returns once the place is given up for another application.
    pub(super) async fn wait_for_loss(&self) -> Words {
        self.place.given_up.notified().await;
        everyone()
    }
}

impl Drop for TakenPlace<'_> {
    fn drop(&mut self) {
        self.viewers.places().retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::from_fn;
    use tokio::time::{Duration, timeout};

    #[tokio::test(start_paused = true)]
    async fn applications_that_want_all_places_have_equally_many_in_the_end_and_the_oldest_go_first() {
        for (others, each) in [(2, [85, 86, 85].as_slice()), (3, &[64; 4]), (1, &[128; 2])] {
            let viewers = Viewers::default();
            let phones: Vec<_> = (0..5).map(|n| DeviceId::new(&format!("phone-{n}")).expect("an id")).collect();
            let enter = |application: &str| phones.iter().find_map(|phone| viewers.enter(phone, application).ok());
            let names: Vec<_> = (0..=others).map(|n| format!("app-{n}")).collect();
            let mut taken: Vec<Vec<_>> = names.iter().map(|name| from_fn(|| enter(name)).collect()).collect();
            // Those that were given up are still to be dropped.
            for (places, each) in taken.iter_mut().zip(each) {
                let given_up = places.len() - each;
                for place in places.drain(..given_up) {
                    timeout(Duration::ZERO, place.wait_for_loss()).await.expect("the oldest");
                }
            }
            assert!(names.iter().all(|name| enter(name).is_none()), "{others}");
            assert_eq!(viewers.places().len(), ALL_MAX);
            drop(taken);
            assert!(viewers.places().is_empty());
        }
    }
}
