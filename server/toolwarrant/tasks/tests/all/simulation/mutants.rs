//! The mutants. Each must break a promise in the world that is known to catch it.

use super::{Outcome, cluster, first_violation, live};

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

/// The mutants of one process, each with the seed of a world that catches it.
const OF_ONE: [(Mutant, u64); 17] = [
    (Mutant::SendBeforePersisting, 2),
    (Mutant::BlindResendOnRecovery, 2),
    (Mutant::NoFencing, 112),
    (Mutant::RefundInSecondTransaction, 215),
    (Mutant::RefundOnFirstAbsent, 13),
    (Mutant::NoTargetLock, 0),
    (Mutant::NoSendNotAfter, 464),
    (Mutant::CheckThenInsert, 74),
    (Mutant::LockReleasedEarly, 6),
    (Mutant::BelieveEachAbsence, 8),
    (Mutant::BelieveEachPresence, 1),
    (Mutant::HopeToSee, 4),
    (Mutant::AskOnce, 8),
    (Mutant::WaitForTheLost, 818),
    (Mutant::HopeForReturn, 333),
    (Mutant::InventBaseline, 907),
    (Mutant::BelieveEachYouth, 3715),
];

/// The mutants of replicas, each with the seed of a world that catches it.
const OF_REPLICAS: [(Mutant, u64); 22] = [
    (Mutant::NoGate, 237),
    (Mutant::SendWithoutAsking, 695),
    (Mutant::AskBeforeConnecting, 410),
    (Mutant::ConfirmationForEver, 695),
    (Mutant::NoOwnerInFence, 110),
    (Mutant::AdoptAtOnce, 15),
    (Mutant::QuiesceByOwnersClock, 237),
    (Mutant::AdopterRepeats, 4),
    (Mutant::AdoptionOnce, 27),
    (Mutant::AcceptanceGivenUp, 328),
    (Mutant::BatchUnderNewNumber, 0),
    (Mutant::DuplicatesPerReplica, 5),
    (Mutant::TargetLockPerReplica, 2),
    (Mutant::NoncesPerReplica, 31),
    (Mutant::CoolDownOfBefore, 57),
    (Mutant::NoticesAlone, 4),
    (Mutant::EvictByStoreClock, 997),
    (Mutant::RevocationUnconfirmed, 4),
    (Mutant::LeaseByTimer, 8),
    (Mutant::BelieveForgetfulStore, 283),
    (Mutant::BelieveStoreWithoutRuns, 688),
    (Mutant::BeatsWithoutTimeline, 179),
];

/// Runs the world of a seed, which may be one of replicas.
type Live = fn(u64, Option<Mutant>, bool) -> Outcome;

/// Number of worlds in which a mutant is searched for.
const SEARCHED: u64 = 10_000;

/// Checks that each mutant breaks a promise in its world.
fn assert_caught(mutants: &[(Mutant, u64)], live: Live) {
    let lives = |(mutant, seed): &&(Mutant, u64)| live(*seed, Some(*mutant), false).violations.is_empty();
    let survivors: Vec<_> = mutants.iter().filter(lives).collect();
    assert!(
        survivors.is_empty(),
        "these mutants break no promise in their worlds: {survivors:?}. `cargo xtask drill soak --mutants` finds a world for each"
    );
}

#[test]
fn every_mutant_is_caught() {
    assert_caught(&OF_ONE, live);
}

#[test]
fn every_mutant_of_replicas_is_caught() {
    assert_caught(&OF_REPLICAS, cluster::live);
}

/// Prints the first world that catches each mutant, as a line of the tables above.
#[test]
#[ignore = "searches for minutes; `cargo xtask drill soak --mutants` runs it"]
fn each_mutant_has_a_world() {
    let all = |mutants: &[(Mutant, u64)], live: Live| {
        for (mutant, _) in mutants {
            let breaks = |seed| !live(seed, Some(*mutant), false).violations.is_empty();
            let seed = first_violation(0..SEARCHED, breaks);
            let seed = seed.unwrap_or_else(|| panic!("{mutant:?} breaks no promise in {SEARCHED} worlds"));
            println!("    (Mutant::{mutant:?}, {seed}), // {}", live(seed, Some(*mutant), false).violations[0]);
        }
    };
    all(&OF_ONE, live);
    all(&OF_REPLICAS, cluster::live);
}
