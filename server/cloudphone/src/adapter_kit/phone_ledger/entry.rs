//! The entries of a ledger in the store: a JSON document for each phone, and one for the account.

use super::assignment::{AccountPhones, Holder};
use super::knowledge::{Knowledge, OwnAddress};
use super::row::{Row, SHOWN_FOR};
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::json;

const PREFIX: &str = "phones/";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PhoneEntry<S, R, K> {
    serial: Option<S>,
    code: Option<S>,
    read_at: Timestamp,
    row: Option<R>,
    known: K,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct AccountEntry<K> {
    listed_at: Option<Timestamp>,
    known: K,
}

/// A phone whose entry is damaged keeps its id, which leads to no phone. If the entry of the
/// account is damaged, nothing is proven.
pub(super) fn decode<R: Row>(
    files: &HashMap<String, Vec<u8>>,
    name: &PlatformName,
    now: Timestamp,
) -> AccountPhones<R> {
    let mut phones = AccountPhones::new(name.clone());
    if let Some(account) = files.get(&name_of(name.as_str())) {
        phones.is_account_stored = true;
        match json::read_bytes::<AccountEntry<Knowledge>>(account) {
            Ok(AccountEntry { listed_at, known }) => {
                phones.listed_at = listed_at.map(|at| to_former(at, now));
                (phones.shown_at, phones.known) = (phones.listed_at, known);
            }
            Err(error) => {
                tracing::error!(platform = %name, %error, "the entry of a platform is damaged; what was proven must be proven again")
            }
        }
    }
    let prefix = name_of(&format!("{name}-"));
    let mut names: Vec<_> = files.keys().filter(|file| file.starts_with(&prefix)).collect();
    names.sort_unstable();
    for file in names {
        let Ok(id) = DeviceId::new(&file[PREFIX.len()..]) else { continue };
        let parsed = parse(id.clone(), &files[file], now);
        if let Err(why) = parsed.and_then(|holder| Ok(phones.add(holder).map(drop)?)) {
            tracing::error!(
                device = id.as_str(),
                why,
                "the entry of a phone is damaged; its id leads to no phone any more"
            );
            let known = Knowledge { own_address: Some(OwnAddress::Unread), ..Knowledge::default() };
            let _ = phones.add(Holder { is_stored: true, known, ..Holder::new(id) });
        }
    }
    phones
}

/// Returns the entries that the store lacks.
pub(super) fn encode<R: Row>(phones: &AccountPhones<R>) -> Vec<(String, Vec<u8>)> {
    if phones.is_account_stored && phones.dirty.is_empty() {
        return Vec::new();
    }
    let dirty = phones.dirty.iter().map(|slot| &phones.holders[*slot]);
    let dirty = dirty.map(|holder| encode_phone(holder, &holder.known));
    [encode_account(phones, &phones.known)].into_iter().chain(dirty).collect()
}

pub(super) fn encode_account<R: Row>(phones: &AccountPhones<R>, known: &Knowledge) -> (String, Vec<u8>) {
    let account = AccountEntry { listed_at: phones.listed_at, known };
    (name_of(phones.name.as_str()), serde_json::to_vec(&account).unwrap_or_default())
}

pub(super) fn encode_phone<R: Row>(holder: &Holder<R>, known: &Knowledge) -> (String, Vec<u8>) {
    let Holder { id, serial, code, read_at, row, .. } = holder;
    let (serial, code, row) = (serial.as_deref(), code.as_deref(), row.as_deref().map(|row| &**row));
    let entry = PhoneEntry::<&str, &R, _> { serial, code, read_at: *read_at, row, known };
    (name_of(id.as_str()), serde_json::to_vec(&entry).unwrap_or_default())
}

/// Limits a time so that a row of another process is not current, even if a clock was set back.
pub(super) fn to_former(at: Timestamp, now: Timestamp) -> Timestamp {
    at.min(now.minus(SHOWN_FOR + Duration::from_millis(1)))
}

fn parse<R: Row>(id: DeviceId, content: &[u8], now: Timestamp) -> Result<Holder<R>, String> {
    let PhoneEntry { serial, code, read_at, row, known }: PhoneEntry<String, R, Knowledge> =
        json::read_bytes(content).map_err(|error| error.to_string())?;
    let (read_at, row) = (to_former(read_at, now), row.map(|row| Arc::new(row.into())));
    Ok(Holder { serial, code, read_at, row, is_stored: true, known, ..Holder::new(id) })
}

fn name_of(id: &str) -> String {
    format!("{PREFIX}{id}")
}
