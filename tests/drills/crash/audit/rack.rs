//! Phones of the rack: matches the acts in their journals with the tasks.
//!
//! A phone has one write in flight, so an act belongs to the task that was accepted last on it.

use super::super::load::TaskView;
use super::{AuditBooks, Task, tasks};
use crate::harness::writes::database;
use driver::{PhoneAct, RackPhone};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The promises, in the order of their counts.
const PROMISES: [&str; 5] = [
    "effects of tasks that ended as failed, or are not charged",
    "refunds of restarts that happened",
    "restarts that were repeated",
    "successes without a start of the phone",
    "charges of tasks whose phone could hear nothing",
];

impl AuditBooks {
    /// Compares the accounts of a run on the rack, whose phones have the ids of their devices.
    /// `silent` has the tasks that ended while their phone was not able to hear the word. Returns
    /// the figures, too.
    pub(crate) fn compare_on_rack(
        data: &Path,
        told: &[TaskView],
        phones: &HashMap<String, Arc<RackPhone>>,
        silent: &HashSet<String>,
    ) -> (Self, Vec<(String, u64)>) {
        let db = database(data);
        let mut books = Self::compare_with(&db, &HashMap::new(), told, None);
        let (mut broken, mut restarts, all) = ([0; 5], 0, tasks(&db));
        for (device, phone) in phones {
            let journal = phone.journal().expect("a journal");
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
                let breaches = [
                    done + swallowed > 0 && (task.status == "failed" || !task.left),
                    task.status == "failed_silent" && (is_started || done > 0),
                    done + swallowed > 1,
                    task.status == "success" && !is_started,
                    task.left && silent.contains(*id),
                ];
                restarts += done as u64;
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
        let own = PROMISES.into_iter().zip(broken).chain([("restarts that phones carried out", restarts)]);
        let figures = figures.into_iter().chain(own.map(|(what, figure)| (what.to_owned(), figure))).collect();
        (books, figures)
    }
}
