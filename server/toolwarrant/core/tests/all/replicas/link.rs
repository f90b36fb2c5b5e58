//! The link between a replica and the store: it is late, cut, or loses answers.

use std::sync::Mutex;
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::act::{Act, ActFilter, StoredAct};
use toolwarrant_core::cluster::{Beat, BeatNumber, Beats, ClusterStore, Epoch};
use toolwarrant_core::store::{
    ApplicationRow, DirectoryChanges, DirectoryStore, KeyRow, SecretUse, StoreError, Stored,
};
use toolwarrant_memory::Memory;

/// The state of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weather {
    #[default]
    Fair,
    /// Each request fails at once.
    Down,
    /// Requests and answers disappear.
    Silent,
    /// Requests arrive, and their answers disappear.
    Deaf,
    /// Each message is under way for [`LATE`].
    Late,
    /// Another replica changes the directory before each write.
    Crowded,
}

/// The time for which a message is under way on a late link.
pub(crate) const LATE: Duration = Duration::from_millis(700);

/// A replica of the store behind a link.
#[derive(Debug)]
pub(crate) struct StoreLink {
    memory: Memory,
    weather: Mutex<Weather>,
    random: Mutex<SplitMix>,
    /// The longest time for which a message is under way, in milliseconds.
    late: u64,
    /// The clock of the replica. The store agrees with it, but for the milliseconds next to it.
    clock: Mutex<Option<(Clock, i64)>>,
}

impl StoreLink {
    /// Joins the store under this name.
    pub(crate) fn join(store: &Memory, name: &str, seed: u64, late: u64) -> Self {
        Self::new(store.replica(name), seed, late)
    }

    /// Puts a replica of the store behind a link.
    pub(crate) fn new(memory: Memory, seed: u64, late: u64) -> Self {
        Self { memory, weather: Mutex::default(), random: Mutex::new(SplitMix(seed)), late, clock: Mutex::default() }
    }

    /// Lets the time of the store differ from this clock by that many milliseconds.
    pub(crate) fn set_time(&self, clock: &Clock, off: i64) {
        *self.clock.lock().expect("no panic") = Some((clock.clone(), off));
    }

    /// Returns the time of the store.
    fn time(&self, stored: Timestamp) -> Timestamp {
        match &*self.clock.lock().expect("no panic") {
            Some((clock, off)) => Timestamp((stored.0 + clock.now().0).saturating_add_signed(*off)),
            None => stored,
        }
    }

    pub(crate) fn set(&self, weather: Weather) {
        *self.weather.lock().expect("no panic") = weather;
    }

    pub(crate) fn weather(&self) -> Weather {
        *self.weather.lock().expect("no panic")
    }

    async fn travel(&self) {
        let late = Duration::from_millis(self.random.lock().expect("no panic").below(self.late + 1));
        let late = if self.weather() == Weather::Late { LATE } else { late };
        if !late.is_zero() {
            tokio::time::sleep(late).await;
        }
    }

    /// Carries a request to the store, and its answer back.
    async fn carry<'a, T>(&'a self, work: impl FnOnce(&'a Memory) -> Stored<'a, T>) -> Result<T, StoreError> {
        let down = || Err(StoreError::Unavailable("the link is down".to_owned()));
        self.travel().await;
        match self.weather() {
            Weather::Down => return down(),
            Weather::Silent => std::future::pending().await,
            Weather::Fair | Weather::Late | Weather::Deaf | Weather::Crowded => {}
        }
        let answer = work(&self.memory).await;
        self.travel().await;
        match self.weather() {
            Weather::Down => down(),
            Weather::Silent | Weather::Deaf => std::future::pending().await,
            Weather::Fair | Weather::Late | Weather::Crowded => answer,
        }
    }

    async fn write<'a, T>(&'a self, work: impl FnOnce(&'a Memory) -> Stored<'a, T>) -> Result<T, StoreError> {
        if self.weather() == Weather::Crowded {
            let (applications, _) = self.memory.directory().await?;
            for row in applications.into_iter().take(1) {
                self.memory.put_application(row, Vec::new(), None).await?;
            }
        }
        self.carry(work).await
    }
}

impl ClusterStore for StoreLink {
    fn epoch(&self) -> Epoch {
        self.memory.epoch()
    }

    fn name(&self) -> String {
        self.memory.name()
    }

    fn lease(&self) -> Duration {
        self.memory.lease()
    }

    fn beat(&self, beat: Beat) -> Stored<'_, Beats> {
        Box::pin(self.carry(move |memory| {
            Box::pin(async move {
                let beats = memory.beat(beat).await?;
                Ok(Beats { now: self.time(beats.now), ..beats })
            })
        }))
    }

    fn correct_time(&self, known: i64, ahead: i64) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.correct_time(known, ahead)))
    }

    fn settle(&self, silent: Vec<Epoch>) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.settle(silent)))
    }

    fn evict(&self, epoch: Epoch, beat: BeatNumber) -> Stored<'_, bool> {
        Box::pin(self.carry(move |memory| memory.evict(epoch, beat)))
    }

    fn leave(&self) -> Stored<'_, ()> {
        Box::pin(self.carry(Memory::leave))
    }

    fn forget_ended(&self, epochs: Vec<Epoch>) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.forget_ended(epochs)))
    }
}

impl DirectoryStore for StoreLink {
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        Box::pin(self.carry(Memory::directory))
    }

    fn put_application(&self, row: ApplicationRow, acts: Vec<Act>, base: Option<u64>) -> Stored<'_, Option<u64>> {
        Box::pin(self.write(move |memory| memory.put_application(row, acts, base)))
    }

    fn latest_time(&self) -> Stored<'_, Option<Timestamp>> {
        Box::pin(self.carry(Memory::latest_time))
    }

    fn see(&self, now: Timestamp) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.see(now)))
    }

    fn put_key(&self, row: KeyRow, acts: Vec<Act>, base: Option<u64>) -> Stored<'_, Option<u64>> {
        Box::pin(self.write(move |memory| memory.put_key(row, acts, base)))
    }

    fn changes(&self, after: u64) -> Stored<'_, DirectoryChanges> {
        Box::pin(self.carry(move |memory| memory.changes(after)))
    }

    fn put_uses(&self, uses: Vec<SecretUse>) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.put_uses(uses)))
    }

    fn uses(&self, keys: Option<Vec<String>>) -> Stored<'_, Vec<SecretUse>> {
        Box::pin(self.carry(move |memory| memory.uses(keys)))
    }

    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.put_acts(acts)))
    }

    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>> {
        Box::pin(self.carry(move |memory| memory.acts(filter)))
    }

    fn acts_without_line(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>> {
        Box::pin(self.carry(move |memory| memory.acts_without_line(after, limit)))
    }

    fn put_lines_of_acts(&self, numbers: Vec<u64>) -> Stored<'_, ()> {
        Box::pin(self.carry(move |memory| memory.put_lines_of_acts(numbers)))
    }
}
