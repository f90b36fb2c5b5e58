//! The inventory for an operator: `print-shop printer list`, `print-shop tray list`.

use crate::machines::{Machine, PRINTERS, TRAYS};
use crate::shop::Shop;
use serde_json::{Map, json};
use toolwarrant::BoxFuture;
use toolwarrant::operator::{Inventory, Item};
use toolwarrant::text::Untrusted;

impl Inventory for Shop {
    fn page<'a>(
        &'a self,
        resource: &'static str,
        after: Option<&'a str>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Item>, String>> {
        Box::pin(async move {
            let rest = of(resource).iter().filter(|machine| after.is_none_or(|after| machine.id > after));
            Ok(rest.take(limit.into()).map(|machine| item(resource, machine)).collect())
        })
    }

    fn missing<'a>(
        &'a self,
        resource: &'static str,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let known = |id: &String| of(resource).iter().any(|machine| machine.id == id);
            Ok(ids.iter().find(|id| !known(id)).cloned())
        })
    }
}

fn of(resource: &str) -> &'static [Machine] {
    if resource == "tray" { TRAYS } else { PRINTERS }
}

fn item(resource: &str, machine: &Machine) -> Item {
    let label: Untrusted = machine.label.into();
    let shown = [(format!("{resource}_id"), json!(machine.id)), ("label".to_owned(), json!(label))];
    Item { id: machine.id.to_owned(), shown: Map::from_iter(shown) }
}
