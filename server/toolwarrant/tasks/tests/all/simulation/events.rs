//! The events of a world, as its seed decides them.

use super::wheels::Act;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::random::SplitMix;

pub(super) const NAMES: [&str; 2] = ["one", "two"];

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) application: Arc<str>,
    pub(super) wheel: usize,
    pub(super) act: Act,
    pub(super) key: Option<&'static str>,
    /// Then the client disconnects.
    pub(super) patience: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum Happens {
    Call(Call),
    Crash,
    /// Another process starts next to it.
    Freeze(Duration),
    Start,
}

pub(super) fn draw(random: &mut SplitMix) -> Vec<(Duration, Happens)> {
    let span = [5_000, 60_000][random.below(2) as usize];
    let calls = draw_calls(random, span).into_iter();
    let mut events: Vec<_> = calls.map(|(at, call)| (at, Happens::Call(call))).collect();
    for _ in 0..[0, 0, 1, 1, 2, 3][random.below(6) as usize] {
        let called: Vec<Duration> = events.iter().map(|(at, _)| *at).collect();
        let at = match random.below(2) {
            0 => Duration::from_millis(random.below(span + 30_000)),
            _ => called[random.below(called.len() as u64) as usize] + Duration::from_millis(random.below(1_000)),
        };
        let [down, still] = [[0, 1, 20, 90], [1, 20, 30, 90]].map(|lengths| lengths[random.below(4) as usize]);
        if random.below(2) == 0 {
            events.extend([(at, Happens::Crash), (at + Duration::from_secs(down), Happens::Start)]);
        } else {
            events.extend([(at, Happens::Freeze(Duration::from_secs(still))), (at, Happens::Start)]);
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

pub(super) fn draw_calls(random: &mut SplitMix, span: u64) -> Vec<(Duration, Call)> {
    let (mut calls, wheels) = (Vec::new(), 1 + random.below(2));
    for number in 0..2 + random.below(4) {
        let act = match random.below(5) {
            0 | 1 => Act::Paint(1 + number),
            2 => Act::Paint(1 + random.below(2)),
            3 => Act::Turn,
            _ => Act::Rinse,
        };
        let key = [None, None, Some("a"), Some("b")][random.below(4) as usize];
        let application = NAMES[random.below(2) as usize].into();
        let call = Call { application, wheel: random.below(wheels) as usize, act, key, patience: None };
        let at = random.below(span);
        for _ in 0..[1, 1, 2, 3][random.below(4) as usize] {
            let again = [0, 0, 10, 2_000, 20_000][random.below(5) as usize];
            let patience = [None, None, Some(0), Some(200)][random.below(4) as usize].map(Duration::from_millis);
            let wheel = if random.below(8) == 0 { random.below(wheels) as usize } else { call.wheel };
            calls.push((Duration::from_millis(at + again), Call { wheel, patience, ..call.clone() }));
        }
    }
    calls
}
