//! The promises of the port that no call of a client shows.

use crate::case::{Mishap, Operation};
use crate::rig::Rig;
use cloudphone::phones::contract::{Command, DeviceId};
use cloudphone::phones::port::Platform;
use std::collections::BTreeSet;
use toolwarrant::Timestamp;
use toolwarrant::tasks::{Leave, Sent, TaskId};

/// Returns the promises that were broken. No case has begun.
pub(crate) async fn examine(rig: &Rig, operations: &[Operation]) -> Vec<String> {
    let phones: BTreeSet<_> = rig.double.phones().await.into_iter().map(|(id, _)| id).collect();
    let (_, platform) = rig.double.adapter(&rig.server.clock);
    let mut broken = Vec::from_iter(page(&*platform, &phones));
    for operation in operations {
        broken.extend(send_too_late(rig, &*platform, *operation).await);
    }
    broken
}

/// Reads pages of some phones, until one has fewer.
#[expect(clippy::expect_used, reason = "a suite without phones must fail")]
fn page(platform: &dyn Platform, phones: &BTreeSet<DeviceId>) -> Option<String> {
    let limit = u16::try_from(phones.len() / 3 + 1).expect("fewer phones");
    let (mut shown, mut last) = (Vec::new(), None);
    loop {
        let page = platform.list_page(last.as_ref(), limit).expect("a page");
        last = page.last().map(|phone| phone.id.clone()).or(last);
        shown.extend(page.iter().map(|phone| phone.id.clone()));
        let left = phones.len().saturating_sub(shown.len());
        if page.len() != usize::from(limit) {
            let is_right = page.len() < usize::from(limit) && left == 0 && shown.iter().eq(phones);
            return (!is_right).then(|| format!("a page of {limit} phones has {}, and {left} are left", page.len()));
        }
    }
}

/// Sends a command whose time has passed.
#[expect(clippy::expect_used, reason = "a suite with a command that is none must fail")]
async fn send_too_late(rig: &Rig, platform: &dyn Platform, operation: Operation) -> Option<String> {
    if operation == Operation::Session || rig.double.lacks(operation) {
        return None;
    }
    let device = rig.double.stage(operation, Mishap::None).await?;
    let before = rig.double.deeds(&device).await.len();
    let (tool, arguments) = operation.call(&device);
    let command = Command::read(tool, &arguments.to_string()).expect("a command");
    let leave = Leave::until(Timestamp(0), &rig.server.clock);
    let sent = platform.send(TaskId::new(rig.server.clock.now(), [0; 10]), &command, leave).await;
    let done = rig.double.deeds(&device).await.len() - before;
    let is_right = matches!(sent, Sent::NotSent(_)) && done == 0;
    (!is_right).then(|| format!("{operation:?} was sent without `Leave::confirm`: {sent:?}, done {done}"))
}
