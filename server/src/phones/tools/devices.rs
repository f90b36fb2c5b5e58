//! The handlers that read phones: `spec/tools/devices.toml`.

use crate::phones::contract::{Cursor, Device, DeviceDetail, DeviceId, DevicePage, DevicesTools};
use crate::phones::contract::{GetDeviceArgs, GetDeviceError, ListDevicesArgs, ListDevicesError, texts};
use crate::phones::devices::{Filter, Phones};
use crate::phones::upstream::Snapshot;
use crate::phones::upstream::roster::PlatformName;
use crate::phones::views::Seen;
use std::sync::Arc;
use toolwarrant::{Call, Grants, PermissionSet, Reply, Target, Words, hex, words};

impl DevicesTools for Phones {
    async fn list_devices(
        &self,
        call: &Call<'_>,
        args: ListDevicesArgs,
    ) -> Result<Reply<DevicePage>, ListDevicesError> {
        let application = &call.caller.application;
        list(self, &application.grants, args, application.permissions).await.map(Reply::from)
    }

    async fn get_device(
        &self,
        call: &Call<'_>,
        device: &Target<Arc<Seen>>,
        _: GetDeviceArgs,
    ) -> Result<Reply<DeviceDetail>, GetDeviceError> {
        Ok(device.detail.reply(call, || detail(device)))
    }
}

async fn list(
    phones: &Phones,
    grants: &Grants,
    args: ListDevicesArgs,
    reader: PermissionSet,
) -> Result<DevicePage, ListDevicesError> {
    let ListDevicesArgs { cursor, limit, state, capability } = args;
    let after = match &cursor {
        Some(cursor) => Some(position(cursor).ok_or(ListDevicesError::InvalidArgument {
            what: "`cursor` is not one that list_devices returned".into(),
        })?),
        None => None,
    };
    let limit = u16::try_from(limit.get()).unwrap_or(u16::MAX);
    let page = phones
        .page(grants, after.as_ref(), limit, Filter { state, capability })
        .await
        .map_err(|_| ListDevicesError::UpstreamUnavailable { what: "the platform could not be reached".into() })?;
    let full = page.devices.len() == usize::from(limit);
    let more = page.next.as_ref().map(|_| if full { texts::NEXT_PAGE } else { texts::MORE_DEVICES });
    let unread = page.unread.iter().map(unread).collect::<Vec<_>>();
    let next_step: Vec<_> = more.map(|more| more.told_to(reader)).into_iter().chain(unread).collect();
    Ok(DevicePage {
        devices: page.devices.iter().map(|snapshot| device(snapshot)).collect(),
        next_step: (!next_step.is_empty()).then(|| Words::list(&next_step, " ")),
        next_cursor: page.next.as_ref().map(cursor_after),
    })
}

/// What is told of a platform whose phones are in no list yet.
fn unread(platform: &PlatformName) -> Words {
    words![
        "The devices of platform `",
        platform,
        "` could not be listed yet and may be missing here: list them again in a minute."
    ]
}

fn device(snapshot: &Snapshot) -> Device {
    Device {
        device_id: snapshot.id.clone(),
        name: snapshot.name.clone(),
        state: snapshot.state(),
        capabilities: snapshot.capabilities(),
    }
}

fn detail(snapshot: &Snapshot) -> DeviceDetail {
    let Device { device_id, name, state, capabilities } = device(snapshot);
    DeviceDetail {
        device_id,
        name,
        state,
        capabilities,
        spec: snapshot.spec.clone(),
        power_actions: snapshot.power_actions.clone(),
        proxy_schemes: snapshot.proxy_schemes.clone(),
        proxy: snapshot.proxy.clone(),
        notes: snapshot.notes(),
    }
}

/// Returns the cursor for the page after `last`: its id in lower-case hex. It names a place in the order, so it stays valid if the
/// phone is gone. It gives no rights.
fn cursor_after(last: &DeviceId) -> Cursor {
    let Ok(cursor) = Cursor::new(&hex::encode(last.as_str().as_bytes())) else {
        unreachable!("64 characters of an id are 128 of hex, a cursor holds 256")
    };
    cursor
}

