//! The guard on a manual clock.

use super::circuit::{DENIED, FAILURES, SILENT};
use super::pace::PAUSE_MAX;
use super::{CallCounts, CallEnd, Class, Guard, GuardLimits, PATIENCE, Withheld};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use toolwarrant::{Clock, Timestamp};

const LIMITS: GuardLimits = GuardLimits { concurrent: 4, per_second: 50, per_minute: 1_000 };
const LONG: Duration = Duration::from_mins(10);

fn guard(limits: GuardLimits) -> (Arc<Guard>, Clock) {
    let clock = Clock::manual(Timestamp(1_000_000));
    (Arc::new(Guard::new(limits, clock.clone())), clock)
}

async fn call(guard: &Guard, clock: &Clock, class: Class, end: CallEnd) -> Result<(), Withheld> {
    guard.admit(class, clock.now().plus(LONG)).await.map(|pass| pass.end(end))
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test]
async fn failures_in_a_row_open_the_circuit_and_one_read_at_a_time_tests_the_platform() {
    let (guard, clock) = guard(LIMITS);
    // An answer between them ends a row of failures, even if it is a refusal.
    for end in [CallEnd::Failed, CallEnd::Answered, CallEnd::Failed] {
        for _ in 1..FAILURES {
            call(&guard, &clock, Class::Read, end).await.expect("closed");
        }
    }
    assert_eq!(guard.would_refuse(), None);
    call(&guard, &clock, Class::Write, CallEnd::Failed).await.expect("closed");
    let [mut pause, _, longest] = SILENT;
    for _ in 0..6 {
        let until = clock.now().plus(pause);
        for class in [Class::Write, Class::Read] {
            assert_eq!(call(&guard, &clock, class, CallEnd::Answered).await, Err(Withheld::Unreachable(until)));
        }
        assert_eq!(guard.would_refuse(), Some(Withheld::Unreachable(until)));
        clock.advance(pause);
        // A write is never a trial.
        assert!(call(&guard, &clock, Class::Write, CallEnd::Answered).await.is_err());
        let trial = guard.admit(Class::Read, clock.now().plus(LONG)).await.expect("a trial");
        assert!(call(&guard, &clock, Class::Read, CallEnd::Answered).await.is_err(), "one at a time");
        trial.end(CallEnd::Failed);
        pause = (pause * 2).min(longest);
    }
    assert_eq!(pause, longest);
    clock.advance(longest);
    // A call that was given up is not conclusive, and the next one tries.
    drop(guard.admit(Class::Read, clock.now().plus(LONG)).await.expect("a trial"));
    assert!(guard.would_refuse().is_some());
    call(&guard, &clock, Class::Read, CallEnd::Answered).await.expect("a trial");
    assert_eq!(guard.would_refuse(), None);
    call(&guard, &clock, Class::Write, CallEnd::Answered).await.expect("closed");
}

#[tokio::test]
async fn refused_credentials_open_the_circuit_at_once_and_for_long_once_a_read_has_confirmed_it() {
    let (guard, clock) = guard(LIMITS);
    let early = guard.admit(Class::Read, clock.now().plus(LONG)).await.expect("closed");
    call(&guard, &clock, Class::Read, CallEnd::Denied).await.expect("closed");
    // Such a call is no evidence about credentials that were refused since.
    early.end(CallEnd::Answered);
    let [first, confirmed, longest] = DENIED;
    for pause in [first, confirmed, confirmed * 2, longest, longest] {
        let until = clock.now().plus(pause);
        assert_eq!(guard.would_refuse(), Some(Withheld::Denied(until)));
        clock.advance(pause - Duration::from_millis(1));
        assert!(call(&guard, &clock, Class::Read, CallEnd::Answered).await.is_err());
        clock.advance(Duration::from_millis(1));
        call(&guard, &clock, Class::Read, CallEnd::Denied).await.expect("a trial");
    }
    let counts = guard.observe().calls;
    assert_eq!((counts.denied, counts.answered, counts.withheld), (6, 1, 5));
}

#[tokio::test]
async fn a_refusal_of_the_credentials_that_no_read_confirms_ends_after_seconds() {
    let (guard, clock) = guard(LIMITS);
    let [first, ..] = DENIED;
    call(&guard, &clock, Class::Write, CallEnd::Denied).await.expect("closed");
    // A call without an answer confirms nothing.
    for _ in 0..3 {
        clock.advance(first);
        call(&guard, &clock, Class::Read, CallEnd::Failed).await.expect("a trial");
        assert_eq!(guard.would_refuse(), Some(Withheld::Denied(clock.now().plus(first))));
    }
    clock.advance(first);
    call(&guard, &clock, Class::Read, CallEnd::Answered).await.expect("a trial");
    assert_eq!(guard.would_refuse(), None);
}

