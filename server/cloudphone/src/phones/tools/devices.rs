//! The handlers that read phones: `spec/tools/devices.toml`.

use crate::phones::contract::{Cursor, Device, DeviceDetail, DeviceId, DevicePage, DeviceSpec, DevicesTools};
use crate::phones::contract::{GetDeviceArgs, GetDeviceError, ListDevicesArgs, ListDevicesError, texts};
use crate::phones::devices::{Filter, Phones};
use crate::phones::port::{DeviceReading, DeviceSnapshot, PlatformName, See};
use std::sync::Arc;
use toolwarrant::base::hex;
use toolwarrant::contract::PermissionSet;
use toolwarrant::handler::{Call, Grants, Reply, Target};
use toolwarrant::rendered::ListWriter;
use toolwarrant::text::{Words, words};

impl DevicesTools for Phones {
    async fn list_devices(
        &self,
        call: &Call<'_>,
        args: ListDevicesArgs,
    ) -> Result<Reply<DevicePage>, ListDevicesError> {
        let application = &call.caller.application;
        let mut listing = ListWriter::begin(call);
        let rest = self.list(&application.grants, application.permissions, args, &mut |phones| {
            let rows: Vec<_> = phones.iter().map(|phone| phone.row.render(|| device(phone))).collect();
            listing.extend(&rows);
        })?;
        Ok(listing.finish(rest))
    }

    async fn get_device(
        &self,
        call: &Call<'_>,
        device: &Target<Arc<DeviceSnapshot>>,
        _: GetDeviceArgs,
    ) -> Result<Reply<DeviceDetail>, GetDeviceError> {
        Ok(device.detail.reply(call, || detail(device)))
    }
}

impl Phones {
    fn list(
        &self,
        grants: &Grants,
        reader: PermissionSet,
        args: ListDevicesArgs,
        see: See<'_>,
    ) -> Result<DevicePage, ListDevicesError> {
        let ListDevicesArgs { cursor, limit, state, capability } = args;
        let after = match &cursor {
            Some(cursor) => Some(position(cursor).ok_or(ListDevicesError::InvalidArgument {
                what: words!["`", ListDevicesArgs::CURSOR, "` is not one that list_devices returned"],
            })?),
            None => None,
        };
        let limit = u16::try_from(limit.get()).unwrap_or(u16::MAX);
        let page = self
            .page(grants, after.as_ref(), limit, Filter { state, capability }, see)
            .map_err(|_| ListDevicesError::UpstreamUnavailable { what: "the platform could not be reached".into() })?;
        let full = page.count == usize::from(limit);
        let more = page.next.as_ref().map(|_| if full { texts::NEXT_PAGE } else { texts::MORE_DEVICES });
        let unread = page.unread.iter().map(|(name, remedy)| unread(name, *remedy)).collect::<Vec<_>>();
        let is_empty = page.count == 0 && page.next.is_none() && cursor.is_none() && unread.is_empty();
        let empty = is_empty.then(|| self.remedies(grants)).into_iter().flatten().map(Words::from);
        let more = more.map(|more| more.for_reader(reader));
        let next_step: Vec<_> = more.into_iter().chain(unread).chain(empty).collect();
        Ok(DevicePage {
            devices: Vec::new(),
            next_step: (!next_step.is_empty()).then(|| Words::list(&next_step, " ")),
            next_cursor: page.next.as_ref().map(cursor_after),
        })
    }
}

fn unread(platform: &PlatformName, remedy: Option<&'static str>) -> Words {
    words![
        "The devices of platform `",
        platform,
        "` could not be listed yet and may be missing here: list them again in 10 seconds.",
        remedy.unwrap_or_default()
    ]
}

fn device(snapshot: &DeviceReading) -> Device {
    Device {
        device_id: snapshot.id.clone(),
        name: snapshot.name.clone(),
        state: snapshot.state(),
        capabilities: snapshot.capabilities(),
    }
}

fn detail(snapshot: &DeviceReading) -> DeviceDetail {
    let Device { device_id, name, state, capabilities } = device(snapshot);
    DeviceDetail {
        device_id,
        name,
        state,
        capabilities,
        spec: DeviceSpec::clone(&snapshot.spec),
        power_actions: snapshot.power_actions.to_vec(),
        proxy_schemes: snapshot.proxy_schemes.to_vec(),
        proxy: snapshot.proxy.clone(),
        notes: snapshot.notes(),
    }
}

/// Encodes a place in the order. It stays valid if the phone is gone, and grants no rights.
fn cursor_after(last: &DeviceId) -> Cursor {
    let Ok(cursor) = Cursor::new(&hex::encode(last.as_str().as_bytes())) else {
        unreachable!("64 characters of an id are 128 of hex, a cursor holds 256")
    };
    cursor
}

fn position(cursor: &Cursor) -> Option<DeviceId> {
    DeviceId::new(&String::from_utf8(hex::decode(cursor.as_str())?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phones::contract::PageSize;
    use crate::phones::platforms::Platforms;
    use crate::phones::proxy_hosts::ProxyHosts;
    use crate::phones::tests::name;
    use crate::platforms::simulator::Sim;
    use toolwarrant::{Clock, Timestamp};

    fn cast() -> (Phones, Arc<Sim>) {
        let clock = Clock::manual(Timestamp(0));
        let sim = Arc::new(Sim::new(5, 12, clock.clone(), &[0; 32]));
        let platforms = Platforms::default().with(name("phone"), sim.clone());
        (Phones::new(Arc::new(platforms), ProxyHosts::Public, clock), sim)
    }

    fn list(
        phones: &Phones,
        args: ListDevicesArgs,
    ) -> Result<(Vec<Arc<DeviceSnapshot>>, DevicePage), ListDevicesError> {
        let mut listed = Vec::new();
        let see = &mut |phones: &[&Arc<DeviceSnapshot>]| listed.extend(phones.iter().copied().cloned());
        let rest = phones.list(&Grants::everything(), PermissionSet::NONE, args, see)?;
        Ok((listed, rest))
    }

    fn args(cursor: Option<Cursor>, limit: i64) -> ListDevicesArgs {
        ListDevicesArgs { cursor, limit: PageSize::new(limit).ok().unwrap(), state: None, capability: None }
    }

    #[test]
    fn a_cursor_that_was_not_made_here_is_refused() {
        let (phones, _) = cast();
        for text in ["0", "7", "70686f6e6", "ff", "c3a9", "5a", "20"] {
            let cursor = Cursor::new(text).ok();
            let refused = list(&phones, args(cursor, 7));
            let Err(ListDevicesError::InvalidArgument { what }) = refused else { panic!("{text} was taken") };
            assert_eq!(what.as_str(), "`cursor` is not one that list_devices returned");
        }
    }

    #[test]
    fn the_longest_id_fits_a_cursor() {
        let id = DeviceId::new(&"z".repeat(64)).ok().unwrap();
        assert_eq!(position(&cursor_after(&id)), Some(id));
    }

    #[test]
    fn an_unreachable_platform_is_named_without_its_own_words() {
        let (phones, sim) = cast();
        sim.cut();
        let failed = list(&phones, args(None, 7));
        let Err(ListDevicesError::UpstreamUnavailable { what }) = failed else { panic!("it was reached") };
        assert_eq!(what.as_str(), "the platform could not be reached");
    }
}
