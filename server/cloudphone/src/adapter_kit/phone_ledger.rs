//! The ledger of one account: what is known of its phones, in memory and in the store.
//!
//! An id is assigned once. It stays with its phone even if the platform renames the phone, and it
//! never leads to another phone ([`assignment`] has the rules). Reads never wait for the platform
//! or the store. [`refresh`] decides when to read the platform. Start at [`PhoneLedger`].

mod assignment;
mod entry;
mod knowledge;
pub mod refresh;
mod row;

pub use knowledge::{Knowledge, LastReading, OwnAddress};
pub use row::{KeptRow, Row, SHOWN_FOR, is_current};

use crate::phones::contract::DeviceId;
use crate::phones::port::{Direction, PlatformName, Unreachable};
use assignment::{AccountPhones, Holder};
use std::ops::Bound;
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use toolwarrant::base::ignore_poison;
use toolwarrant::files::{FileStore, ServiceFiles, StoreError};
use toolwarrant::{Clock, Timestamp};

#[derive(Debug)]
pub struct Listed<R: Row> {
    pub id: DeviceId,
    pub row: Arc<KeptRow<R>>,
    /// The time when the reading began. A row from an earlier process is never current.
    pub read_at: Timestamp,
}

#[derive(Debug)]
pub struct PhoneLedger<R: Row> {
    name: PlatformName,
    clock: Clock,
    store: Arc<dyn FileStore>,
    /// Changes wait here for each other, and for the store.
    turn: Arc<Mutex<()>>,
    /// Readers hold it while a page is shown.
    phones: Arc<RwLock<AccountPhones<R>>>,
}

pub type KnownPhones<'a, R> = &'a mut dyn Iterator<Item = (&'a DeviceId, &'a KeptRow<R>, Timestamp)>;

impl<R: Row> PhoneLedger<R> {
    /// Opens a ledger. A phone whose entry is damaged keeps its id, which leads to no phone any
    /// more.
    #[must_use]
    pub fn open(files: &ServiceFiles, name: PlatformName, clock: Clock) -> Self {
        let phones = Arc::new(RwLock::new(entry::decode(&files.found, &name, clock.now())));
        Self { name, clock, store: files.store.clone(), turn: Arc::default(), phones }
    }

    /// Shows the next phones in the order of their ids. The phone `after` may have disappeared.
    /// Changes of the ledger wait for `see`.
    pub fn page<T>(&self, after: Option<&DeviceId>, limit: u16, see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let (phones, after) = (self.lock(), after.map_or(Bound::Unbounded, Bound::Excluded));
        let next = phones.by_id.range::<DeviceId, _>((after, Bound::Unbounded));
        see(&mut next.filter_map(|(_, slot)| visible(&phones.holders[*slot])).take(limit.into()))
    }

    /// Shows the phones that exist among these ids, in their order.
    pub fn find<T>(&self, ids: &[&str], see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let phones = self.lock();
        see(&mut ids.iter().filter_map(|id| visible(&phones.holders[*phones.by_id.get(*id)?])))
    }

    #[must_use]
    pub fn get(&self, id: &DeviceId) -> Option<Listed<R>> {
        let phones = self.lock();
        let holder = phones.get(id)?;
        Some(Listed { id: id.clone(), row: Arc::clone(holder.visible_row()?), read_at: holder.read_at })
    }

    #[must_use]
    pub fn has_left(&self, id: &DeviceId) -> bool {
        self.lock().get(id).is_some_and(|holder| holder.is_stored && holder.row.is_none())
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().holders.iter().filter_map(Holder::visible_row).count()
    }

    /// Returns the code and the serial of each phone that ever had a code, and the row of one that
    /// is listed.
    #[must_use]
    pub fn all_phones(&self) -> Vec<(String, Option<String>, Option<R>)> {
        let phone = |holder: &Holder<R>| {
            let row = holder.row.as_ref().map(|row| R::clone(row));
            Some((holder.code.clone()?, holder.serial.clone(), row))
        };
        self.lock().holders.iter().filter_map(phone).collect()
    }

