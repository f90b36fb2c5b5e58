//! Invariants that hold under random events.

use super::*;
use toolwarrant_base::random::SplitMix;

fn assert_no_hope(seed: u64, task: &Task, provability: Provability) {
    let reported = task.outcome.map(|(upstream, _)| upstream);
    match (task.status(), provability) {
        (Some(TaskStatus::FailedSilent), Provability::Presence | Provability::Nothing(_)) => {
            panic!("seed {seed}: a refund of hope")
        }
        (Some(TaskStatus::Success), Provability::Absence | Provability::Nothing(_)) => {
            panic!("seed {seed}: a success of hope")
        }
        (Some(TaskStatus::Timeout), Provability::Nothing(_)) if task.policy.probe.is_some() => {
            assert_ne!(reported, Some(UpstreamAnswer::Ok), "seed {seed}: nothing was to be waited for");
        }
        _ => {}
    }
}

/// Puts the clock back a little, as the next process may have another.
fn take_over(random: &mut SplitMix, now: &mut Timestamp) -> Event {
    if random.below(2) == 0 {
        return Event::Found;
    }
    *now = now.minus(Duration::from_millis(random.below(2_000)));
    Event::TakenOver
}

/// Answers each effect at random, loses some in crashes, and delivers events that are out of place.
#[test]
fn under_random_events_a_task_ends_once_and_its_entries_match_its_end() {
    for seed in 0..20_000 {
        let mut random = SplitMix(seed);
        let probe = if random.below(4) > 0 { probe(random.below(2) == 0) } else { None };
        let idempotent = random.below(2) == 0;
        let known = Facts { dedupes: random.below(3) == 0, looks_up: random.below(3) == 0, ..Facts::default() };
        let changing = random.below(2) == 0;
        let mut facts = known;
        let (mut task, mut now) = (Task::new(policy(probe, idempotent), at(0)), at(0));
        let (mut entries, mut effect, mut unsafe_sends, mut steps) = (Vec::new(), None, 0_u32, 0);
        let (mut left, mut deaths, slow) = (false, 0, random.below(2) == 0);
        while task.status().is_none() {
            steps += 1;
            assert!(steps < 200, "seed {seed} never ends: {task:?}");
            let answers = ["not sent", "refused before", "ok", "err", "pending", "none", "unsure", "refused"];
            let answer = random.below(8) as usize;
            let (sent, is_done) = (parse_sent(answers[answer]).expect("an answer"), answer > 1);
            let verdict = [Verdict::Present, Verdict::Absent, Verdict::Unreadable][random.below(3) as usize];
            if changing && random.below(3) == 0 {
                let provability =
                    [Provability::Both, Provability::Presence, Provability::Absence, Provability::Nothing("dark")];
                let gone = (random.below(20) == 0).then_some("gone");
                facts = Facts { provability: provability[random.below(4) as usize], gone, ..known };
            }
            let longest = match &effect {
                Some(Effect::Send(_)) if slow => SEND_PATIENCE,
                Some(_) if slow => READ_PATIENCE,
                Some(_) | None => Duration::from_secs(2),
            };
            let begun = now;
            now = now.plus(Duration::from_millis(random.below(longest.as_millis() as u64)));
            let event = match effect.take() {
                Some(lost) if random.below(10) == 0 => {
                    // A request that a process was sending when it died may have left.
                    unsafe_sends += u32::from(matches!(lost, Effect::Send(_)) && !facts.dedupes);
                    deaths += 1;
                    take_over(&mut random, &mut now)
                }
                Some(Effect::Baseline) => Event::Baseline((random.below(3) > 0).then(|| "a".to_owned())),
                Some(Effect::Send(_)) => {
                    unsafe_sends += u32::from(is_done && !facts.dedupes);
                    left |= is_done;
                    Event::Sent(sent)
                }
                Some(Effect::LookUp) => {
                    Event::LookedUp((random.below(3) > 0).then(|| (random.below(3) > 0).then_some(sent)))
                }
                Some(Effect::Probe) => {
                    let shown = Reading { verdict, expected: "b".into(), observed: "a".into() };
                    Event::Probed(shown, begun)
                }
                None => {
                    now = now.max(task.wake_at.expect("it waits for something"));
                    if random.below(20) == 0 { take_over(&mut random, &mut now) } else { Event::Due }
                }
            };
            let next = super::super::step(task, event, now, &|| facts);
            (task, effect) = (next.task, next.effect);
            entries.extend(next.entries);
            for entry in [Entry::Charge, Entry::ReverseCharge, Entry::Refund] {
                let count = entries.iter().filter(|written| **written == entry).count();
                assert_eq!(count, usize::from(entry.is_due(&task)), "seed {seed}: {entry:?} of {task:?}");
            }
        }
        assert!(!left || !entries.contains(&Entry::ReverseCharge), "seed {seed}: what may have left is charged");
        assert_eq!(entries.iter().filter(|entry| matches!(entry, Entry::Release(_))).count(), 1, "seed {seed}");
        assert!(
            idempotent || facts.looks_up || unsafe_sends <= 1,
            "seed {seed}: {unsafe_sends} sends of what must not repeat"
        );
        // A look-up and a reading, and the same again for each process that died.
        let overrun = Duration::from_secs(62 * (1 + deaths));
        assert!(now <= task.deadline_at.plus(overrun), "seed {seed}: ends at {now}");
        assert_no_hope(seed, &task, facts.provability);
        let after = step(task.clone(), Event::Due, now.plus(Duration::from_secs(1)), facts);
        assert_eq!((after.task, after.entries, after.effect), (task, Vec::new(), None), "seed {seed}: an end is final");
    }
}
