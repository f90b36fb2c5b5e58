//! The check that the contract can read the command of every task in flight.

use super::found::{Found, unreadable};
use crate::data;
use crate::names::Names;
use std::path::Path;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_store::Store;
use toolwarrant_tasks::command;
use toolwarrant_tasks::store::OpenTask;

const PAGE: u32 = 10_000;

pub(super) async fn find_unreadable(folder: &Path, names: &Names, catalogue: &Catalogue, store: &dyn Store) -> Found {
    let key = data::read_master_key(folder).map_err(unreadable)?;
    let keyring = KeyRing::new(&names.salt, &key, Random::System);
    let (mut found, mut last) = (Vec::new(), None);
    loop {
        let page = store.in_flight(last, PAGE).await?;
        let Some(end) = page.last() else { return Ok(found) };
        last = Some(end.id);
        for OpenTask { id, tool, sealed, .. } in &page {
            let opened = command::open(Some(catalogue), &keyring, (*id, tool), sealed.as_deref());
            found.extend(opened.err().map(|why| format!("{id}: {why}")));
        }
    }
}
