//! The mutants. Each must break a promise in the world that is known to catch it.

use super::{Outcome, first_violation, live, pair};

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
    /// Sends at any time, without confirmation.
    NoGate,
    /// Sends in time, whether or not the lease stands.
    SendWithoutLease,
    /// Looks at the lease before it connects.
    ConfirmBeforeConnecting,
    /// Ends a lease by a timer, which stands still with the process.
    LeaseByTimer,
    /// Extends a lease from the moment at which a beat was answered.
    LeaseFromAnswer,
    /// Answers whether or not the lease stands.
    AnswerWithoutLease,
    /// Leads as soon as the session lock is free.
    TakeOverAtOnce,
    /// Waits for a send of the former leader by the times that its clock has made.
    QuiesceByOwnersClock,
    /// Lets a former leader write.
    NoFence,
    /// Gives an acceptance up that may still land.
    AcceptanceGivenUp,
    /// Takes reads that were signed before the start.
    BelieveEachRead,
    /// Takes reads that were signed right after the start by its own clock alone.
    NoncesOfOneClock,
    /// Ends a cool-down by the clock of the machine that began it.
    CoolDownOfOneClock,
    /// Confirms a revocation that is not stored.
    UnstoredRevocation,
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

/// The mutants of two processes, each with the seed of a world that catches it.
const OF_TWO: [(Mutant, u64); 15] = [
    (Mutant::NoGate, 76),
    (Mutant::SendWithoutLease, 76),
    (Mutant::ConfirmBeforeConnecting, 76),
    (Mutant::LeaseByTimer, 6),
    (Mutant::LeaseFromAnswer, 256),
    (Mutant::AnswerWithoutLease, 2),
    (Mutant::TakeOverAtOnce, 27),
    (Mutant::QuiesceByOwnersClock, 89),
    (Mutant::BlindResendOnRecovery, 6),
    (Mutant::NoFence, 578),
    (Mutant::AcceptanceGivenUp, 6694),
    (Mutant::BelieveEachRead, 6),
    (Mutant::NoncesOfOneClock, 7762),
    (Mutant::CoolDownOfOneClock, 1064),
    (Mutant::UnstoredRevocation, 2),
];

/// Runs the world of a seed, which may be one of two processes.
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
fn every_mutant_of_two_processes_is_caught() {
    assert_caught(&OF_TWO, pair::live);
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
    all(&OF_TWO, pair::live);
}
