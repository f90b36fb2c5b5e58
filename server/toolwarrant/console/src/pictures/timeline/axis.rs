//! The axis of time: points in their order, and their places in the picture.

use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

/// A longer time between two points is folded.
const FOLD_FROM: Duration = Duration::from_secs(2);
const FOLD_WIDTH: usize = 84;
/// Of a time that is just not folded.
const GAP_WIDTH: usize = 56;
/// Separates events at the same time.
const STEP_WIDTH: usize = 18;
/// The names of the lanes come before it.
const BEGIN: usize = 84;
const MARGIN: usize = 16;

/// A time that is not drawn in its length.
#[derive(Debug)]
pub struct TimelineFold {
    pub begin: usize,
    pub end: usize,
    pub length: String,
}

impl TimelineFold {
    pub(super) fn middle(&self) -> usize {
        usize::midpoint(self.begin, self.end)
    }

    pub(super) fn width(&self) -> usize {
        self.end.saturating_sub(self.begin)
    }
}

#[derive(Default)]
pub(super) struct Axis {
    points: Vec<Point>,
    /// The time of the latest event.
    latest: Timestamp,
    rooms: Vec<Room>,
}

struct Point {
    at: Timestamp,
    is_event: bool,
}

/// The width that a text needs on its lane, from a point on.
struct Room {
    point: usize,
    lane: usize,
    width: usize,
}

impl Axis {
    pub(super) fn add_event(&mut self, at: Timestamp) -> usize {
        self.latest = self.latest.max(at);
        self.push(self.latest, true)
    }

    /// Adds a point between the latest event and one at `end`, which follows.
    pub(super) fn add_before(&mut self, at: Timestamp, end: Timestamp) -> usize {
        self.push(at.min(end).max(self.latest), false)
    }

    /// Adds a point that is no event.
    pub(super) fn add(&mut self, at: Timestamp) -> usize {
        let first = self.points.first().map_or(at, |point| point.at);
        self.push(at.max(first), false)
    }

    fn push(&mut self, at: Timestamp, is_event: bool) -> usize {
        self.points.push(Point { at, is_event });
        self.points.len() - 1
    }

    pub(super) fn time(&self, point: usize) -> Timestamp {
        self.points[point].at
    }

    pub(super) fn reserve(&mut self, point: usize, lane: usize, width: usize) {
        self.rooms.push(Room { point, lane, width });
    }

    /// Returns the place of each point, the folds, and the width of the picture. No text covers the
    /// next one on its lane.
    pub(super) fn place(&self) -> (Vec<usize>, Vec<TimelineFold>, usize) {
        let (mut places, mut folds) = (vec![BEGIN; self.points.len()], Vec::new());
        let lanes = self.rooms.iter().map(|room| room.lane + 1).max().unwrap_or(0);
        let mut free = vec![BEGIN; lanes];
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        order.sort_by_key(|point| self.points[*point].at);
        let mut before: Option<usize> = None;
        for point in order {
            let begin = before.map_or(BEGIN, |before| places[before]);
            let gap = before.map_or(Duration::ZERO, |before| self.time(point).since(self.time(before)));
            let is_folded = gap > FOLD_FROM;
            let step = if self.points[point].is_event || !gap.is_zero() { STEP_WIDTH } else { 0 };
            let drawn = gap.as_millis() as usize * GAP_WIDTH / FOLD_FROM.as_millis() as usize;
            let distance = if is_folded { FOLD_WIDTH } else { step + drawn };
            let rooms = || self.rooms.iter().filter(|room| room.point == point);
            let place = rooms().map(|room| free[room.lane]).max().unwrap_or(0).max(begin + distance);
            rooms().for_each(|room| free[room.lane] = free[room.lane].max(place + room.width));
            if is_folded {
                folds.push(TimelineFold { begin, end: place, length: describe_length(gap) });
            }
            places[point] = place;
            before = Some(point);
        }
        let width = places.iter().chain(&free).max().copied().unwrap_or(BEGIN) + MARGIN;
        (places, folds, width)
    }
}

pub(crate) fn describe_length(length: Duration) -> String {
    match length.as_secs() {
        0 => format!("{} ms", length.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{} s", length.subsec_millis() / 100),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}
