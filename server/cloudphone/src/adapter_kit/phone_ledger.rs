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

pub use knowledge::{Knowledge, OwnAddress};
pub use row::{KeptRow, Recoded, Row, SHOWN_FOR, is_current};

use crate::phones::contract::DeviceId;
use crate::phones::port::{Direction, PlatformName, Unreachable};
use assignment::{Holder, IdAssignment};
use entry::AccountEntry;
use row::ListedPhone;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
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
    /// Changes wait here for each other, and for the store.
    draft: Arc<Mutex<LedgerDraft<R>>>,
    /// Readers hold it while a page is shown.
    shown: Arc<RwLock<LedgerView<R>>>,
}

#[derive(Debug)]
struct LedgerDraft<R: Row> {
    phones: IdAssignment<R>,
    account: Knowledge,
    is_account_stored: bool,
    store: Arc<dyn FileStore>,
}

pub type KnownPhones<'a, R> = &'a mut dyn Iterator<Item = (&'a DeviceId, &'a KeptRow<R>, Timestamp)>;

#[derive(Debug)]
struct LedgerView<R: Row> {
    phones: BTreeMap<DeviceId, ListedPhone<R>>,
    listed_at: Option<Timestamp>,
    account: Knowledge,
    known: HashMap<DeviceId, Knowledge>,
}

impl<R: Row> PhoneLedger<R> {
    /// Opens a ledger. A phone whose entry is damaged keeps its id, which leads to no phone any
    /// more.
    #[must_use]
    pub fn open(files: &ServiceFiles, name: PlatformName, clock: Clock) -> Self {
        let found = entry::decode(&files.found, &name, clock.now());
        let is_account_stored = found.is_some();
        let new = || (AccountEntry::default(), IdAssignment::new(name.clone()));
        let (AccountEntry { known: account, .. }, phones) = found.unwrap_or_else(new);
        let known = phones.holders.iter().map(|holder| (holder.id.clone(), holder.known.clone())).collect();
        let phones_shown = phones.visible_phones();
        let shown = LedgerView { phones: phones_shown, listed_at: phones.listed_at, account: account.clone(), known };
        let draft = LedgerDraft { phones, account, is_account_stored, store: files.store.clone() };
        Self { name, clock, draft: Arc::new(Mutex::new(draft)), shown: Arc::new(RwLock::new(shown)) }
    }

    #[must_use]
    pub fn name(&self) -> &PlatformName {
        &self.name
    }

    /// Shows the next phones in the order of their ids. The phone `after` may have disappeared.
    /// Changes of the ledger wait for `see`.
    pub fn page<T>(&self, after: Option<&DeviceId>, limit: u16, see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        see(&mut self.lock_view().phones.range::<DeviceId, _>((after, Bound::Unbounded)).take(limit.into()).map(flat))
    }

    /// Shows the phones that exist among these ids, in their order.
    pub fn find<T>(&self, ids: &[&str], see: impl FnOnce(KnownPhones<'_, R>) -> T) -> T {
        let shown = self.lock_view();
        see(&mut ids.iter().filter_map(|id| shown.phones.get_key_value(*id)).map(flat))
    }

    #[must_use]
    pub fn get(&self, id: &DeviceId) -> Option<Listed<R>> {
        let shown = self.lock_view();
        let (row, read_at) = shown.phones.get(id)?;
        Some(Listed { id: id.clone(), row: Arc::clone(row), read_at: *read_at })
    }

    #[must_use]
    pub fn has_left(&self, id: &DeviceId) -> bool {
        let shown = self.lock_view();
        shown.known.contains_key(id) && !shown.phones.contains_key(id)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.lock_view().phones.len()
    }

    /// Returns the code and the serial of each phone that ever had a code, and the row of one that
    /// is listed. Returns nothing while the ledger changes.
    #[must_use]
    pub fn all_phones(&self) -> Vec<(String, Option<String>, Option<R>)> {
        let Ok(draft) = self.draft.try_lock() else { return Vec::new() };
        let phone = |holder: &Holder<R>| {
            let row = holder.row.as_ref().map(|row| R::clone(row));
            Some((holder.code.clone()?, holder.serial.clone(), row))
        };
        draft.phones.holders.iter().filter_map(phone).collect()
    }

    /// Returns true if the whole platform was ever read, also by an earlier process.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.lock_view().listed_at.is_some()
    }

