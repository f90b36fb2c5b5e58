//! The device registry of one platform: its phones in the order of our ids, in memory and in a
//! file.
//!
//! An id is assigned once. It stays with its phone even if the platform renames the phone, and it
//! never leads to another phone ([`book`] has the rules). Reads never wait for the platform or for
//! the disk. The adapter interprets a row; [`refresh`] decides when to read the platform. Start at
//! [`DeviceRegistry`].

mod book;
mod file;
pub mod refresh;
mod row;

pub use row::{KeptRow, Recoded, Row, SHOWN_FOR, is_current};

use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use book::Book;
use row::ListedPhone;
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};
use toolwarrant::base::ignore_poison;
use toolwarrant::files::{ServiceFile, ServiceFiles};
use toolwarrant::{Clock, Timestamp};

/// A phone of a device registry.
#[derive(Debug)]
pub struct Listed<R: Row> {
    /// The phone's id.
    pub id: DeviceId,
    /// The row that the platform returned for it.
    pub row: Arc<KeptRow<R>>,
    /// The time when the reading of the row began. A row that an earlier process read is never
    /// current.
    pub read_at: Timestamp,
}

/// The phones of one platform.
#[derive(Debug)]
pub struct DeviceRegistry<R: Row> {
    name: PlatformName,
    clock: Clock,
    /// Changes wait here for each other, and for the file if ids change.
    stored: Arc<Mutex<StoredBook<R>>>,
    /// The phones that the book shows. Locked for as long as it takes to show a page.
    shown: Arc<RwLock<RegistryView<R>>>,
}

/// The book of a device registry, and its file.
#[derive(Debug)]
struct StoredBook<R: Row> {
    book: Book<R>,
    file: ServiceFile,
}

/// An iterator over phones of a device registry: id, row, and the time when the reading of the row
/// began.
pub type KnownPhones<'a, R> = &'a mut dyn Iterator<Item = (&'a DeviceId, &'a KeptRow<R>, Timestamp)>;

/// The part of a device registry that readers see.
#[derive(Debug)]
struct RegistryView<R: Row> {
    phones: BTreeMap<DeviceId, ListedPhone<R>>,
    listed_at: Option<Timestamp>,
}

impl<R: Row> DeviceRegistry<R> {
    /// Opens the device registry of a platform from the file of that name. A damaged file is kept
    /// under another name, and the log says so. Ids are then assigned as if no phone had been seen
    /// before.
    ///
    /// # Errors
    /// The file cannot be read, or cannot be renamed.
    pub fn open(files: &ServiceFiles, file: &str, name: PlatformName, clock: Clock) -> io::Result<Self> {
        let (file, book) = file::open(files, file, &name, clock.now())?;
        let shown = RegistryView { phones: book.visible_phones(), listed_at: book.listed_at };
        let stored = Arc::new(Mutex::new(StoredBook { book, file }));
        Ok(Self { name, clock, stored, shown: Arc::new(RwLock::new(shown)) })
    }

    /// Returns the name of the platform.
    #[must_use]
    pub fn name(&self) -> &PlatformName {
        &self.name
    }

    /// Shows the next phones in the order of their ids: `limit` phones, or fewer at the end. Each
    /// comes with its row and the time when the reading of the row began. The phone `after` may
    /// have disappeared. Changes of the registry wait for `see`.
    pub fn page<T>(&self, after: Option<&DeviceId>, limit: u16, see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        see(&mut self.lock_view().phones.range::<DeviceId, _>((after, Bound::Unbounded)).take(limit.into()).map(flat))
    }

    /// Does the same as [`Self::page`] for the phones that exist among these ids, in the order of
    /// `ids`.
    pub fn find<T>(&self, ids: &[&str], see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let shown = self.lock_view();
        see(&mut ids.iter().filter_map(|id| shown.phones.get_key_value(*id)).map(flat))
    }

    /// Returns the phone of this id.
    #[must_use]
    pub fn get(&self, id: &DeviceId) -> Option<Listed<R>> {
        let shown = self.lock_view();
        let (row, read_at) = shown.phones.get(id)?;
        Some(Listed { id: id.clone(), row: Arc::clone(row), read_at: *read_at })
    }

