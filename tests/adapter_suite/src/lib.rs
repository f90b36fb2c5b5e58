//! The cases that every adapter must pass against a double of its platform: each operation on a
//! phone with each fault.
//!
//! Before the cases, the [lists] are compared with the platform, and the [port] is examined. A case
//! calls a tool of a whole service over the wire and lets time pass until the task ends.
//! Then it compares the client's answer, the ledger, and the double's journal. The right end may
//! differ between platforms, and is in a snapshot of the adapter's own tests. The rules that hold
//! on every platform are in [`judge`]. Start at [`run`].

mod case;
mod judge;
mod lists;
mod play;
mod port;
mod rig;
mod screen;

pub use case::{Mishap, OPERATIONS, Operation, PhoneDeed};
pub use judge::CaseEnd;
pub use rig::Double;
pub use screen::watch;

use cloudphone::phones::contract::Contract;
use cloudphone::phones::devices::Phones;
use cloudphone::phones::platforms::Platforms;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use cloudphone::phones::writes::Writes;
use kit::KeyPair;
use rig::Rig;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::JoinSet;
use toolwarrant::contract::PermissionSet;
use toolwarrant::{Service, Setup};
use toolwarrant_testing::Tenant;

/// The first row also has the broken promises of lists and of the port.
#[expect(clippy::expect_used, reason = "a suite without its service must fail")]
pub async fn run(double: Arc<dyn Double>, operations: &[Operation]) -> Vec<CaseEnd> {
    let folder = TempDir::new().expect("a temporary folder");
    let compose = |setup: Setup<'_, ()>| {
        let (name, platform) = double.adapter(&setup.clock);
        let platforms = Arc::new(Platforms::default().with(name, platform));
        let phones = Phones::new(platforms.clone(), ProxyHosts::PublicAndPrivate, setup.clock);
        let writes = Writes::new(platforms, phones.views());
        Service::with_executor(Contract(Arc::new(phones)), Arc::new(writes))
    };
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let (server, keys) = toolwarrant_testing::serve(compose, tenants, folder.path().to_owned()).await;
    let toolwarrant_testing::Key { id, secret } = keys[0][0].clone();
    let rig = Arc::new(Rig { server, key: KeyPair { id, secret }, double });
    let (looking, operations_once) = (Arc::clone(&rig), operations.to_vec());
    let looking = tokio::spawn(async move {
        let mut broken = lists::compare(&looking).await;
        broken.extend(port::examine(&looking, &operations_once).await);
        broken
    });
    while !looking.is_finished() {
        rig.double.pass(&rig.server.clock).await;
    }
    let broken = looking.await.expect("a comparison that does not panic");
    let mut cases = JoinSet::new();
    for (number, (operation, fault)) in case::all(operations).into_iter().enumerate() {
        let rig = Arc::clone(&rig);
        cases.spawn(async move { (number, play::carry_out(&rig, operation, fault).await) });
    }
    let mut rows = Vec::new();
    loop {
        while let Some(done) = cases.try_join_next() {
            let (number, row) = done.expect("a case that does not panic");
            rows.extend(row.map(|row| (number, row)));
        }
        if cases.is_empty() {
            break;
        }
        rig.double.pass(&rig.server.clock).await;
    }
    rows.sort_by_key(|(number, _)| *number);
    let mut rows: Vec<CaseEnd> = rows.into_iter().map(|(_, row)| row).collect();
    rows.first_mut().expect("a case").violations.extend(broken);
    rows
}
