//! The file of a device registry: one JSON document that is replaced as a whole. After a crash it
//! is the old or the new one.

use super::book::{Book, Holder};
use super::row::{Row, SHOWN_FOR};
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::files::{ServiceFile, ServiceFiles};

const VERSION: u32 = 1;

/// The content.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document<T> {
    roster: u32,
    platform: String,
    listed_at: Option<Timestamp>,
    phones: T,
}

/// The entry of one phone.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredHolder<S, R> {
    id: S,
    seat: Option<S>,
    code: Option<S>,
    read_at: Timestamp,
    row: Option<R>,
}

/// Opens the file. A missing file gives an empty book. An earlier process read the rows in it, so
/// at `now` none is current, even if a clock was set back in between.
///
/// # Errors
/// The file cannot be read, or is damaged and cannot be renamed.
pub(super) fn open<R: Row>(
    files: &ServiceFiles,
    file: &str,
    name: &PlatformName,
    now: Timestamp,
) -> io::Result<(ServiceFile, Book<R>)> {
    let (mut file, content) = files.open(file)?;
    let Some(content) = content else { return Ok((file, Book::empty(name.clone()))) };
    let book = match parse(&content, name, now) {
        Ok(book) => book,
        Err(why) => {
            tracing::error!(
                %file, why,
                "the list of a platform's phones is damaged and is kept as `.damaged`; ids of phones that were replaced may change"
            );
            file.set_aside(content)?;
            Book::empty(name.clone())
        }
    };
    Ok((file, book))
}

/// Encodes a device registry.
pub(super) fn encode<R: Row>(book: &Book<R>) -> Vec<u8> {
    let Book { name, listed_at, holders, .. } = book;
    let phones: Vec<_> = holders.iter().map(to_stored).collect();
    let document = Document { roster: VERSION, platform: name.to_string(), listed_at: *listed_at, phones };
    let mut content = serde_json::to_vec(&document).unwrap_or_default();
    content.push(b'\n');
    content
}

/// Parses a device registry.
fn parse<R: Row>(bytes: &[u8], name: &PlatformName, now: Timestamp) -> Result<Book<R>, String> {
    let document: Document<Vec<StoredHolder<String, R>>> =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let Document { roster, platform, listed_at, phones } = document;
    if roster != VERSION {
        return Err(format!("it has version {roster}; the newest known version is {VERSION}"));
    }
    if platform != name.as_str() {
        return Err("it belongs to another platform".to_owned());
    }
    let convert = |at: Timestamp| at.min(now.minus(SHOWN_FOR + Duration::from_millis(1)));
    let holder = |StoredHolder { id, seat, code, read_at, row }: StoredHolder<String, R>| {
        let id = DeviceId::new(&id).map_err(|_| format!("`{id}` is not an id"))?;
        let row = row.map(|row| Arc::new(row.into()));
        Ok(Holder { id, seat, code, read_at: convert(read_at), row, missed: 0 })
    };
    let holders = phones.into_iter().map(holder).collect::<Result<_, String>>()?;
    Ok(Book::new(name.clone(), listed_at.map(convert), holders)?)
}

fn to_stored<R: Row>(holder: &Holder<R>) -> StoredHolder<&str, &R> {
    let Holder { id, seat, code, read_at, row, missed: _ } = holder;
    StoredHolder {
        id: id.as_str(),
        seat: seat.as_deref(),
        code: code.as_deref(),
        read_at: *read_at,
        row: row.as_deref().map(|row| &**row),
    }
}
