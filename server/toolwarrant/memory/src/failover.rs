//! A failover: a copy replaces the store, and may lack its latest writes.
//!
//! Each replica looks for the writes that were acknowledged to it. Nothing lands before all living
//! replicas have found theirs. If one of them misses a write, or a run that it has seen, nothing
//! lands any more.

use super::{Memory, MemoryCopy, OwnWrites, Tables, Trust};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use toolwarrant_core::cluster::{Epoch, StoreTrust};
use toolwarrant_core::store::StoreError;

impl MemoryCopy {
    /// Returns the number of writes of a run that it has.
    #[must_use]
    pub fn count_writes(&self, epoch: Epoch) -> u64 {
        self.0.trust.count_writes(epoch)
    }

    /// Returns true if it has this run, and the run has not ended in it.
    #[must_use]
    pub fn knows(&self, epoch: Epoch) -> bool {
        !self.0.has_ended(epoch)
    }
}

impl Memory {
    /// Returns a copy of the store.
    #[must_use]
    pub fn copy(&self) -> MemoryCopy {
        MemoryCopy(self.lock().clone())
    }

    /// Replaces the store by a copy, for all its processes. No replica waits for copies, so a
    /// write that was acknowledged may be missing.
    pub fn fail_over(&self, MemoryCopy(copy): MemoryCopy) {
        let mut tables = self.lock();
        let (epoch, timeline) = (tables.epoch, tables.trust.timeline + 1);
        *tables = Tables { epoch, ..copy };
        tables.trust.timeline = timeline;
        for row in &mut tables.replicas {
            (row.is_whole, row.beat.timeline) = (false, timeline);
        }
    }

    /// Returns the number of failovers, and the number of writes of this run that have landed.
    #[must_use]
    pub fn read_timeline(&self) -> (u64, u64) {
        let trust = &self.lock().trust;
        (trust.timeline, trust.count_writes(self.epoch))
    }

    /// Tells this process that that many of its writes have landed.
    pub fn acknowledge(&self, writes: u64) {
        self.own.acknowledged.fetch_max(writes, Relaxed);
    }

    /// Returns the number of writes that were acknowledged to this process.
    #[must_use]
    pub fn count_acknowledged(&self) -> u64 {
        self.own.acknowledged.load(Relaxed)
    }
}

impl OwnWrites {
    /// Returns those of a process that joins the store now.
    pub(super) fn since(trust: &Trust) -> Self {
        Self { timeline: AtomicU64::new(trust.timeline), ..Self::default() }
    }
}

impl Trust {
    fn count_writes(&self, epoch: Epoch) -> u64 {
        self.written.get(&epoch).copied().unwrap_or(0)
    }

    pub(super) fn count_write(&mut self, epoch: Epoch) {
        if epoch != Epoch::default() {
            *self.written.entry(epoch).or_default() += 1;
        }
    }

    fn is_settled(&self) -> bool {
        self.lost.is_none() && self.settled == self.timeline
    }

    fn lose(&mut self, why: &str) {
        self.lost.get_or_insert_with(|| why.to_owned());
    }

    /// Counts a run that joins. In a copy that is not trusted, it must not hide one that is
    /// missing.
    pub(super) fn count_run(&mut self) {
        self.runs += u64::from(self.settled == self.timeline);
    }

    /// # Errors
    /// No write lands at present.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let unsettled = || StoreError::Unavailable("a copy has replaced the store".to_owned());
        self.is_settled().then_some(()).ok_or_else(unsettled)
    }

    fn state(&self) -> StoreTrust {
        match &self.lost {
            Some(why) => StoreTrust::Lost(why.clone()),
            None if self.is_settled() => StoreTrust::Settled,
            None => StoreTrust::Unsettled,
        }
    }
}

impl Tables {
    /// Answers a question right before a send.
    pub(super) fn may_send(&self, epoch: Epoch, own: &OwnWrites) -> Result<bool, StoreError> {
        if self.has_ended(epoch) {
            return Ok(false);
        }
        let is_whole = self.trust.count_writes(epoch) >= own.acknowledged.load(Relaxed);
        self.trust.check()?;
        if is_whole { Ok(true) } else { Err(StoreError::Unavailable("it misses writes".to_owned())) }
    }

    /// Looks for the writes of a run, as each beat does. `seen` is the version of the directory
    /// that is in force there, and `runs` the number of runs that it has heard of.
    pub(super) fn look_for_writes(&mut self, epoch: Epoch, (seen, runs): (u64, u64), own: &OwnWrites) -> StoreTrust {
        let Self { trust, replicas, directory, .. } = self;
        let is_whole =
            trust.count_writes(epoch) >= own.acknowledged.load(Relaxed) && *directory >= seen && trust.runs >= runs;
        match replicas.iter_mut().find(|row| row.epoch == epoch) {
            Some(row) if row.state.has_ended() => {}
            Some(row) if is_whole => {
                row.is_whole = true;
                own.timeline.store(trust.timeline, Relaxed);
            }
            Some(_) => trust.lose("a replica misses writes that were acknowledged to it"),
            None if epoch == Epoch::default() || own.timeline.load(Relaxed) == trust.timeline => {}
            None => trust.lose("a replica is not known any more"),
        }
        trust.state()
    }

    /// Ends the earlier runs of a name that joins again. One of them may have been told of a lost
    /// write, and cannot look for it any more.
    pub(super) fn look_for_former(&mut self, name: &str) {
        let Self { trust, replicas, .. } = self;
        if !trust.is_settled() && replicas.iter().any(|row| row.name == name && !row.state.has_ended() && !row.is_whole)
        {
            trust.lose("a replica ended before it could look for its writes");
        }
    }

    /// Settles the trust if each living replica has found its writes.
    pub(super) fn settle(&mut self) {
        if self.replicas.iter().all(|row| row.state.has_ended() || row.is_whole) {
            self.trust.runs += u64::from(self.trust.settled != self.trust.timeline);
            self.trust.settled = self.trust.timeline;
        }
    }
}