    /// Returns the number of phones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock_view().phones.len()
    }

    /// Returns true if the whole platform was ever read, by this process or an earlier one.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.lock_view().listed_at.is_some()
    }

    /// Returns the time since the beginning of the last reading of the whole platform; `None` if it
    /// was never read. After a restart it may be too long, because an earlier process may have read
    /// the platform later.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let listed_at = self.lock_view().listed_at?;
        Some(self.clock.now().since(listed_at))
    }

    /// Returns true if a list contains a phone without a seat and with a new code, and lacks a
    /// known phone. Then changes of codes matter.
    pub async fn is_puzzled_by(&self, rows: &[R]) -> bool {
        self.stored.lock().await.book.is_puzzled_by(rows)
    }

    /// Removes from a list the phones without a seat and with a new code, because each may be a
    /// known phone.
    pub async fn withhold_strangers(&self, rows: &mut Vec<R>) {
        let stored = self.stored.lock().await;
        rows.retain(|row| !stored.book.is_stranger(row));
    }

    /// Takes over a list of the whole platform, whose reading began at `began`, and the platform's
    /// records of changed codes. A phone is gone when two lists in a row lack it. Rows that were
    /// read later stay as they are. The change completes even if the caller goes away. Returns
    /// false if the list could not be stored: then it is not shown.
    pub async fn take(&self, rows: Vec<R>, recoded: Vec<Recoded>, began: Timestamp) -> bool {
        self.change(move |book| {
            book.list(rows, &recoded, began);
            None
        })
        .await
    }

    /// Takes over the row of one phone, whose reading began at `began`, and the records about its
    /// code. Works like [`Self::take`], but does not count other phones as missing.
    pub async fn note(&self, row: R, recoded: Vec<Recoded>, began: Timestamp) {
        self.change(move |book| Some(book.merge(vec![row], &recoded, began).touched)).await;
    }

    /// Changes the book, then the file if ids or members have changed, and then what readers see:
    /// all phones, or those that `work` returns. An id that was shown is never assigned to another
    /// phone, even by the next process. So it is not shown if it cannot be stored where another
    /// machine reads it. On a full disk of this machine, it is.
    async fn change(&self, work: impl FnOnce(&mut Book<R>) -> Option<Vec<usize>> + Send + 'static) -> bool {
        let mut stored = Arc::clone(&self.stored).lock_owned().await;
        let shown = Arc::clone(&self.shown);
        let changed = tokio::spawn(async move {
            let work = move || {
                let touched = work(&mut stored.book);
                let content = stored.book.dirty.then(|| file::encode(&stored.book));
                (stored, touched, content)
            };
            let (mut stored, touched, content) = spawn_blocking(work).await?;
            if let Some(content) = content {
                match stored.file.replace(content).await {
                    Ok(()) => stored.book.dirty = false,
                    Err(error) => {
                        tracing::error!(
                            file = %stored.file, %error,
                            "the list of a platform's phones cannot be written; if the server ends now, ids may change"
                        );
                        if stored.file.is_in_store() {
                            return Ok(false);
                        }
                    }
                }
            }
            spawn_blocking(move || show(&stored.book, &shown, touched)).await?;
            Ok(true)
        });
        self.is_done(changed.await.flatten())
    }

    fn is_done(&self, changed: Result<bool, JoinError>) -> bool {
        changed.unwrap_or_else(|_| {
            tracing::error!(platform = %self.name, "the list of a platform's phones could not be changed");
            false
        })
    }

    fn lock_view(&self) -> RwLockReadGuard<'_, RegistryView<R>> {
        ignore_poison(self.shown.read())
    }
}

/// Shows the phones of these slots as the book has them, or all.
fn show<R: Row>(book: &Book<R>, shown: &RwLock<RegistryView<R>>, touched: Option<Vec<usize>>) {
    let whole = touched.is_none().then(|| book.visible_phones());
    let mut shown = ignore_poison(shown.write());
    for (id, phone) in touched.iter().flatten().map(|slot| book.visible_phone_at(*slot)) {
        match phone {
            Some(phone) => drop(shown.phones.insert(id, phone)),
            None => drop(shown.phones.remove(&id)),
        }
    }
    // The old phones are dropped after the lock is released.
    let old = whole.map(|phones| std::mem::replace(&mut shown.phones, phones));
    shown.listed_at = book.listed_at;
    drop(shown);
    drop(old);
}

fn flat<'a, R: Row>(
    (id, (row, read_at)): (&'a DeviceId, &'a ListedPhone<R>),
) -> (&'a DeviceId, &'a KeptRow<R>, Timestamp) {
    (id, row, *read_at)
}

#[cfg(test)]
mod tests;
