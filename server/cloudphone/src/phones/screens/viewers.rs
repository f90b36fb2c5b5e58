//! The places of those who wait for a picture.

use crate::phones::contract::DeviceId;
use std::sync::{Mutex, MutexGuard};
use toolwarrant::base::ignore_poison;
use toolwarrant::text::{Words, words};

const ALL_MAX: usize = 256;
const APPLICATION_MAX: usize = 128;
const PHONE_MAX: usize = 32;

#[derive(Default)]
pub(super) struct Viewers(Mutex<Vec<ViewerPlace>>);

#[derive(Clone, PartialEq)]
struct ViewerPlace {
    id: DeviceId,
    application: Box<str>,
}

/// A place, until it is dropped.
pub(super) struct TakenPlace<'a> {
    viewers: &'a Viewers,
    place: ViewerPlace,
}

impl Viewers {
    pub(super) fn enter(&self, id: &DeviceId, application: &str) -> Result<TakenPlace<'_>, Words> {
        let mut places = self.places();
        let count = |is_same: &dyn Fn(&ViewerPlace) -> bool| places.iter().filter(|place| is_same(place)).count();
        let is_own = |place: &ViewerPlace| place.id == *id && *place.application == *application;
        let full = [
            (count(&is_own), PHONE_MAX, "watch this phone"),
            (count(&|place| *place.application == *application), APPLICATION_MAX, "of this application watch a phone"),
            (places.len(), ALL_MAX, "watch a phone of this server"),
        ];
        if let Some((_, most, what)) = full.into_iter().find(|(count, most, _)| count >= most) {
            return Err(words!["at most ", most as u64, " people at a time ", what, "; try again when one has left"]);
        }
        let place = ViewerPlace { id: id.clone(), application: application.into() };
        places.push(place.clone());
        Ok(TakenPlace { viewers: self, place })
    }

    fn places(&self) -> MutexGuard<'_, Vec<ViewerPlace>> {
        ignore_poison(self.0.lock())
    }
}

impl Drop for TakenPlace<'_> {
    fn drop(&mut self) {
        let mut places = self.viewers.places();
        if let Some(at) = places.iter().position(|place| *place == self.place) {
            places.swap_remove(at);
        }
    }
}