    /// Returns the time since the last reading of the whole platform began. After a restart it may
    /// be too long, because an earlier process may have read later.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let listed_at = self.lock_view().listed_at?;
        Some(self.clock.now().since(listed_at))
    }

    /// Returns true if a list has a phone without a serial and with a new code, and lacks a known
    /// phone. Only then do changes of codes matter.
    pub async fn needs_code_changes(&self, rows: &[R]) -> bool {
        self.draft.lock().await.phones.needs_code_changes(rows)
    }

    /// Removes the phones without a serial and with a new code, because each may be a known phone.
    pub async fn withhold_strangers(&self, rows: &mut Vec<R>) {
        let draft = self.draft.lock().await;
        rows.retain(|row| !draft.phones.is_stranger(row));
    }

    /// Takes over a list whose reading began at `began`, and records of changed codes. Rows that
    /// were read later stay. A phone whose id cannot be stored is not shown. The change completes
    /// even if the caller goes away.
    pub async fn take(&self, rows: Vec<R>, recoded: Vec<Recoded>, began: Timestamp) {
        self.change(move |phones| {
            phones.list(rows, &recoded, began);
            None
        })
        .await;
    }

    /// Takes over one row like [`Self::take`], without counting other phones as missing.
    pub async fn note(&self, row: R, recoded: Vec<Recoded>, began: Timestamp) {
        self.change(move |phones| Some(phones.merge(vec![row], &recoded, began).touched)).await;
    }

    /// Changes the assignment, then the store if ids or members have changed, then what readers
    /// see: all phones, or those that `work` returns.
    async fn change(&self, work: impl FnOnce(&mut IdAssignment<R>) -> Option<Vec<usize>> + Send + 'static) {
        let mut draft = Arc::clone(&self.draft).lock_owned().await;
        let shown = Arc::clone(&self.shown);
        let changed = tokio::spawn(async move {
            let work = move || {
                let listed_before = draft.phones.listed_at.is_some();
                let touched = work(&mut draft.phones);
                draft.is_account_stored &= listed_before == draft.phones.listed_at.is_some();
                let files = draft.encode();
                (draft, touched, files)
            };
            let (mut draft, touched, files) = spawn_blocking(work).await?;
            let touched = match (draft.store(files).await, touched) {
                (Ok(stored), Some(touched)) => Some(touched.into_iter().chain(stored).collect()),
                (Ok(_), None) => None,
                (Err(error), touched) => {
                    let platform = &draft.phones.name;
                    tracing::error!(%platform, %error, "new phones of a platform are not shown, because their ids cannot be stored");
                    touched
                }
            };
            spawn_blocking(move || draft.show(&shown, touched)).await
        });
        if changed.await.flatten().is_err() {
            tracing::error!(platform = %self.name, "the list of a platform's phones could not be changed");
        }
    }

    #[must_use]
    pub fn is_proven(&self, id: Option<&DeviceId>, direction: Direction, identity: &str) -> bool {
        self.lock_view().find_knowledge(id).is_some_and(|known| known.proof(direction) == Some(identity))
    }

    #[must_use]
    pub fn own_address(&self, id: &DeviceId) -> Option<OwnAddress> {
        self.lock_view().find_knowledge(Some(id))?.own_address
    }

    /// Returns true if `is_so` holds for any phone that was ever shown. A phone that is gone has no
    /// row.
    pub fn any(&self, is_so: impl Fn(&DeviceId, &Knowledge, Option<&R>) -> bool) -> bool {
        let shown = self.lock_view();
        let row = |id| shown.phones.get(id).map(|(row, _)| &***row);
        shown.known.iter().any(|(id, known)| is_so(id, known, row(id)))
    }

    pub fn first_without_address<K: Ord>(&self, rank: impl Fn(&DeviceId, &R) -> Option<K>) -> Option<DeviceId> {
        let shown = self.lock_view();
        let is_unread = |id: &DeviceId| shown.known.get(id).is_some_and(|known| known.own_address.is_none());
        let unread = shown.phones.iter().filter(|(id, _)| is_unread(id));
        let ranked = unread.filter_map(|(id, (row, _))| Some((rank(id, row)?, id)));
        ranked.min_by(|(one, _), (another, _)| one.cmp(another)).map(|(_, id)| id.clone())
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
        let (id, shown) = (id.cloned(), Arc::clone(&self.shown));
        let mut draft = Arc::clone(&self.draft).lock_owned().await;
        let learned = tokio::spawn(async move {
            let slot = id.as_ref().map(|id| draft.phones.slot_of(id).ok_or("no phone has this id")).transpose()?;
            let known = draft.knowledge_mut(slot);
            let before = known.clone();
            edit(known);
            let known = known.clone();
            if known == before {
                return Ok(());
            }
            draft.is_account_stored &= slot.is_some();
            draft.phones.dirty.extend(slot);
            let files = draft.encode();
            if let Err(error) = draft.store(files).await {
                *draft.knowledge_mut(slot) = before;
                return Err(error.to_string());
            }
            let mut shown = ignore_poison(shown.write());
            match id {
                Some(id) => drop(shown.known.insert(id, known)),
                None => shown.account = known,
            }
            Ok(())
        });
        learned.await.map_err(|error| error.to_string()).flatten().map_err(|why| Unreachable(why.into()))
    }

    fn lock_view(&self) -> RwLockReadGuard<'_, LedgerView<R>> {
        ignore_poison(self.shown.read())
    }
}

