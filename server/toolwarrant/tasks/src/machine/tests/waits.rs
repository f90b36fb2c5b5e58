//! Waits and cool-downs.

use super::*;

#[test]
fn a_target_cools_down_until_the_last_send_and_its_answer_have_settled() {
    let release = |sent, then: &[(u64, Event)]| {
        let events = [&[(0, Event::Due), (0, Event::Sent(sent))], then].concat();
        run(policy(probe(false), true), Facts::default(), &events).1.pop()
    };
    assert_eq!(release(Sent::Ok, &[(2, reading(Verdict::Present))]), Some(Entry::Release(at(15))));
    let answered = Event::LookedUp(Some(Some(Sent::Ok)));
    let pending = Sent::Pending("7".into());
    let seen = [(6, answered), (7, reading(Verdict::Present))];
    assert_eq!(release(pending, &seen), Some(Entry::Release(at(16))), "it may act for as long after its answer");
    assert_eq!(release(err(), &[(11, reading(Verdict::Absent))]), Some(Entry::Release(at(15))));
    let unanswered = release(Sent::NoAnswer("reset".into()), &[(2, reading(Verdict::Present))]);
    assert_eq!(unanswered, Some(Entry::Release(at(65))), "it may be at it for as long as an operation takes at most");
    assert_eq!(
        release(Sent::Ok, &[(10, reading(Verdict::Absent)), (30, reading(Verdict::Absent))]),
        Some(Entry::Release(at(30)))
    );
    // An effect that was measured against a reading from before is over, unless another send may
    // still arrive.
    for (sent, until) in [(Sent::Ok, 2), (none(), 65)] {
        let compared = [(0, Event::Due), (0, Event::Baseline(Some("a".into()))), (0, Event::Sent(sent))];
        let events = [&compared[..], &[(2, reading(Verdict::Present))]].concat();
        let (_, mut entries, _) = run(policy(probe(true), false), Facts::default(), &events);
        assert_eq!(entries.pop(), Some(Entry::Release(at(until))));
    }
}

fn times_of_readings(answer: Sent, verdict: Verdict, provability: Provability) -> Vec<u64> {
    let sent = [(0, Event::Due), (0, Event::Sent(answer))];
    let (mut task, ..) = run(policy(probe(false), false), Facts::default(), &sent);
    let (mut now, mut times) = (at(0), vec![]);
    while task.status().is_none() {
        times.push(now.since(at(0)).as_secs());
        let Event::Probed(read, _) = reading(verdict) else { unreachable!() };
        let facts = Facts { provability, ..Facts::default() };
        task = super::super::step(task, Event::Probed(read, now), now, &|| facts).task;
        now = task.wake_at.unwrap_or(now);
    }
    times
}

#[test]
fn readings_back_off_and_follow_each_other_closely_once_the_effect_has_settled() {
    assert_eq!(times_of_readings(Sent::Ok, Verdict::Unreadable, Provability::Both), [0, 3, 6, 10, 13, 26, 52, 60]);
    assert_eq!(times_of_readings(Sent::Ok, Verdict::Absent, Provability::Both), [0, 3, 6, 10, 13]);
    assert_eq!(times_of_readings(Sent::Ok, Verdict::Absent, Provability::Presence), [0, 3, 6, 10, 60]);
    let refused = Sent::Err("no".into());
    assert_eq!(times_of_readings(refused, Verdict::Absent, Provability::Presence), [0, 3, 6, 10, 13]);
}
