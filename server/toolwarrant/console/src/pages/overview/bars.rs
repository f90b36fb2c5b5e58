//! The picture of a day: stacked bars, one for each period. The counts next to it are its twin in
//! text.

use crate::answer::class_of;
use askama::Template;
use toolwarrant_operator::answers::{Counts, Period};
use toolwarrant_operator::view::Tone;

const WIDTH: usize = 6;
const HEIGHT: u64 = 48;

#[derive(Template)]
#[template(path = "pages/overview/bars.svg")]
pub(super) struct Bars<'a> {
    name: &'a str,
    width: usize,
    most: u64,
    bars: Vec<Bar>,
}

struct Bar {
    x: usize,
    y: u64,
    height: u64,
    class: &'static str,
    text: String,
}

impl<'a> Bars<'a> {
    pub(super) fn of(periods: &[Period], counts: fn(&Period) -> &Counts, name: &'a str) -> Self {
        let sum = |period: &Period| counts(period).0.iter().map(|(_, count)| count).sum::<u64>();
        let most = periods.iter().map(sum).max().unwrap_or_default();
        let mut bars = Vec::new();
        for (at, period) in periods.iter().enumerate() {
            let mut below = 0;
            for (name, count) in counts(period).0.iter().copied() {
                let top = |count: u64| count * HEIGHT / most.max(1);
                let (begin, end) = (top(below), top(below + count));
                below += count;
                let text = format!("until {}: {count} {name}", period.until);
                let class = class_of(Tone::of_outcome(name));
                bars.push(Bar { x: at * WIDTH, y: HEIGHT - end, height: (end - begin).max(1), class, text });
            }
        }
        Self { name, width: periods.len().max(24) * WIDTH, most, bars }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant_base::clock::Timestamp;

    #[test]
    fn bars_of_a_period_stand_on_each_other_and_none_leaves_the_picture() {
        let period = |tasks: &[(&'static str, u64)]| Period {
            calls: Counts::default(),
            tasks: Counts(tasks.to_vec()),
            until: Timestamp(0),
        };
        let periods = [period(&[("success", 3), ("failed_silent", 1)]), period(&[]), period(&[("failed", 1)])];
        let Bars { width, most, bars, .. } = Bars::of(&periods, |period| &period.tasks, "tasks");
        let drawn: Vec<_> = bars.iter().map(|bar| (bar.x, bar.y, bar.height, bar.class)).collect();
        assert_eq!((width, most), (144, 4));
        assert_eq!(drawn, [(0, 12, 36, "good"), (0, 0, 12, "silent"), (12, 36, 12, "bad")]);
        assert!(Bars::of(&[], |period| &period.tasks, "tasks").bars.is_empty());
    }
}
