//! The mutants. Each must break a promise in some world.

/// A missing safeguard, or a false claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    SendBeforePersisting,
    BlindResendOnRecovery,
    NoFencing,
    RefundInSecondTransaction,
    RefundOnFirstAbsent,
    NoTargetLock,
    NoSendNotAfter,
    CheckThenInsert,
    LockReleasedEarly,
    /// Claims that a reading proves absence, even if it does not.
    BelieveEachAbsence,
    /// Claims that a reading proves presence, even if it does not.
    BelieveEachPresence,
    /// Claims that a target can be read, even if it cannot.
    HopeToSee,
    /// Repeats the first answer about provable directions for the whole task.
    AskOnce,
    /// Reports an operation whose outcome is lost as pending.
    WaitForTheLost,
    /// Claims that a target is served, even if it no longer is.
    HopeForReturn,
    /// Compares a reading with a baseline that was never taken.
    InventBaseline,
    /// Takes each recent change for the effect of a request that was sent without a baseline.
    BelieveEachYouth,
    /// Sends at any time, and without asking the store.
    NoGate,
    /// Sends in time, and without asking the store.
    SendWithoutAsking,
    /// Asks the store before it connects.
    AskBeforeConnecting,
    /// Believes the first answer of the store for ever.
    ConfirmationForEver,
    /// Writes steps of a run that has ended.
    NoOwnerInFence,
    /// Recovers an adopted send without any wait.
    AdoptAtOnce,
    /// Waits for an adopted send by the times of the former owner.
    QuiesceByOwnersClock,
    /// Sends an adopted task again that was being sent.
    AdopterRepeats,
    /// Does not drive a task whose adoption was not answered.
    AdoptionOnce,
    /// Gives an acceptance up that may still land.
    AcceptanceGivenUp,
    /// Sends an acceptance again under another number if its answer is lost.
    BatchUnderNewNumber,
    /// Knows the keys in flight of one replica alone.
    DuplicatesPerReplica,
    /// Knows the targets in use of one replica alone.
    TargetLockPerReplica,
    /// Knows the nonces of one replica alone.
    NoncesPerReplica,
    /// Reads the cool-down of a target before it waits for the lock.
    CoolDownOfBefore,
    /// Learns of the ends of tasks by notices alone, which are lost.
    NoticesAlone,
    /// Evicts replicas that are silent by the clock of the store.
    EvictByStoreClock,
    /// Does not wait until others have put a revocation in force.
    RevocationUnconfirmed,
    /// Ends a lease by a timer, which stands still with the process.
    LeaseByTimer,
    /// Believes a store that has forgotten acknowledged writes.
    BelieveForgetfulStore,
    /// Believes a store that lacks a run, which was seen before.
    BelieveStoreWithoutRuns,
    /// Takes a beat that a copy of the store has counted again for the former one.
    BeatsWithoutTimeline,
}

/// The mutants of one process.
pub(super) const OF_ONE: [Mutant; 17] = [
    Mutant::SendBeforePersisting,
    Mutant::BlindResendOnRecovery,
    Mutant::NoFencing,
    Mutant::RefundInSecondTransaction,
    Mutant::RefundOnFirstAbsent,
    Mutant::NoTargetLock,
    Mutant::NoSendNotAfter,
    Mutant::CheckThenInsert,
    Mutant::LockReleasedEarly,
    Mutant::BelieveEachAbsence,
    Mutant::BelieveEachPresence,
    Mutant::HopeToSee,
    Mutant::AskOnce,
    Mutant::WaitForTheLost,
    Mutant::HopeForReturn,
    Mutant::InventBaseline,
    Mutant::BelieveEachYouth,
];

/// The mutants of replicas, each with a world that it is likely to break.
pub(super) const OF_REPLICAS: [(Mutant, u64); 22] = [
    (Mutant::NoGate, 192),
    (Mutant::SendWithoutAsking, 2502),
    (Mutant::AskBeforeConnecting, 2711),
    (Mutant::ConfirmationForEver, 972),
    (Mutant::NoOwnerInFence, 10),
    (Mutant::AdoptAtOnce, 15),
    (Mutant::QuiesceByOwnersClock, 30),
    (Mutant::AdopterRepeats, 15),
    (Mutant::AdoptionOnce, 118),
    (Mutant::AcceptanceGivenUp, 139),
    (Mutant::BatchUnderNewNumber, 0),
    (Mutant::DuplicatesPerReplica, 7),
    (Mutant::TargetLockPerReplica, 2),
    (Mutant::NoncesPerReplica, 56),
    (Mutant::CoolDownOfBefore, 14),
    (Mutant::NoticesAlone, 5),
    (Mutant::EvictByStoreClock, 686),
    (Mutant::RevocationUnconfirmed, 4),
    (Mutant::LeaseByTimer, 8),
    (Mutant::BelieveForgetfulStore, 100),
    (Mutant::BelieveStoreWithoutRuns, 409),
    (Mutant::BeatsWithoutTimeline, 2133),
];
