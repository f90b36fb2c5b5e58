//! The picture of a day: stacked bars over an axis of time, one for each period. The counts next to
//! it are its twin in text.

use crate::answer::class_of;
use askama::Template;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_operator::answers::Counts;
use toolwarrant_operator::view::Tone;

const HEIGHT: u64 = 120;
/// The numbers of the axis stand before it. Places and widths are shares of the width.
const BEGIN: f64 = 6.0;

/// Fewer periods do not fill the width.
const SLOTS_MIN: usize = 24;

/// The counts of a period, and the page that lists what was counted.
pub(super) struct BarPeriod<'a> {
    pub(super) since: Timestamp,
    pub(super) counts: &'a Counts,
    pub(super) path: Option<String>,
}

#[derive(Template)]
#[template(path = "pages/overview/bars.svg")]
pub(super) struct Bars<'a> {
    name: &'a str,
    most: u64,
    slots: Vec<Slot>,
}

/// The bars of a period.
struct Slot {
    x: String,
    width: String,
    path: Option<String>,
    text: String,
    /// Some periods have their time on the axis.
    tick: Option<String>,
    bars: Vec<Bar>,
}

#[derive(Debug, PartialEq)]
struct Bar {
    y: u64,
    height: u64,
    class: &'static str,
}

impl<'a> Bars<'a> {
    pub(super) fn of(name: &'a str, periods: Vec<BarPeriod<'_>>) -> Self {
        let sum = |counts: &Counts| counts.0.iter().map(|(_, count)| count).sum::<u64>();
        let most = periods.iter().map(|period| sum(period.counts)).max().unwrap_or_default();
        let (share, ticks) = ((100.0 - BEGIN) / periods.len().max(SLOTS_MIN) as f64, periods.len().div_ceil(6).max(1));
        let mut slots = Vec::new();
        for (at, BarPeriod { since, counts, path }) in periods.into_iter().enumerate() {
            let (mut below, mut bars, time) = (0, Vec::new(), since.to_string());
            let mut text = format!("from {} {} on: {}", &time[5..10], &time[11..16], sum(counts));
            for (name, count) in counts.0.iter().copied() {
                let top = |count: u64| count * HEIGHT / most.max(1);
                let (begin, end) = (top(below), top(below + count));
                below += count;
                text += &format!(", {count} {name}");
                let class = class_of(Tone::of_outcome(name));
                bars.push(Bar { y: HEIGHT - end, height: (end - begin).max(1), class });
            }
            slots.push(Slot {
                x: format!("{:.2}%", BEGIN + share * at as f64),
                width: format!("{:.2}%", share * 0.8),
                path,
                text,
                tick: (at % ticks == 0).then(|| time[11..16].to_owned()),
                bars,
            });
        }
        Self { name, most, slots }
    }

    /// Returns the places of the lines across, with their numbers.
    fn lines(&self) -> Vec<(u64, u64)> {
        let half = (HEIGHT / 2, self.most / 2);
        let lines = [(0, self.most), half, (HEIGHT, 0)].into_iter();
        lines
            .filter(|line| line.0 == HEIGHT || self.most > 0 && (*line != half || self.most.is_multiple_of(2)))
            .collect()
    }

    fn begin(&self) -> String {
        format!("{BEGIN}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_of_a_period_stand_on_each_other_and_none_leaves_the_picture() {
        let [first, none, last] = [vec![("success", 3), ("failed_silent", 1)], vec![], vec![("failed", 1)]].map(Counts);
        let periods = [&first, &none, &last].map(|counts| BarPeriod { since: Timestamp(0), counts, path: None });
        let Bars { most, slots, .. } = Bars::of("tasks", periods.into());
        let bar = |y, height, class| Bar { y, height, class };
        let drawn: Vec<_> = slots.into_iter().map(|slot| (slot.x, slot.bars)).collect();
        assert_eq!(most, 4);
        assert_eq!(drawn[0], ("6.00%".to_owned(), vec![bar(30, 90, "good"), bar(0, 30, "silent")]));
        assert_eq!(drawn[1], ("9.92%".to_owned(), vec![]));
        assert_eq!(drawn[2], ("13.83%".to_owned(), vec![bar(90, 30, "bad")]));
    }
}
