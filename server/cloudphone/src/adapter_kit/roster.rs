//! The phones of one platform, in the order of our ids, in memory and in a file.
//!
//! An id is given once: it stays with its phone while the platform gives that another name, and it leads to no other phone
//! ([`book`] says how). Reads never wait for the platform or for the disk. What a row means is its adapter's to say; when to read
//! the platform is [`refresh`]'s. Start at [`Roster`].

mod book;
mod file;
pub mod refresh;
mod row;

pub use row::{KeptRow, Recoded, Row, SHOWN_FOR, is_current};

use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use book::Book;
use row::Phone;
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use toolwarrant::{Clock, Timestamp, unpoisoned};

/// A phone of a roster.
#[derive(Debug)]
pub struct Listed<R: Row> {
    /// Our id of it.
    pub id: DeviceId,
    /// What the platform told of it.
    pub row: Arc<KeptRow<R>>,
    /// When the reading of the row began. What an earlier process read is never current.
    pub read_at: Timestamp,
}

/// The phones of one platform.
#[derive(Debug)]
pub struct Roster<R: Row> {
    name: PlatformName,
    clock: Clock,
    path: PathBuf,
    /// Changes wait here for each other, and for the disk where ids change.
    book: Arc<Mutex<Book<R>>>,
    /// What the book shows. Locked for as long as it takes to show a page.
    shown: Arc<RwLock<Shown<R>>>,
}

/// KnownPhones of a roster one after the other: id, row, and when the reading of the row began.
pub type KnownPhones<'a, R> = &'a mut dyn Iterator<Item = (&'a DeviceId, &'a KeptRow<R>, Timestamp)>;

/// What readers see.
#[derive(Debug)]
struct Shown<R: Row> {
    phones: BTreeMap<DeviceId, Phone<R>>,
    listed_at: Option<Timestamp>,
}

impl<R: Row> Roster<R> {
    /// Opens the roster of a platform that is kept in the file at `path`. A file that is damaged is set aside, beside it, and the log says
    /// so: then ids are given as if no phone had been seen before.
    ///
    /// # Errors
    /// The file cannot be read, or be set aside.
    pub fn open(path: &Path, name: PlatformName, clock: Clock) -> io::Result<Self> {
        let book = file::read(path, &name, clock.now())?;
        let shown = Shown { phones: book.shown(), listed_at: book.listed_at };
        Ok(Self {
            name,
            clock,
            path: path.to_owned(),
            book: Arc::new(Mutex::new(book)),
            shown: Arc::new(RwLock::new(shown)),
        })
    }

    /// Returns the name of the platform.
    #[must_use]
    pub fn name(&self) -> &PlatformName {
        &self.name
    }

    /// Shows the next phones in the order of their ids, each with its row and when the reading of that began: `limit` of them, or fewer at
    /// the end. `after` need not exist any more. A change of the roster waits for `see`.
    pub fn page<T>(&self, after: Option<&DeviceId>, limit: u16, see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        see(&mut self.shown().phones.range::<DeviceId, _>((after, Bound::Unbounded)).take(limit.into()).map(flat))
    }

    /// As [`Self::page`], the phones that there are among these ids, in the order of `ids`.
    pub fn find<T>(&self, ids: &[&str], see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let shown = self.shown();
        see(&mut ids.iter().filter_map(|id| shown.phones.get_key_value(*id)).map(flat))
    }

    /// Returns the phone of this id.
    #[must_use]
    pub fn get(&self, id: &DeviceId) -> Option<Listed<R>> {
        let shown = self.shown();
        let (row, read_at) = shown.phones.get(id)?;
        Some(Listed { id: id.clone(), row: Arc::clone(row), read_at: *read_at })
    }

    /// Returns the number of phones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shown().phones.len()
    }

    /// Whether the whole platform was ever read, by this process or an earlier one.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.shown().listed_at.is_some()
    }

    /// Returns the time since the beginning of the last reading of the whole platform; `None` if it was never read. An earlier process
    /// may have read it later than this says.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let listed_at = self.shown().listed_at?;
        Some(self.clock.now().since(listed_at))
    }

    /// Whether a list has a phone without a seat and with a new code, and lacks one that is known: then changes of codes matter.
    pub async fn is_puzzled_by(&self, rows: &[R]) -> bool {
        self.book.lock().await.is_puzzled_by(rows)
    }

    /// Drops from a list the phones without a seat and with a new code: each may be one that is known.
    pub async fn withhold_strangers(&self, rows: &mut Vec<R>) {
        let book = self.book.lock().await;
        rows.retain(|row| !book.is_stranger(row));
    }

    /// Takes over a list of the whole platform whose reading `began` then, and the platform's records of codes that changed. A phone is
    /// gone when two lists in a row do not have it. Rows that were read later stay as they are. What this does is whole even if
    /// the caller goes away.
    pub async fn take(&self, rows: Vec<R>, recoded: Vec<Recoded>, began: Timestamp) {
        self.change(move |book| {
            book.list(rows, &recoded, began);
            None
        })
        .await;
    }

    /// Takes over the row of one phone whose reading `began` then, and what was recorded of its code. As [`Self::take`], but no other
    /// phone is missed.
    pub async fn note(&self, row: R, recoded: Vec<Recoded>, began: Timestamp) {
        self.change(move |book| Some(book.merge(vec![row], &recoded, began).touched)).await;
    }

    /// Changes the book; then the file, where ids or members have changed; then what readers see: all of it, or those phones. An id that
    /// was shown is never given to another phone, even by the next process.
    async fn change(&self, work: impl FnOnce(&mut Book<R>) -> Option<Vec<usize>> + Send + 'static) {
        let mut book = Arc::clone(&self.book).lock_owned().await;
        let (path, shown) = (self.path.clone(), Arc::clone(&self.shown));
        let changed = spawn_blocking(move || {
            let touched = work(&mut book);
            if book.dirty {
                match file::write(&path, &book) {
                    Ok(()) => book.dirty = false,
                    Err(error) => tracing::error!(
                        path = %path.display(), %error,
                        "the list of a platform's phones cannot be written; if the server ends now, ids may change"
                    ),
                }
            }
            let whole = touched.is_none().then(|| book.shown());
            let mut shown = unpoisoned(shown.write());
            for (id, phone) in touched.iter().flatten().map(|slot| book.shown_at(*slot)) {
                match phone {
                    Some(phone) => drop(shown.phones.insert(id, phone)),
                    None => drop(shown.phones.remove(&id)),
                }
            }
            // The old ones are dropped after the lock.
            let old = whole.map(|phones| std::mem::replace(&mut shown.phones, phones));
            shown.listed_at = book.listed_at;
            drop(shown);
            drop(old);
        });
        if changed.await.is_err() {
            tracing::error!(platform = %self.name, "the list of a platform's phones could not be changed");
        }
    }

    fn shown(&self) -> RwLockReadGuard<'_, Shown<R>> {
        unpoisoned(self.shown.read())
    }
}

fn flat<'a, R: Row>((id, (row, read_at)): (&'a DeviceId, &'a Phone<R>)) -> (&'a DeviceId, &'a KeptRow<R>, Timestamp) {
    (id, row, *read_at)
}

#[cfg(test)]
mod tests;