    /// Returns true if the whole platform was ever read, also by an earlier process.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.lock().shown_at.is_some()
    }

    /// Returns the time since the last reading of the whole platform began. After a restart it may
    /// be too long, because an earlier process may have read later.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let shown_at = self.lock().shown_at?;
        Some(self.clock.now().since(shown_at))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes over a list whose reading began at `began`. Rows that were read later stay. A phone
    /// whose id cannot be stored is not shown. The change completes even if the caller goes away.
    pub async fn take(&self, rows: Vec<R>, began: Timestamp) {
        self.change(move |phones| phones.list(rows, began)).await;
    }

    /// Takes over one row like [`Self::take`], without counting other phones as missing.
    pub async fn note(&self, row: R, began: Timestamp) {
        let merge = move |phones: &mut AccountPhones<R>| {
            phones.merge(vec![row], began);
        };
        self.change(merge).await;
    }

    /// Changes the phones, and then the store, if ids or members have changed.
    async fn change(&self, work: impl FnOnce(&mut AccountPhones<R>) + Send + 'static) {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (phones, store) = (Arc::clone(&self.phones), Arc::clone(&self.store));
        let changed = tokio::spawn(async move {
            let _turn = turn;
            let changed = Arc::clone(&phones);
            let entries = spawn_blocking(move || {
                let mut phones = ignore_poison(changed.write());
                work(&mut phones);
                drop(phones);
                let phones = ignore_poison(changed.read());
                entry::encode(&phones)
            });
            let entries = entries.await.map_err(|error| StoreError::Corrupt(error.to_string()))?;
            let stored = if entries.is_empty() { Ok(()) } else { store.put_files(entries).await };
            ignore_poison(phones.write()).show(stored.is_ok());
            stored
        });
        if let Err(error) = changed.await.unwrap_or_else(|error| Err(StoreError::Corrupt(error.to_string()))) {
            let platform = &self.name;
            tracing::error!(%platform, %error, "new phones of a platform are not shown, because their ids cannot be stored");
        }
    }

    /// Returns true if a proof was recorded under this identity, of a phone or, without an id, of
    /// the account.
    #[must_use]
    pub fn is_proven(&self, id: Option<&DeviceId>, direction: Direction, identity: &str) -> bool {
        let phones = self.lock();
        let known = id.map_or(Some(&phones.known), |id| phones.get(id).map(|holder| &holder.known));
        known.is_some_and(|known| known.proof(direction) == Some(identity))
    }

    /// Returns true if a proof was recorded under the present name of the phone.
    #[must_use]
    pub fn is_proven_on(&self, id: &DeviceId, direction: Direction) -> bool {
        self.get(id).is_some_and(|Listed { row, .. }| self.is_proven(Some(id), direction, row.name()))
    }

    #[must_use]
    pub fn own_address(&self, id: &DeviceId) -> Option<OwnAddress> {
        self.lock().get(id)?.known.own_address
    }

    #[must_use]
    pub fn last_reading(&self, id: &DeviceId) -> LastReading {
        self.lock().get(id).map(|holder| holder.last.clone()).unwrap_or_default()
    }

    pub fn note_reading(&self, id: &DeviceId, reading: LastReading) {
        if let Some(holder) = ignore_poison(self.phones.write()).get_mut(id) {
            holder.last = reading;
        }
    }

    /// Returns true if `is_so` holds for any phone that was ever shown. A phone that is gone has no
    /// row.
    pub fn any(&self, is_so: impl Fn(&DeviceId, &Knowledge, Option<&R>) -> bool) -> bool {
        let phones = self.lock();
        let mut stored = phones.holders.iter().filter(|holder| holder.is_stored);
        stored.any(|Holder { id, known, row, .. }| is_so(id, known, row.as_deref().map(|row| &**row)))
    }

    pub fn first_without_address<K: Ord>(&self, rank: impl Fn(&R, &LastReading) -> Option<K>) -> Option<DeviceId> {
        let phones = self.lock();
        let unread = phones.holders.iter().filter(|holder| holder.known.own_address.is_none());
        let ranked = unread.filter_map(|holder| Some((rank(holder.visible_row()?, &holder.last)?, &holder.id)));
        ranked.min().map(|(_, id)| id.clone())
    }

    pub async fn set_proof(
        &self,
        id: Option<&DeviceId>,
        direction: Direction,
        identity: Option<String>,
    ) -> Result<(), Unreachable> {
        self.learn(id, move |known| known.set_proof(direction, identity)).await
    }

    /// Edits durably what is known of a phone or, without an id, of the account. The change
    /// completes even if the caller goes away. One that cannot be stored does not count.
    pub async fn learn(
        &self,
        id: Option<&DeviceId>,
        edit: impl FnOnce(&mut Knowledge) + Send + 'static,
    ) -> Result<(), Unreachable> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (id, phones, store) = (id.cloned(), Arc::clone(&self.phones), Arc::clone(&self.store));
        let learned = tokio::spawn(async move {
            let _turn = turn;
            let (known, entry) = {
                let phones = ignore_poison(phones.read());
                let holder = id.as_ref().map(|id| phones.get(id).ok_or("no phone has this id")).transpose()?;
                let before = holder.map_or(&phones.known, |holder| &holder.known);
                let mut known = before.clone();
                edit(&mut known);
                if known == *before {
                    return Ok(());
                }
                let entry = match holder {
                    Some(holder) => entry::encode_phone(holder, &known),
                    None => entry::encode_account(&phones, &known),
                };
                (known, entry)
            };
            store.put_files(vec![entry]).await.map_err(|error| error.to_string())?;
            if let Some(kept) = ignore_poison(phones.write()).knowledge_mut(id.as_ref()) {
                *kept = known;
            }
            Ok(())
        });
        learned.await.map_err(|error| error.to_string()).flatten().map_err(|why: String| Unreachable(why.into()))
    }

    fn lock(&self) -> RwLockReadGuard<'_, AccountPhones<R>> {
        ignore_poison(self.phones.read())
    }
}

fn visible<R: Row>(holder: &Holder<R>) -> Option<(&DeviceId, &KeptRow<R>, Timestamp)> {
    Some((&holder.id, holder.visible_row()?, holder.read_at))
}

#[cfg(test)]
pub(super) mod tests;
