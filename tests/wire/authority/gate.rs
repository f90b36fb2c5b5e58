//! Phones behind a gate: each reading waits until the test lets it through.

use cloudphone::phones::contract::{Command, DeviceId, SessionMode, SetProxyArgs};
use cloudphone::phones::port::{
    CheckPort, Exits, Found, PhoneStart, PhoneWrite, PlatformName, Query, ReadPort, See, Session, SessionError,
    Unreachable, WritePort,
};
use cloudphone::platforms::simulator::Sim;
use std::sync::Arc;
use tokio::sync::Semaphore;
use toolwarrant::BoxFuture;
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

impl ReadPort for Gate {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.sim.page(after, limit, see)
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.sim.read(ids, see)
    }

    fn read_anew<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Found> {
        Box::pin(async move {
            self.pass().await;
            self.sim.read_anew(id).await
        })
    }
}

impl WritePort for Gate {
    fn session<'a>(&'a self, id: &'a DeviceId, mode: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        self.sim.session(id, mode)
    }

    fn facts(&self, write: &PhoneWrite) -> Facts {
        self.sim.facts(write)
    }

    fn send<'a>(&'a self, request: TaskId, command: &'a Command, leave: Leave) -> BoxFuture<'a, Sent> {
        self.sim.send(request, command, leave)
    }

    fn look_up<'a>(&'a self, id: &'a DeviceId, request: TaskId, operation: Option<&'a str>) -> Query<'a, Option<Sent>> {
        self.sim.look_up(id, request, operation)
    }

    fn exits<'a>(&'a self, id: &'a DeviceId, proxy: Option<&'a SetProxyArgs>) -> Query<'a, Exits> {
        self.sim.exits(id, proxy)
    }

    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> Query<'a, PhoneStart> {
        self.sim.boot_id(id)
    }
}

impl CheckPort for Gate {
    fn state(&self, name: &PlatformName) -> UpstreamState {
        self.sim.state(name)
    }
}
