//! The list of all phones for an operator, regardless of what applications may see.

use super::contract::{DeviceCapability, DeviceId};
use super::platforms::Platforms;
use super::port::DeviceReading;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use toolwarrant::BoxFuture;
use toolwarrant::operator::{Inventory, Item, States, VisitState};

impl Inventory for Platforms {
    fn page<'a>(
        &'a self,
        _: &'static str,
        after: Option<&'a str>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Item>, String>> {
        Box::pin(async move {
            let after = after.map(device).transpose()?;
            let page = self.list_page(after.as_ref(), limit).map_err(|error| error.to_string())?;
            Ok(page.iter().map(|phone| item(phone)).collect())
        })
    }

    fn missing<'a>(&'a self, _: &'static str, ids: &'a [String]) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let devices = ids.iter().map(|id| device(id)).collect::<Result<Vec<_>, _>>()?;
            let ids: Vec<_> = devices.iter().map(DeviceId::as_str).collect();
            let mut found = HashSet::new();
            let read = self.read(&ids, &mut |phones| found.extend(phones.iter().map(|phone| phone.id.clone())));
            read.map_err(|error| error.to_string())?;
            let has_left = |id: &DeviceId| self.of(id).is_ok_and(|platform| platform.has_left(id));
            Ok(devices.iter().find(|id| !found.contains(*id) && !has_left(id)).map(DeviceId::to_string))
        })
    }

    fn states(&self) -> Option<&dyn States> {
        Some(self)
    }
}

impl States for Platforms {
    fn visit(&self, _: &'static str, visit: VisitState<'_>) -> Result<(), String> {
        let mut last: Option<DeviceId> = None;
        loop {
            let page = self.list_page(last.as_ref(), VISITED).map_err(|error| error.to_string())?;
            for phone in &page {
                let flags: Vec<_> = DeviceCapability::ALL.iter().map(|capability| phone.offers(*capability)).collect();
                visit(phone.id.as_str(), phone.state().as_str(), &flags);
            }
            match page.last() {
                Some(phone) if page.len() == usize::from(VISITED) => last = Some(phone.id.clone()),
                _ => return Ok(()),
            }
        }
    }
}

const VISITED: u16 = 10_000;

fn device(id: &str) -> Result<DeviceId, String> {
    DeviceId::new(id).map_err(|_| format!("`{id}` is not a device id"))
}

fn item(phone: &DeviceReading) -> Item {
    let shown = json!({"device_id": phone.id, "name": phone.name, "state": phone.state(), "capabilities": phone.capabilities()});
    let shown = if let Value::Object(shown) = shown { shown } else { Map::new() };
    Item { id: phone.id.to_string(), shown }
}