impl<R: Row> LedgerView<R> {
    fn find_knowledge(&self, id: Option<&DeviceId>) -> Option<&Knowledge> {
        id.map_or(Some(&self.account), |id| self.known.get(id))
    }
}

impl<R: Row> LedgerDraft<R> {
    fn knowledge_mut(&mut self, slot: Option<usize>) -> &mut Knowledge {
        slot.map_or(&mut self.account, |slot| &mut self.phones.holders[slot].known)
    }

    fn encode(&self) -> Vec<(String, Vec<u8>)> {
        if self.is_account_stored && self.phones.dirty.is_empty() {
            return Vec::new();
        }
        entry::encode(&AccountEntry { listed_at: self.phones.listed_at, known: self.account.clone() }, &self.phones)
    }

    async fn store(&mut self, entries: Vec<(String, Vec<u8>)>) -> Result<BTreeSet<usize>, StoreError> {
        if entries.is_empty() {
            return Ok(BTreeSet::new());
        }
        self.store.put_files(entries).await?;
        self.is_account_stored = true;
        let stored = mem::take(&mut self.phones.dirty);
        stored.iter().for_each(|slot| self.phones.holders[*slot].is_stored = true);
        Ok(stored)
    }

    fn show(&self, shown: &RwLock<LedgerView<R>>, touched: Option<Vec<usize>>) {
        let whole = touched.is_none().then(|| self.phones.visible_phones());
        let new: Vec<_> = {
            let known = &ignore_poison(shown.read()).known;
            whole.iter().flat_map(BTreeMap::keys).filter(|id| !known.contains_key(*id)).cloned().collect()
        };
        let mut shown = ignore_poison(shown.write());
        for (id, phone) in touched.iter().flatten().map(|slot| self.phones.visible_phone_at(*slot)) {
            match phone {
                Some(phone) => {
                    shown.known.entry(id.clone()).or_default();
                    shown.phones.insert(id, phone);
                }
                None => drop(shown.phones.remove(&id)),
            }
        }
        shown.known.extend(new.into_iter().map(|id| (id, Knowledge::default())));
        // The old phones are dropped after the lock is released.
        let old = whole.map(|phones| mem::replace(&mut shown.phones, phones));
        shown.listed_at = self.phones.listed_at;
        drop(shown);
        drop(old);
    }
}

fn flat<'a, R: Row>(
    (id, (row, read_at)): (&'a DeviceId, &'a ListedPhone<R>),
) -> (&'a DeviceId, &'a KeptRow<R>, Timestamp) {
    (id, row, *read_at)
}

#[cfg(test)]
pub(super) mod tests;
