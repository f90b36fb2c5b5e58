//! The five files of earlier versions: in the data folder or, in a PostgreSQL, under the same names
//! in the store. They are read as long as the ledger has no entry, and removed from the folder
//! afterwards.

use super::assignment::{Holder, IdAssignment};
use super::entry::{AccountEntry, to_former};
use super::knowledge::{Knowledge, OwnAddress};
use super::row::Row;
use crate::phones::contract::DeviceId;
use crate::phones::port::{Direction, PlatformName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;
use toolwarrant::Timestamp;
use toolwarrant::base::json;
use toolwarrant::files::ServiceFiles;

/// Ends of their names: ids and rows, proofs of an account, own addresses, proofs of phones.
const ROSTER: &str = "roster.json";
const SHOWN: &str = "shown.json";
const DIRECT: &str = "direct";
const PROOFS: [(Direction, &str); 2] = [(Direction::Exit, "exits"), (Direction::Start, "starts")];

#[derive(Deserialize)]
struct Roster<R> {
    listed_at: Option<Timestamp>,
    phones: Vec<RosterRow<R>>,
}

#[derive(Deserialize)]
struct RosterRow<R> {
    id: String,
    seat: Option<String>,
    code: Option<String>,
    read_at: Timestamp,
    row: Option<R>,
}

/// `account` is a hash of the credentials.
#[derive(Deserialize)]
struct Shown {
    account: String,
    exit: Option<serde::de::IgnoredAny>,
    start: Option<serde::de::IgnoredAny>,
}

pub(super) fn read<R: Row>(
    files: &ServiceFiles,
    folder: &Path,
    name: &PlatformName,
    now: Timestamp,
) -> Result<(AccountEntry, IdAssignment<R>)> {
    let (mut account, mut phones) = (AccountEntry::default(), IdAssignment::new(name.clone()));
    if let Some(Roster { listed_at, phones: rows }) = parse::<Roster<R>>(files, folder, name, ROSTER)? {
        phones.listed_at = listed_at.map(|at| to_former(at, now));
        for RosterRow { id, seat: serial, code, read_at, row } in rows {
            let Ok(id) = DeviceId::new(&id) else { continue };
            let (read_at, row) = (to_former(read_at, now), row.map(|row| Arc::new(row.into())));
            // The file has the id until the ledger has it.
            let holder = Holder { serial, code, read_at, row, is_stored: true, ..Holder::new(id.clone()) };
            if phones.add(holder).is_err() {
                let _ = phones.add(Holder::new(id));
            }
        }
    }
    if let Some(Shown { account: identity, exit, start }) = parse(files, folder, name, SHOWN)? {
        account.known.exit = exit.map(|_| identity.clone());
        account.known.start = start.map(|_| identity);
    }
    for (id, text) in lines(files, folder, name, DIRECT)? {
        let address = text.strip_suffix(';').and_then(|text| text.parse().ok());
        learn(&mut phones, &id, |known| known.own_address = Some(address.map_or(OwnAddress::Unread, OwnAddress::Read)));
    }
    for (direction, file) in PROOFS {
        for (id, text) in lines(files, folder, name, file)? {
            // A truncated line proves nothing.
            let Some(identity) = text.strip_suffix(';') else { continue };
            let identity = Some(identity.to_owned()).filter(|identity| identity != "?");
            learn(&mut phones, &id, |known| known.set_proof(direction, identity));
        }
    }
    phones.dirty = (0..phones.holders.len()).collect();
    Ok((account, phones))
}

pub(super) fn remove(folder: &Path, name: &PlatformName) -> Result<()> {
    for file in [ROSTER, SHOWN, DIRECT].into_iter().chain(PROOFS.map(|(_, file)| file)) {
        match fs::remove_file(folder.join(format!("{name}.{file}"))) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn learn<R: Row>(phones: &mut IdAssignment<R>, id: &str, edit: impl FnOnce(&mut Knowledge)) {
    let Ok(id) = DeviceId::new(id) else { return };
    let slot = phones.slot_of(&id).or_else(|| phones.add(Holder::new(id)).ok());
    if let Some(slot) = slot {
        edit(&mut phones.holders[slot].known);
    }
}

/// Renames a damaged file, which counts as missing.
fn parse<T: DeserializeOwned>(
    files: &ServiceFiles,
    folder: &Path,
    name: &PlatformName,
    file: &str,
) -> Result<Option<T>> {
    let file = format!("{name}.{file}");
    let Some(content) = content(files, folder, &file)? else { return Ok(None) };
    match json::read_bytes(&content) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(error) => {
            tracing::error!(file, %error, "a file about the phones of a platform is damaged, and kept as `.damaged`");
            match fs::rename(folder.join(&file), folder.join(format!("{file}.damaged"))) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            }
        }
    }
}

/// Returns ids, and what is known of each. A later line counts more.
fn lines(files: &ServiceFiles, folder: &Path, name: &PlatformName, file: &str) -> Result<Vec<(String, String)>> {
    let file = format!("{name}.{file}");
    let mut text = content(files, folder, &file)?.unwrap_or_default();
    // A long file in a store has several parts.
    (1..).map_while(|part| files.found.get(&format!("{file}.{part}"))).for_each(|part| text.extend(part));
    let text = String::from_utf8_lossy(&text);
    let split = |line: &str| {
        line.split_once(' ').map_or((line.to_owned(), String::new()), |(id, rest)| (id.into(), rest.into()))
    };
    Ok(text.lines().map(split).collect())
}

fn content(files: &ServiceFiles, folder: &Path, file: &str) -> Result<Option<Vec<u8>>> {
    if let Some(content) = files.found.get(file) {
        return Ok(Some(content.clone()));
    }
    let path = folder.join(file);
    match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| Error::new(error.kind(), format!("`{}` {error}", path.display()))),
    }
}
