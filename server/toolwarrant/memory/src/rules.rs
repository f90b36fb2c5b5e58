//! Checks each [`IntegrityRule`], with the texts that all stores use.

use super::{Memory, Tables, now};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::store::Stored;
use toolwarrant_store::{Figure, Integrity, IntegrityRule, VIOLATIONS_MAX, check_charges};
use toolwarrant_tasks::store::Record;
use toolwarrant_tasks::task::{TaskId, TaskStatus};

impl Integrity for Memory {
    fn violations(&self, rule: IntegrityRule) -> Stored<'_, Vec<String>> {
        let mut found = self.lock().violations(rule);
        found.truncate(VIOLATIONS_MAX);
        now(found)
    }

    fn figures(&self) -> Stored<'_, Vec<Figure>> {
        let tables = self.lock();
        let ended = || tables.tasks.values().filter_map(|row| row.record.task.finished_at);
        let events = || tables.tasks.values().flat_map(|row| row.timeline.iter().skip(1).map(|event| event.at));
        let figure =
            |what, times: Vec<Timestamp>| Figure { what, rows: times.len() as u64, oldest: times.into_iter().min() };
        now(vec![
            figure("ended tasks", ended().collect()),
            figure("timelines of tasks", events().collect()),
            figure("cool-downs", tables.cool_downs.values().map(|cool_down| cool_down.until).collect()),
            figure("deduplication keys", tables.marks.values().copied().collect()),
            figure("ledger", tables.ledger.iter().map(|row| row.at).collect()),
            figure("acts", tables.acts.iter().map(|act| act.at).collect()),
        ])
    }

    fn touch(&self) -> Stored<'_, ()> {
        now(())
    }
}

impl Tables {
    pub(super) fn violations(&self, rule: IntegrityRule) -> Vec<String> {
        let entered = |id: TaskId, kind| self.entered.contains(&(id, kind));
        let with = |kind| self.ledger.iter().filter(move |row| row.kind == kind).map(|row| row.id);
        let status = |id: &TaskId| self.tasks.get(id).map(|row| row.record.task.status());
        let records = || self.tasks.values().map(|row| &row.record);
        let say = |what: &'static str| move |id: TaskId| format!("{id} {what}");
        match rule {
            IntegrityRule::Integrity
            | IntegrityRule::Layout
            | IntegrityRule::Foreign
            | IntegrityRule::Records
            | IntegrityRule::TargetLocks => Vec::new(),
            IntegrityRule::Refunds => {
                let silent = |record: &&Record| record.task.status() == Some(TaskStatus::FailedSilent);
                let unrefunded = records().filter(silent).map(|record| record.id).filter(|id| !entered(*id, "refund"));
                let other = |id: &TaskId| status(id).is_some_and(|status| status != Some(TaskStatus::FailedSilent));
                let unpaid = |id: &TaskId| !entered(*id, "charge") || entered(*id, "reversal");
                let unrefunded = unrefunded.map(say("ended as failed_silent and has no refund"));
                let other = with("refund").filter(other).map(say("has a refund and did not end as failed_silent"));
                let unpaid = with("refund").filter(unpaid).map(say("has a refund and no charge that it gives back"));
                unrefunded.chain(other).chain(unpaid).collect()
            }
            IntegrityRule::Charges => {
                let uncharged = with("reversal").filter(|id| !entered(*id, "charge"));
                let uncharged = uncharged.map(say("has a reversal and no charge that it takes back"));
                let wrong = records().flat_map(|Record { id, task, .. }| {
                    check_charges(task, |kind| entered(*id, kind)).into_iter().map(move |what| format!("{id} {what}"))
                });
                uncharged.chain(wrong).collect()
            }
            IntegrityRule::Secrets => {
                let ended = |record: &&Record| record.task.status().is_some() == record.sealed.is_some();
                let what = |record: &Record| match record.sealed {
                    Some(_) => "has ended and its arguments were not wiped",
                    None => "is in flight and its arguments are gone",
                };
                records().filter(ended).map(|record| format!("{} {}", record.id, what(record))).collect()
            }
            IntegrityRule::Deadlines(after) => {
                let late = |record: &&Record| record.task.status().is_none() && record.task.deadline_at <= after;
                let late = records().filter(late);
                late.map(|Record { id, task, .. }| {
                    format!("{id} is in flight, and should have ended at {}", task.deadline_at)
                })
                .collect()
            }
        }
    }
}
