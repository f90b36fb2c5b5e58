//! The setup of a case: a double of a platform with a service around it.

use crate::case::{Mishap, Operation, PhoneDeed};
use async_trait::async_trait;
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{Platform, PlatformName};
use kit::KeyPair;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Clock;
use toolwarrant_testing::TestServer;

#[async_trait]
pub trait Double: Send + Sync + 'static {
    /// Returns also the platform's name, with which the ids of its phones begin.
    fn adapter(&self, clock: &Clock) -> (PlatformName, Arc<dyn Platform>);

    /// Returns every phone of the platform and its name there, once the adapter has read them. No
    /// case has begun.
    async fn phones(&self) -> Vec<(DeviceId, String)>;

    /// Returns true if no phone of this platform offers the operation. Default: each is offered.
    fn lacks(&self, _: Operation) -> bool {
        false
    }

    /// Prepares a phone for one case only: a stopped one for [`Operation::BootStopped`], and else
    /// one that runs. Returns `None` if this platform cannot have that fault.
    async fn stage(&self, operation: Operation, fault: Mishap) -> Option<DeviceId>;

    async fn deeds(&self, id: &DeviceId) -> Vec<PhoneDeed>;

    /// Moves the clock of the service by a little. A double without a time of its own moves only
    /// that clock.
    async fn pass(&self, clock: &Clock) {
        clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
}

pub(crate) struct Rig {
    pub(crate) server: TestServer,
    pub(crate) key: KeyPair,
    pub(crate) double: Arc<dyn Double>,
}

impl Rig {
    #[expect(clippy::expect_used, reason = "a suite without answers must fail")]
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        kit::call(self.server.address, &self.key, tool, &arguments).await.expect("an answer")
    }
}
