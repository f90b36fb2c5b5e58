//! Lists the beds for the operator.

use crate::garden::{BEDS, Garden, find};
use serde_json::Map;
use toolwarrant::BoxFuture;
use toolwarrant::operator::{Inventory, Item};

impl Inventory for Garden {
    fn page<'a>(
        &'a self,
        _: &'static str,
        after: Option<&'a str>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Item>, String>> {
        let ids = BEDS.iter().map(|plot| plot.id).filter(move |id| after.is_none_or(|after| *id > after));
        let item = |id: &str| Item { id: id.into(), shown: Map::from_iter([("bed_id".into(), id.into())]) };
        Box::pin(async move { Ok(ids.take(limit.into()).map(item).collect()) })
    }

    fn missing<'a>(&'a self, _: &'static str, ids: &'a [String]) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move { Ok(ids.iter().find(|id| find(id).is_none()).cloned()) })
    }
}
