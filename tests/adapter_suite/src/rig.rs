//! What a case is played on: a double of a platform with a service around it.

use crate::case::{Mishap, Operation, PhoneDeed};
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::Control;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::testing::{Key, TestServer};
use toolwarrant::{BoxFuture, Clock};

/// A double of a platform, and the adapter that speaks to it.
pub trait Double: Send + Sync + 'static {
    /// Makes the adapter. Its time is that of `clock`.
    fn adapter(&self, clock: &Clock) -> Arc<dyn Control>;

    /// Prepares a running phone that no other case uses, on which `operation` meets `fault`. `None`: this platform cannot fail so.
    fn stage(&self, operation: Operation, fault: Mishap) -> BoxFuture<'_, Option<DeviceId>>;

    /// Returns what was really done on a phone, in order.
    fn deeds<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Vec<PhoneDeed>>;

    /// Lets a little time pass, and moves the clock of the service as much. A double that has no time of its own moves the clock alone.
    fn pass<'a>(&'a self, clock: &'a Clock) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        })
    }
}

/// A service around a double.
pub(crate) struct Rig {
    pub(crate) server: TestServer,
    pub(crate) key: Key,
    pub(crate) http: reqwest::Client,
    pub(crate) double: Arc<dyn Double>,
}
