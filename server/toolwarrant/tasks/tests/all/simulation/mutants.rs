//! The mutants. Each must break a promise in the world that is known to catch it.

use super::{Outcome, first_violation, live, pair};

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
    BelieveEachAbsence,
    BelieveEachPresence,
    HopeToSee,
    /// Repeats the first answer about provable directions for the whole task.
    AskOnce,
    /// Reports an operation whose outcome is lost as pending.
    WaitForTheLost,
    HopeForReturn,
    InventBaseline,
    /// Takes each recent change for the effect of a request that was sent without a baseline.
    BelieveEachYouth,
    NoGate,
    SendWithoutLease,
    ConfirmBeforeConnecting,
    /// Ends a lease by a timer, which stands still with the process.
    LeaseByTimer,
    /// Extends a lease from the moment at which a beat was answered.
    LeaseFromAnswer,
    AnswerWithoutLease,
    /// Leads as soon as the session lock is free.
    TakeOverAtOnce,
    /// Waits for a send of the former leader by the times that its clock has made.
    QuiesceByOwnersClock,
    NoFence,
    AcceptanceGivenUp,
    /// Takes reads that were signed before the start.
    BelieveEachRead,
    /// Takes reads that were signed right after the start by its own clock alone.
    NoncesOfOneClock,
    /// Ends a cool-down by the clock of the machine that began it.
    CoolDownOfOneClock,
    UnstoredRevocation,
}

/// With the seed of a world that catches each.
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
    (Mutant::NoncesOfOneClock, 1498),
    (Mutant::CoolDownOfOneClock, 1064),
    (Mutant::UnstoredRevocation, 94),
];

type Live = fn(u64, Option<Mutant>, bool) -> Outcome;

const SEARCHED: u64 = 10_000;

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