#[tokio::test]
async fn an_operator_can_have_a_platform_tested_in_a_pause() {
    for end in [CallEnd::Denied, CallEnd::Failed] {
        let (guard, clock) = guard(LIMITS);
        while guard.would_refuse().is_none() {
            call(&guard, &clock, Class::Read, end).await.expect("closed");
        }
        for (end, is_closed) in [(end, false), (CallEnd::Answered, true)] {
            assert!(call(&guard, &clock, Class::Read, CallEnd::Answered).await.is_err());
            guard.urge_trial();
            assert!(call(&guard, &clock, Class::Write, CallEnd::Answered).await.is_err(), "a write is no trial");
            call(&guard, &clock, Class::Read, end).await.expect("a trial");
            assert_eq!(guard.would_refuse().is_none(), is_closed, "{end:?}");
        }
    }
}

#[tokio::test]
async fn a_pause_that_the_platform_asks_for_is_kept_and_capped() {
    for (asked, kept) in [
        (Some(Duration::from_secs(7)), Duration::from_secs(7)),
        (Some(Duration::from_hours(9)), PAUSE_MAX),
        (Some(Duration::ZERO), Duration::from_secs(1)),
        (None, Duration::from_secs(5)),
    ] {
        let (guard, clock) = guard(LIMITS);
        call(&guard, &clock, Class::Read, CallEnd::Limited(asked)).await.expect("no pause yet");
        let until = clock.now().plus(kept);
        let soon = clock.now().plus(kept - Duration::from_millis(1));
        assert_eq!(guard.admit(Class::Read, soon).await.map(drop), Err(Withheld::Paused(until)), "{asked:?}");
        assert_eq!(guard.would_refuse(), (kept > PATIENCE).then_some(Withheld::Paused(until)), "{asked:?}");
        let hold = || {
            let (guard, clock) = (guard.clone(), clock.clone());
            tokio::spawn(async move {
                let pass = guard.admit(Class::Write, clock.now().plus(LONG)).await;
                let started = clock.now();
                clock.sleep_until(started.plus(LONG)).await;
                pass.map(|_| started)
            })
        };
        let waiting = [hold(), hold()];
        settle().await;
        clock.advance(kept - Duration::from_millis(1));
        settle().await;
        assert_eq!(guard.observe().waiting, 2, "{asked:?}");
        clock.advance(Duration::from_millis(1));
        settle().await;
        assert_eq!(guard.observe().waiting, 0, "{asked:?}");
        clock.advance(LONG);
        for call in waiting {
            assert_eq!(call.await.expect("a task"), Ok(until));
        }
    }
}

#[tokio::test]
async fn a_tenth_of_the_calls_pays_for_retries() {
    let (guard, clock) = guard(LIMITS);
    let retries = || std::iter::from_fn(|| guard.may_retry().then_some(())).count();
    assert_eq!(retries(), 5);
    for (calls, paid) in [(9, 0), (1, 1), (35, 3), (400, 10)] {
        for _ in 0..calls {
            clock.advance(Duration::from_millis(60));
            call(&guard, &clock, Class::Read, CallEnd::Answered).await.expect("closed");
        }
        assert_eq!(retries(), paid, "of {calls} calls");
    }
    assert_eq!(guard.observe().calls.retried, 19);
}

#[tokio::test]
async fn a_call_that_gives_up_leaves_the_line_and_too_many_are_refused() {
    let (guard, clock) = guard(GuardLimits { concurrent: 1, ..LIMITS });
    let pass = guard.admit(Class::Read, clock.now().plus(LONG)).await.expect("a turn");
    let mut waiting: Vec<JoinHandle<_>> = Vec::new();
    for _ in 0..256 {
        let (guard, clock) = (guard.clone(), clock.clone());
        waiting.push(tokio::spawn(async move { call(&guard, &clock, Class::Read, CallEnd::Answered).await }));
    }
    settle().await;
    assert_eq!(guard.observe().waiting, 256);
    assert_eq!(call(&guard, &clock, Class::Read, CallEnd::Answered).await, Err(Withheld::Crowded));
    assert_eq!(guard.would_refuse(), Some(Withheld::Crowded));
    let first = waiting.remove(0);
    first.abort();
    let _ = first.await;
    assert_eq!((guard.observe().waiting, guard.would_refuse()), (255, None));
    drop(pass);
    for call in waiting {
        while !call.is_finished() {
            settle().await;
            clock.advance(Duration::from_millis(100));
        }
        assert_eq!(call.await.expect("a task"), Ok(()));
    }
    let CallCounts { answered, abandoned, withheld, .. } = guard.observe().calls;
    assert_eq!((answered, abandoned, withheld), (255, 1, 1));
}

