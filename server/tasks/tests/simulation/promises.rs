//! The promises of the engine, compared with what really happened.

use super::wheels::Truth;
use super::{Said, World, short};
use std::collections::HashMap;
use std::time::Duration;
use toolwarrant_core::tasks::AcceptedTask;
use toolwarrant_store::{Integrity, IntegrityRule};
use toolwarrant_tasks::store::{Record, TaskFilter, TaskStore};
use toolwarrant_tasks::task::{Status, Task, TaskId, UpstreamAnswer};

/// Longest time from the deadline or the last start to the end of a task: a found send may still arrive, then comes a last
/// reading, and the disk may fail a few times.
const GRACE: Duration = Duration::from_secs(90);

/// Longest time that two readings take.
const TWO_READINGS: Duration = Duration::from_secs(12);

impl World {
    /// Returns every broken promise.
    pub(super) async fn violations(&self) -> Vec<String> {
        let mut broken = self.platters.violations.lock().expect("no panic").clone();
        let all = TaskFilter { application: None, target: None, before: None, limit: 1_000 };
        let records = self.platters.memory.tasks(all).await.expect("memory");
        for rule in [IntegrityRule::Charges, IntegrityRule::Secrets] {
            broken.extend(self.platters.memory.violations(rule).await.expect("memory"));
        }
        let mut ledger: HashMap<TaskId, Vec<&'static str>> = HashMap::new();
        for row in self.platters.memory.ledger(0, 1_000).await.expect("memory") {
            ledger.entry(row.id).or_default().push(row.kind);
        }
        for id in &*self.platters.late_refunds.lock().expect("no panic") {
            ledger.entry(*id).or_default().push("refund");
        }
        for record in &records {
            let ends = self.platters.memory.timeline(record.id).await.expect("memory");
            let ends =
                ends.iter().filter(|step| Status::ALL.iter().any(|status| status.as_str() == step.phase)).count();
            let entries = ledger.get(&record.id).map_or(&[][..], |entries| entries);
            let truths = &self.wheels.state().truths;
            let never = Truth::default();
            let truth = truths.get(&record.id).unwrap_or(&never);
            let mut violated =
                |what: &str| broken.push(format!("{} ({:?}): {what}", short(record.id), record.task.phase));
            self.ends(record, ends, &mut violated);
            money(record, entries, truth, &mut violated);
            says_what_happened(record, truth, &mut violated);
            if !self.disturbed && self.nature.weather.broken_disk == 0 && self.nature.weather.dark == 0 {
                says_all_that_can_be_known(record, truth, &mut violated);
            }
        }
        let said = self.said.lock().expect("no panic");
        broken.extend(said.iter().filter_map(|said| misled(said, &records)));
        broken
    }

    /// An accepted write ends once and in time.
    fn ends(&self, record: &Record, ends: usize, violated: &mut impl FnMut(&str)) {
        let Some(finished_at) = record.task.finished_at else { return violated("it never ends") };
        if finished_at > self.started.max(record.task.deadline_at).plus(GRACE) {
            violated("it ends late");
        }
        if ends != 1 {
            violated("it ends more than once");
        }
    }
}

/// A task is refunded exactly if it is `failed_silent`, and charged if it left.
fn money(record: &Record, entries: &[&str], truth: &Truth, violated: &mut impl FnMut(&str)) {
    let count = |kind: &str| entries.iter().filter(|entry| **entry == kind).count();
    let (charges, reversals, refunds) = (count("charge"), count("reversal"), count("refund"));
    if refunds != usize::from(record.task.status() == Some(Status::FailedSilent)) {
        violated("refunds are not one for `failed_silent` alone");
    }
    if truth.left > 0 && charges - reversals.min(charges) != 1 {
        violated("it left and is not charged");
    }
}

/// The status agrees with the truth, by the decision table.
fn says_what_happened(record: &Record, truth: &Truth, violated: &mut impl FnMut(&str)) {
    let Task { policy, outcome, settled, .. } = &record.task;
    let said = outcome.map(|(upstream, _)| upstream);
    if !policy.idempotent && truth.done > 1 {
        violated("it was done more than once");
    }
    match record.task.status() {
        Some(Status::Success) if truth.done == 0 && !truth.was_so => violated("it was not done"),
        Some(Status::SuccessUnverified) if policy.probe.is_some() || !truth.claimed => violated("nobody said so"),
        Some(Status::FailedSilent) if truth.done > 0 => violated("it is refunded and was done"),
        Some(Status::FailedSilent) if !truth.claimed => violated("it is refunded and nobody said that it was done"),
        Some(Status::Failed) if said.is_none() && truth.left > 0 => violated("it left, and says that it did not"),
        Some(Status::Failed) if settled.absent > 0 && truth.done > 0 => violated("it was done"),
        Some(Status::Failed) if !matches!(said, None | Some(UpstreamAnswer::Err)) => {
            violated("nobody said that it failed")
        }
        _ => {}
    }
}

/// If nothing interferes, an answer and readings decide the status.
fn says_all_that_can_be_known(record: &Record, truth: &Truth, violated: &mut impl FnMut(&str)) {
    let Task { policy, outcome: Some((upstream, answered_at)), deadline_at, .. } = &record.task else { return };
    if answered_at.plus(policy.settle() + TWO_READINGS) > *deadline_at {
        return;
    }
    let must = match (upstream, truth.done > 0 || truth.was_so) {
        (_, _) if policy.probe.is_none() => return,
        (_, true) => Status::Success,
        (UpstreamAnswer::Ok, false) => Status::FailedSilent,
        (UpstreamAnswer::Err, false) => Status::Failed,
        (UpstreamAnswer::None, false) => Status::Timeout,
    };
    if record.task.status() != Some(must) {
        violated(must.as_str());
    }
}

/// Returns a wrong answer to a client.
fn misled((call, answer): &Said, records: &[Record]) -> Option<String> {
    let AcceptedTask { task_id, tool, target, hit, matches, status: _ } = answer.as_ref().ok()?;
    let Some(record) = records.iter().find(|record| record.id.to_string() == *task_id) else {
        return Some(format!("{task_id} was accepted and is not there"));
    };
    let asked = (call.act.tool(), call.wheel.to_string());
    let told_of = (&*record.tool, &*record.target) == (tool, target) && record.application == call.application;
    let ours = asked == (&**tool, target.clone());
    let sound = told_of && if *hit { ours || !matches } else { ours && *matches };
    (!sound).then(|| format!("{call:?} was answered with {answer:?}"))
}
