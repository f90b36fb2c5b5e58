//! The port to the other replicas: the processes that use the same store.
//!
//! A [`Membership`] shows the others that this replica lives, extends its [`Lease`], and ends those
//! that are silent. Start at [`Membership::run`].

mod membership;

pub use crate::lease::Lease;
pub use membership::{Eviction, LEASE, Membership, StoreTime};

use crate::store::Stored;
use std::fmt::{self, Debug};
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;

/// One run of a replica. Later runs have greater epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The state of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaState {
    /// It answers requests.
    #[default]
    Serving,
    /// It finishes its requests, and is about to leave.
    Draining,
    /// It has stopped as planned.
    Left,
    /// Other replicas, or a restart under its name, have ended it. Nothing that it writes lands.
    Evicted,
}

impl ReplicaState {
    /// Returns true if the replica has ended. Others adopt its tasks.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Left | Self::Evicted)
    }
}

/// The number of a beat of a run. A copy that lacks beats counts them again, in a later timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeatNumber {
    /// The timeline of the store. Each failover has a later one.
    pub timeline: u64,
    /// The number of beats of the run so far.
    pub number: u64,
}

/// A replica, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaRow {
    /// The run.
    pub epoch: Epoch,
    /// Its name. The next run of the replica has the same one.
    pub name: String,
    /// The length of its lease. It may answer for that time after its latest beat.
    pub lease: Duration,
    /// Its latest beat.
    pub beat: BeatNumber,
    /// The version of the directory that is in force there.
    pub seen: u64,
    /// True if an operator has asked it to stop.
    pub is_asked_to_leave: bool,
    /// Its state.
    pub state: ReplicaState,
    /// The time of the store minus that of the replica, in milliseconds, at its beat before the
    /// latest one.
    pub off: i64,
    /// True if it has found all its writes in the store, since the store was last replaced by a
    /// copy.
    pub is_whole: bool,
}

/// The trust of replicas in their store, which a copy may have replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreTrust {
    /// Each replica has found what was acknowledged to it.
    #[default]
    Settled,
    /// A copy has replaced the store, and not every replica has looked for its writes. Nothing
    /// lands.
    Unsettled,
    /// A replica misses writes that were acknowledged to it, or a run that it has seen. Nothing
    /// lands before an operator decides. Has the reason.
    Lost(String),
}

/// The message of a replica to the others, which shows that it lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// The version of the directory that is in force.
    pub seen: u64,
    /// The state of the replica.
    pub state: ReplicaState,
    /// The time of the store minus that of the replica, in milliseconds.
    pub off: i64,
    /// The largest number of runs that an answer to this replica had. A store with fewer lacks one.
    pub runs: u64,
}

/// The answer of the store to a beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beats {
    /// The time of the store, with the correction.
    pub now: Timestamp,
    /// The correction of the clock of the store, in milliseconds.
    pub ahead: i64,
    /// The version of the directory: the number of its changes.
    pub directory: u64,
    /// The number of runs that have joined so far. Those that join a copy count once it is trusted.
    pub runs: u64,
    /// All replicas that the store knows, this one included.
    pub replicas: Vec<ReplicaRow>,
    /// The trust in the store.
    pub trust: StoreTrust,
}

/// Stores what replicas know of each other, for one of them. Joining opens such a store.
pub trait ClusterStore: Debug + Send + Sync + 'static {
    /// Returns the epoch of this process. Joining has evicted the earlier runs of its name.
    fn epoch(&self) -> Epoch;

    /// Returns the name with which this process has joined. Its next run has the same one.
    fn name(&self) -> String;

    /// Returns the length of the lease with which this process has joined.
    fn lease(&self) -> Duration;

    /// Counts the beats of this replica up, stores the message, and reads all replicas. If this
    /// replica was evicted, its state stays so.
    fn beat(&self, beat: Beat) -> Stored<'_, Beats>;

    /// Settles the trust in a store that a copy has replaced, if each living replica has found its
    /// writes. Those in `silent` need not, if the store loses nothing at a failover.
    fn settle(&self, silent: Vec<Epoch>) -> Stored<'_, ()>;

    /// Changes the correction of the clock of the store, if it is still the known one. A step of
    /// that clock is no step for replicas.
    fn correct_time(&self, known: i64, ahead: i64) -> Stored<'_, ()>;

    /// Evicts a replica if its last beat is still `beat`. No later write of that run lands. Returns
    /// true if the replica was evicted.
    fn evict(&self, epoch: Epoch, beat: BeatNumber) -> Stored<'_, bool>;

    /// Ends this run as planned. Other replicas adopt its tasks at once.
    fn leave(&self) -> Stored<'_, ()>;

    /// Forgets those of these replicas that have ended and own no task. The caller names only
    /// replicas whose authority is over, because a change waits for each replica in the store.
    fn forget_ended(&self, epochs: Vec<Epoch>) -> Stored<'_, ()>;
}

/// The other replicas, as the registry of applications and keys needs them.
pub trait Cluster: Debug + Send + Sync + 'static {
    /// Returns the lease of this replica.
    fn lease(&self) -> Lease;

    /// Returns the latest version of the directory that this replica has heard of. It only grows.
    fn directory_version(&self) -> watch::Receiver<u64>;

    /// Tells the others that this version of the directory is in force on this replica.
    fn put_in_force(&self, version: u64);

    /// Waits until this version of the directory, or a later one, is in force on each replica that
    /// may answer. Waits for ever if this replica was evicted.
    fn in_force_everywhere(&self, version: u64) -> BoxFuture<'_, ()>;
}
