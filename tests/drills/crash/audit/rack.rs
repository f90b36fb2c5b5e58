//! Phones of the rack: matches the acts in their journals with the tasks.
//!
//! A phone has one write in flight, so an act belongs to the task that was accepted last on it.

use super::super::load::TaskView;
use super::{AuditBooks, Task, tasks};
use crate::harness::writes::database;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The acts of each device: the time, and true if the phone did not swallow it.
pub(crate) type RackActs = HashMap<String, Vec<(i64, bool)>>;

impl AuditBooks {
    /// Compares the accounts of a run on the rack. `silent` has the tasks that ended while their
    /// phone was not able to hear the word.
    pub(crate) fn compare_on_rack(
        data: &Path,
        told: &[TaskView],
        acts: &RackActs,
        silent: &HashSet<String>,
    ) -> (Self, Vec<(&'static str, u64)>) {
        let (db, mut broken) = (database(data), [0; 4]);
        let mut books = Self::compare_with(&db, &HashMap::new(), told, None);
        let tasks = tasks(&db);
        for (id, _) in tasks.iter().filter(|(id, task)| silent.contains(*id) && task.left) {
            broken[3] += 1;
            books.violations.push(format!("{id} is charged, and its phone heard nothing"));
        }
        for (device, acts) in acts {
            let mut own: Vec<(&String, &Task)> = tasks.iter().filter(|(_, task)| task.target == *device).collect();
            own.sort_by_key(|(_, task)| task.ready_at);
            let mut last = None;
            for (at, is_done) in acts {
                let Some((id, task)) = own.iter().rfind(|(_, task)| task.ready_at <= *at) else {
                    books.violations.push(format!("{device} acted at {at} for no task"));
                    continue;
                };
                let breaches = [
                    task.status == "failed" || !task.left,
                    task.status == "failed_silent" && *is_done,
                    last.replace(id) == Some(id),
                ];
                for (count, _) in broken.iter_mut().zip(breaches).filter(|(_, is_breach)| *is_breach) {
                    *count += 1;
                }
                if breaches.contains(&true) {
                    let (end, status) = (task.finished_at, &task.status);
                    books.violations.push(format!("{id} on {device} acted at {at} and says {status} at {end:?}"));
                }
            }
        }
        books.repeated += broken[2];
        let names = [
            "effects of tasks that ended as failed, or are not charged",
            "refunds of restarts that happened",
            "restarts that were repeated",
            "charges of tasks whose phone could hear nothing",
        ];
        let done = acts.values().flatten().filter(|(_, is_done)| *is_done).count() as u64;
        let figures = names.into_iter().zip(broken).chain([("restarts that phones carried out", done)]).collect();
        (books, figures)
    }
}
