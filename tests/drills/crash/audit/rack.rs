//! Matches the acts in the journals of phones behind an adb server with the tasks. A phone has one
//! write in flight, so an act belongs to the task that was accepted last on it.

use super::super::load::TaskView;
use super::{AuditBooks, Task, tasks};
use crate::harness::writes::database;
use kit::PhoneAct;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// By the id of the device. The effect of a program of this machine counts as [`PhoneAct::Restart`]
/// and [`PhoneAct::Start`], too.
pub(crate) type ActJournals = HashMap<String, Vec<(i64, PhoneAct)>>;

const PROMISES: [&str; 5] = [
    "effects of tasks that ended as failed, or are not charged",
    "refunds of effects that happened",
    "effects that were repeated",
    "successes without an effect",
    "charges of tasks whose phone could hear nothing",
];

impl AuditBooks {
    /// Takes in `silent` the tasks that ended while their phone was not able to hear the word.
    pub(crate) fn compare_on_rack(
        data: &Path,
        told: &[TaskView],
        journals: &ActJournals,
        silent: &HashSet<String>,
    ) -> (Self, Vec<(String, u64)>) {
        let db = database(data);
        let mut books = Self::compare_with(&db, &HashMap::new(), told, None);
        let (mut broken, mut effects, all) = ([0; 5], 0, tasks(&db));
        for (device, journal) in journals {
            let mut tasks: Vec<(&String, &Task)> = all.iter().filter(|(_, task)| task.target == *device).collect();
            tasks.sort_by_key(|(_, task)| task.ready_at);
            for (at, (id, task)) in tasks.iter().enumerate() {
                let next = tasks.get(at + 1).map_or(i64::MAX, |(_, next)| next.ready_at);
                let acts = journal.iter().filter(|(at, _)| (task.ready_at..next).contains(at));
                let count = |wanted| acts.clone().filter(|(_, act)| *act == wanted).count();
                let end = task.finished_at.unwrap_or(i64::MAX);
                // A phone that was off may have started before it took the command.
                let swallowed_at = acts.clone().filter(|(_, act)| *act == PhoneAct::Swallow).map(|(at, _)| *at).max();
                let window = swallowed_at.unwrap_or(task.ready_at)..=end;
                let is_started = acts.clone().any(|(at, act)| *act == PhoneAct::Start && window.contains(at));
                let (done, swallowed) = (count(PhoneAct::Restart), count(PhoneAct::Swallow));
                // A phone may be on or off already. Every proxy differs from the one before it.
                let is_seen_only = task.idempotent && task.tool == "set_power";
                let may = if task.idempotent { task.attempts as usize } else { 1 };
                let breaches = [
                    done + swallowed > 0 && (task.status == "failed" || !task.left),
                    task.status == "failed_silent" && (is_started || done > 0),
                    done + swallowed > may,
                    task.status == "success" && !is_started && !is_seen_only,
                    task.left && silent.contains(*id),
                ];
                effects += done as u64;
                broken.iter_mut().zip(breaches).for_each(|(count, is_breach)| *count += u64::from(is_breach));
                if breaches.contains(&true) {
                    let (status, acts) = (&task.status, acts.collect::<Vec<_>>());
                    books
                        .violations
                        .push(format!("{id} on {device}: {status} from {} to {end}: {acts:?}", task.ready_at));
                }
            }
        }
        books.repeated += broken[2];
        let figures: Vec<_> = books.figures().collect();
        let own = PROMISES.into_iter().zip(broken).chain([("effects on phones", effects)]);
        let figures = figures.into_iter().chain(own.map(|(what, figure)| (what.to_owned(), figure))).collect();
        (books, figures)
    }
}
