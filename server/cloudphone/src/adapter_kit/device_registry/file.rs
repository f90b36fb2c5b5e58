//! The stored form of a device registry: one JSON document that is replaced as a whole. After a
//! crash a file is the old or the new one.

use super::book::{Book, Holder};
use super::row::{Row, SHOWN_FOR};
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufWriter, Error, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::durable;

const VERSION: u32 = 1;

/// The content.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document<T> {
    roster: u32,
    platform: String,
    /// The time of writing, if other replicas read it. Their clocks may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    now: Option<Timestamp>,
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

/// Reads the file. A missing file gives an empty book. An earlier process read the rows in it, so
/// at `now` none is current, even if a clock was set back in between.
///
/// # Errors
/// The file cannot be read, or is damaged and cannot be renamed.
pub(super) fn read<R: Row>(path: &Path, name: &PlatformName, now: Timestamp) -> io::Result<Book<R>> {
    let failed = |error: Error| Error::new(error.kind(), format!("`{}` {error}", path.display()));
    // Reading from a pipe would wait for a writer.
    let bytes = match path.metadata() {
        Ok(about) if about.is_file() => fs::read(path).map_err(failed)?,
        Ok(_) => return Err(failed(Error::new(ErrorKind::InvalidInput, "is not a file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Book::empty(name.clone())),
        Err(error) => return Err(failed(error)),
    };
    parse(&bytes, name, Err(now)).or_else(|why| {
        let aside = path.with_added_extension("damaged");
        fs::rename(path, &aside).map_err(failed)?;
        tracing::error!(
            path = %path.display(), aside = %aside.display(), why,
            "the list of a platform's phones is damaged and was renamed; ids of phones that were replaced may change"
        );
        Ok(Book::empty(name.clone()))
    })
}

/// Writes the file durably.
///
/// # Errors
/// The file cannot be written. It stays as it was.
pub(super) fn write<R: Row>(path: &Path, book: &Book<R>) -> io::Result<()> {
    let document = to_document(book, None);
    let replaced = durable::replace(path, |file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, &document)?;
        file.write_all(b"\n")?;
        file.flush()
    });
    replaced.map(drop)
}

/// Encodes a device registry at this time, for other replicas.
pub(super) fn encode<R: Row>(book: &Book<R>, now: Timestamp) -> Vec<u8> {
    serde_json::to_vec(&to_document(book, Some(now))).unwrap_or_default()
}

/// Parses a device registry. `written` is a time before the writing by the clock of this process.
/// If that is not known, it is an error with the present time, and no row is current.
///
/// # Errors
/// The reason why it is damaged.
pub(super) fn parse<R: Row>(
    bytes: &[u8],
    name: &PlatformName,
    written: Result<Timestamp, Timestamp>,
) -> Result<Book<R>, String> {
    let document: Document<Vec<StoredHolder<String, R>>> =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let Document { roster, platform, now, listed_at, phones } = document;
    if roster != VERSION {
        return Err(format!("it has version {roster}; the newest known version is {VERSION}"));
    }
    if platform != name.as_str() {
        return Err("it belongs to another platform".to_owned());
    }
    let convert = |at: Timestamp| match (written, now) {
        (Ok(written), Some(now)) => written.minus(now.since(at)),
        (Ok(now) | Err(now), _) => at.min(now.minus(SHOWN_FOR + Duration::from_millis(1))),
    };
    let holder = |StoredHolder { id, seat, code, read_at, row }: StoredHolder<String, R>| {
        let id = DeviceId::new(&id).map_err(|_| format!("`{id}` is not an id"))?;
        let row = row.map(|row| Arc::new(row.into()));
        Ok(Holder { id, seat, code, read_at: convert(read_at), row, missed: 0 })
    };
    let holders = phones.into_iter().map(holder).collect::<Result<_, String>>()?;
    Ok(Book::new(name.clone(), listed_at.map(convert), holders)?)
}

fn to_document<R: Row>(book: &Book<R>, now: Option<Timestamp>) -> Document<Vec<StoredHolder<&str, &R>>> {
    let Book { name, listed_at, holders, .. } = book;
    let phones = holders.iter().map(to_stored).collect();
    Document { roster: VERSION, platform: name.to_string(), now, listed_at: *listed_at, phones }
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