/// Pause before the call, class, length, and longest wait, in milliseconds.
type Planned = (u64, Class, u64, u64);

fn plans() -> impl Strategy<Value = Planned> {
    let class = prop_oneof![Just(Class::Write), Just(Class::Read)];
    (0..600_u64, class, 0..3_000_u64, prop_oneof![500..5_000_u64, Just(600_000)])
}

/// Class, arrival, start, and the end or the moment of giving up.
type Run = (Class, Timestamp, Option<Timestamp>, Timestamp);

async fn run(limits: GuardLimits, calls: Vec<Planned>) -> Vec<Run> {
    const STEP: u64 = 50;
    let (guard, clock) = guard(limits);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    let mut calls = calls.into_iter().scan(0, |at, (gap, class, length, patience)| {
        *at += gap;
        Some((*at, class, length, patience))
    });
    let mut next = calls.next();
    let began = clock.now();
    for step in 0..20_000 {
        while let Some((at, class, length, patience)) = next.filter(|call| call.0 <= step * STEP) {
            let (guard, clock, runs) = (guard.clone(), clock.clone(), runs.clone());
            let came = began.plus(Duration::from_millis(at));
            tasks.push(tokio::spawn(async move {
                let pass = guard.admit(class, clock.now().plus(Duration::from_millis(patience))).await;
                let started = pass.is_ok().then(|| clock.now());
                if let Ok(pass) = pass {
                    clock.sleep_until(clock.now().plus(Duration::from_millis(length))).await;
                    pass.end(CallEnd::Answered);
                }
                runs.lock().unwrap().push((class, came, started, clock.now()));
            }));
            next = calls.next();
        }
        // At most a few calls start or end at a moment.
        for _ in 0..20 {
            yield_now().await;
        }
        if next.is_none() && tasks.iter().all(JoinHandle::is_finished) {
            break;
        }
        clock.advance(Duration::from_millis(STEP));
    }
    assert!(tasks.iter().all(JoinHandle::is_finished), "somebody waits for ever");
    assert_eq!(guard.observe().waiting, 0);
    assert_eq!(guard.places.available_permits(), limits.concurrent as usize);
    std::mem::take(&mut *runs.lock().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_window_and_no_moment_has_more_calls_than_the_limits_and_nobody_waits_for_ever(
        (concurrent, per_second, per_minute) in (1..4_u32, 1..4_u32, 5..40_u32),
        calls in vec(plans(), 1..60),
    ) {
        let limits = GuardLimits { concurrent, per_second, per_minute };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let runs = runtime.block_on(run(limits, calls.clone()));
        prop_assert_eq!(runs.len(), calls.len());
        let mut starts: Vec<Timestamp> = runs.iter().filter_map(|run| run.2).collect();
        starts.sort_unstable();
        for (most, span) in [(per_second, Duration::from_secs(1)), (per_minute, Duration::from_mins(1))] {
            for window in starts.windows(most as usize + 1) {
                prop_assert!(window[most as usize].since(window[0]) >= span, "{most} in {span:?}: {window:?}");
            }
        }
        let mut came: Vec<_> = runs.iter().filter_map(|(_, came, started, _)| Some((*came, (*started)?))).collect();
        came.sort_unstable();
        prop_assert!(came.is_sorted_by_key(|(_, started)| *started), "no call is passed over: {came:?}");
        let mut changes = BTreeMap::<Timestamp, (u32, u32)>::new();
        for (_, _, started, ended) in &runs {
            if let Some(started) = started {
                changes.entry(*started).or_default().0 += 1;
                changes.entry(*ended).or_default().1 += 1;
            }
        }
        let mut running = 0;
        for (at, (begun, ended)) in changes {
            // Calls that begin and end at the same moment ran in some order.
            running = (running + begun).checked_sub(ended).expect("ends follow starts");
            prop_assert!(running <= concurrent, "{running} at {at}");
        }
    }
}
