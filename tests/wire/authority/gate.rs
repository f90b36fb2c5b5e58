//! Phones behind a gate: each reading waits until the test lets it through.

use async_trait::async_trait;
use cloudphone::phones::contract::{Command, DeviceId, SessionMode, SetProxyArgs};
use cloudphone::phones::port::{
    CheckPort, Exits, Found, PhoneStart, PhoneWrite, PlatformName, ReadPort, See, Session, SessionError, Unreachable,
    WritePort,
};
use cloudphone::platforms::simulator::Sim;
use std::sync::Arc;
use tokio::sync::Semaphore;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};

pub(crate) struct Gate {
    pub(crate) sim: Arc<Sim>,
    pub(crate) arrived: Semaphore,
    /// Each permit lets a reading continue.
    pub(crate) open: Semaphore,
}

impl Gate {
    pub(crate) fn around(sim: Arc<Sim>) -> Arc<Self> {
        Arc::new(Self { sim, arrived: Semaphore::new(0), open: Semaphore::new(0) })
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        self.open.acquire().await.expect("it stays").forget();
    }
}

#[async_trait]
impl ReadPort for Gate {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.sim.page(after, limit, see)
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.sim.read(ids, see)
    }

    async fn read_anew(&self, id: &DeviceId) -> Found {
        self.pass().await;
        self.sim.read_anew(id).await
    }
}

#[async_trait]
impl WritePort for Gate {
    async fn session(&self, id: &DeviceId, mode: SessionMode) -> Result<Session, SessionError> {
        self.sim.session(id, mode).await
    }

    fn facts(&self, write: &PhoneWrite) -> Facts {
        self.sim.facts(write)
    }

    async fn send(&self, request: TaskId, command: &Command, leave: Leave) -> Sent {
        self.sim.send(request, command, leave).await
    }

    async fn look_up(&self, id: &DeviceId, task: TaskId, operation: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        self.sim.look_up(id, task, operation).await
    }

    async fn exits(&self, id: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        self.sim.exits(id, proxy).await
    }

    async fn boot_id(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        self.sim.boot_id(id).await
    }
}

impl CheckPort for Gate {
    fn state(&self, name: &PlatformName) -> UpstreamState {
        self.sim.state(name)
    }
}