/// Returns the id that [`cursor_after`] was given.
fn position(cursor: &Cursor) -> Option<DeviceId> {
    DeviceId::new(&String::from_utf8(hex::decode(cursor.as_str())?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phones::contract::{DeviceCapability, DeviceState, PageSize, SessionMode};
    use crate::phones::proxy_hosts::ProxyHosts;
    use crate::phones::upstream::sim::Sim;
    use crate::phones::upstream::{Session, SessionError, Unreachable, Upstream};
    use toolwarrant::{BoxFuture, Clock, Resource, Timestamp};

    async fn cast() -> (Phones, Vec<Arc<Snapshot>>) {
        let clock = Clock::manual(Timestamp(0));
        let sim = Sim::new(5, 12, clock.clone(), &[0; 32]);
        let phones = sim.page(None, 12).await.unwrap();
        (Phones::new(Arc::new(sim), ProxyHosts::Public, clock), phones)
    }

    fn args(cursor: Option<Cursor>, limit: i64) -> ListDevicesArgs {
        ListDevicesArgs { cursor, limit: PageSize::new(limit).ok().unwrap(), state: None, capability: None }
    }

    #[tokio::test]
    async fn a_list_goes_on_at_its_cursor_until_there_is_none() {
        let (phones, cast) = cast().await;
        let first = list(&phones, &Grants::everything(), args(None, 7), PermissionSet::NONE).await.unwrap();
        let second =
            list(&phones, &Grants::everything(), args(first.next_cursor, 7), PermissionSet::NONE).await.unwrap();
        assert_eq!(second.next_cursor, None);
        let listed = [first.devices, second.devices].concat();
        assert_eq!(listed, cast.iter().map(|snapshot| device(snapshot)).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_list_holds_what_its_arguments_ask_for() {
        let (phones, _) = cast().await;
        let state = ListDevicesArgs { state: Some(DeviceState::Unknown), ..args(None, 50) };
        let power = ListDevicesArgs { capability: Some(DeviceCapability::Power), ..args(None, 50) };
        for (args, expected) in [(state, vec![4]), (power, vec![1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12])] {
            let page = list(&phones, &Grants::everything(), args, PermissionSet::NONE).await.unwrap();
            let expected = expected.iter().map(|index| format!("phone-{index:07}"));
            assert!(page.devices.iter().map(|device| device.device_id.to_string()).eq(expected));
        }
    }

    #[tokio::test]
    async fn a_cursor_that_was_not_made_here_is_refused() {
        let (phones, _) = cast().await;
        for text in ["0", "7", "70686f6e6", "ff", "c3a9", "5a", "20"] {
            let cursor = Cursor::new(text).ok();
            let refused = list(&phones, &Grants::everything(), args(cursor, 7), PermissionSet::NONE).await;
            let Err(ListDevicesError::InvalidArgument { what }) = refused else { panic!("{text} was taken") };
            assert_eq!(what.as_str(), "`cursor` is not one that list_devices returned");
        }
    }

    #[test]
    fn the_longest_id_fits_a_cursor() {
        let id = DeviceId::new(&"z".repeat(64)).ok().unwrap();
        assert_eq!(position(&cursor_after(&id)), Some(id));
    }

    #[tokio::test]
    async fn an_unreachable_platform_is_named_without_its_own_words() {
        struct Down;
        impl Upstream for Down {
            fn page<'a>(
                &'a self,
                _: Option<&'a DeviceId>,
                _: u16,
            ) -> BoxFuture<'a, Result<Vec<Arc<Snapshot>>, Unreachable>> {
                Box::pin(async { Err(Unreachable("vendor says no".into())) })
            }
            fn read<'a>(&'a self, _: &'a [DeviceId]) -> BoxFuture<'a, Result<Vec<Option<Arc<Snapshot>>>, Unreachable>> {
                unreachable!()
            }
            fn session<'a>(&'a self, _: &'a DeviceId, _: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
                unreachable!()
            }
        }
        let phones = Phones::new(Arc::new(Down), ProxyHosts::Public, Clock::manual(Timestamp(0)));
        let failed = list(&phones, &Grants::everything(), args(None, 7), PermissionSet::NONE).await;
        let Err(ListDevicesError::UpstreamUnavailable { what }) = failed else { panic!("it was reached") };
        assert_eq!(what.as_str(), "the platform could not be reached");
    }

    #[tokio::test]
    async fn flags_precondition_and_notes_agree() {
        let (_, cast) = cast().await;
        for snapshot in cast {
            let snapshot = Arc::new(Seen::from(snapshot));
            let detail = detail(&snapshot);
            let capabilities = serde_json::to_value(&detail.capabilities).unwrap();
            for capability in DeviceCapability::ALL {
                let name = capability.as_str();
                let note = format!("`{name}` is not offered: ");
                let note = detail.notes.iter().find_map(|text| text.as_str().strip_prefix(&note));
                let refusal = Phones::flag(&snapshot, *capability).refusal();
                assert_eq!((&capabilities[name], note), (&refusal.is_none().into(), refusal));
            }
            let unknown = detail.notes.iter().any(|text| text.as_str().starts_with("`state` is unknown"));
            assert_eq!(unknown, detail.state == DeviceState::Unknown);
        }
    }
}
