//! The picture of each task in a world: at its end, and as it was after each event.

use super::World;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_console::pictures::timeline::Timeline;
use toolwarrant_tasks::history::TaskHistory;
use toolwarrant_tasks::store::{Record, TaskStore};

impl World {
    pub(super) async fn check_pictures(&self, record: &Record) -> Option<&'static str> {
        let memory = &self.platters.memory;
        let timeline = memory.timeline(record.id).await.expect("memory");
        let entries = memory.entries(record.id).await.expect("memory");
        (1..=timeline.len()).find_map(|count| {
            let history = TaskHistory::of(&record.task, timeline[..count].to_vec(), &entries);
            let now = timeline.get(count).map_or_else(|| self.nature.clock.now(), |next| next.at);
            find_fault(&history, count, now)
        })
    }
}

fn find_fault(history: &TaskHistory, count: usize, now: Timestamp) -> Option<&'static str> {
    let Some(picture) = Timeline::of("", None, history, now) else { return Some("it has no picture") };
    let numbers: Vec<_> = picture.steps.iter().filter_map(|step| step.number).collect();
    let lengths = picture.bars.iter().map(|bar| (bar.begin, bar.end));
    let mut lengths = lengths.chain(picture.folds.iter().map(|fold| (fold.begin, fold.end)));
    let places = || picture.events.iter().chain(picture.marks.iter().map(|mark| &mark.place));
    if numbers != (1..=count).collect::<Vec<_>>() || !picture.events.is_sorted_by(|one, next| one < next) {
        return Some("its picture has its events in another order");
    }
    if lengths.any(|(begin, end)| begin > end) || places().any(|place| *place > picture.width) {
        return Some("its picture has a negative length or a place outside");
    }
    picture.to_string().is_empty().then_some("its picture cannot be written")
}
