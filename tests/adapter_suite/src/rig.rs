//! The setup of a case: a double of a platform with a service around it.

use crate::case::{Mishap, Operation, PhoneDeed};
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{Platform, PlatformName};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::{BoxFuture, Clock};
use toolwarrant_testing::{Key, TestServer};

pub trait Double: Send + Sync + 'static {
    /// Returns also the platform's name, with which the ids of its phones begin.
    fn adapter(&self, clock: &Clock) -> (PlatformName, Arc<dyn Platform>);

    /// Returns every phone of the platform and its name there, once the adapter has read them. No
    /// case has begun.
    fn phones(&self) -> BoxFuture<'_, Vec<(DeviceId, String)>>;

    /// Returns true if no phone of this platform offers the operation. Default: each is offered.
    fn lacks(&self, _: Operation) -> bool {
        false
    }

    /// Prepares a phone for one case only: a stopped one for [`Operation::BootStopped`], and else
    /// one that runs. Returns `None` if this platform cannot have that fault.
    fn stage(&self, operation: Operation, fault: Mishap) -> BoxFuture<'_, Option<DeviceId>>;

    fn deeds<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Vec<PhoneDeed>>;

    /// Moves the clock of the service by a little. A double without a time of its own moves only
    /// that clock.
    fn pass<'a>(&'a self, clock: &'a Clock) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        })
    }
}

pub(crate) struct Rig {
    pub(crate) server: TestServer,
    pub(crate) key: Key,
    pub(crate) http: reqwest::Client,
    pub(crate) double: Arc<dyn Double>,
}
