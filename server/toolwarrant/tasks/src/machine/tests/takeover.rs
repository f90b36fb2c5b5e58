//! Takeover: the clocks of the former leader and of its successor, and what each time then means.

use super::*;
use toolwarrant_base::random::SplitMix;

fn by(ahead: i64, moment: Timestamp) -> Timestamp {
    Timestamp(moment.0.saturating_add_signed(ahead))
}

/// The former leader decides to send, stands still, and sends at its last moment. The successor
/// reads what it committed.
#[test]
fn a_successor_waits_until_a_send_has_arrived_by_clocks_that_differ_by_anything() {
    let day = 86_400_000;
    for seed in 0..20_000 {
        let mut random = SplitMix(seed);
        let mut ahead = || random.below(2 * day) as i64 - day as i64;
        let (former, successor) = (ahead(), ahead());
        let decided = at(1_000_000);
        let begun = step(Task::new(policy(None, false), by(former, decided)), Event::Due, by(former, decided), FACTS);
        let Some(Effect::Send(not_after)) = begun.effect else { panic!("{begun:?}") };
        let arrives = by(-former, not_after).plus(SEND_PATIENCE);
        let taken_at = decided.plus(Duration::from_millis(random.below(60_000)));
        let taken = step(begun.task, Event::TakenOver, by(successor, taken_at), FACTS);
        assert_eq!((taken.task.phase, taken.effect), (Phase::Sending, None), "seed {seed}");
        // A request that was confirmed right before the takeover may leave a little later.
        let arrives = arrives.max(taken_at.plus(SEND_WINDOW + SEND_PATIENCE));
        let found = step(taken.task.clone(), Event::Found, by(successor, taken_at), FACTS).task;
        for task in [taken.task, found] {
            let acts = by(-successor, task.wake_at.expect("a wait"));
            assert!(acts >= arrives, "seed {seed}: it acts at {acts}, and the request arrives until {arrives}");
        }
    }
}

const FACTS: Facts = Facts { dedupes: true, looks_up: true, provability: Provability::Both, gone: None };

/// The clock of the former leader is 2 s behind, so the answer came 2 s later than the task says.
#[test]
fn a_successor_counts_no_reading_before_the_effect_has_settled_by_either_clock() {
    let task = live("probe, idempotent: 0 due; 0 ok").task;
    let after = |event: Event, seconds| {
        let task = step(task.clone(), event, at(5), Facts::default()).task;
        step(task, reading(Verdict::Absent), at(seconds), Facts::default()).task.settled.absent
    };
    assert_eq!([after(Event::Due, 10), after(Event::TakenOver, 11), after(Event::TakenOver, 12)], [1, 0, 1]);
    let taken = step(task.clone(), Event::TakenOver, at(1), Facts::default()).task;
    assert_eq!(taken.outcome, Some((UpstreamAnswer::Ok, at(1))));
    let entries = live("probe, idempotent: 0 due; 0 ok; 1 present").entries;
    let taken = step(task, Event::TakenOver, at(1), Facts::default()).task;
    let ended = step(taken, reading(Verdict::Present), at(1), Facts::default());
    assert_eq!((entries.last(), ended.entries.last()), (Some(&Entry::Release(at(15))), Some(&Entry::Release(at(17)))));
}
