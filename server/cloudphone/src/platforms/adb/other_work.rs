//! Readings and commands that go before pictures of the same phone.

use crate::phones::contract::DeviceId;
use tokio::sync::watch;

/// Readings and commands that are under way, each with its phone.
#[derive(Debug, Default)]
pub(super) struct OtherWork(watch::Sender<Vec<DeviceId>>);

/// Lets pictures of the phone wait until it is dropped.
pub(super) struct WorkUnderWay<'a> {
    all: &'a OtherWork,
    id: &'a DeviceId,
}

impl OtherWork {
    pub(super) fn begin<'a>(&'a self, id: &'a DeviceId) -> WorkUnderWay<'a> {
        self.0.send_modify(|ids| ids.push(id.clone()));
        WorkUnderWay { all: self, id }
    }

    pub(super) fn is_under_way(&self, id: &DeviceId) -> bool {
        self.0.borrow().contains(id)
    }

    pub(super) async fn wait_until(&self, is_under_way: bool, id: &DeviceId) {
        // The sender is not dropped meanwhile.
        let _ = self.0.subscribe().wait_for(|ids| ids.contains(id) == is_under_way).await;
    }
}

impl Drop for WorkUnderWay<'_> {
    fn drop(&mut self) {
        self.all.0.send_modify(|ids| {
            if let Some(at) = ids.iter().position(|id| id == self.id) {
                ids.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_a_phone_counts_until_the_last_of_it_has_ended() {
        let (work, phones) = (OtherWork::default(), ["rack-a", "rack-b"].map(|id| DeviceId::new(id).unwrap()));
        let is_idle = |phone: usize| !work.is_under_way(&phones[phone]);
        let (first, second, other) = (work.begin(&phones[0]), work.begin(&phones[0]), work.begin(&phones[1]));
        for (guard, idle) in [(first, [false, false]), (other, [false, true]), (second, [true, true])] {
            drop(guard);
            assert_eq!([is_idle(0), is_idle(1)], idle);
        }
    }
}
