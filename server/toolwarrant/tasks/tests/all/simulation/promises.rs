//! The promises of the engine, compared with the events that really happened.

use super::sight::Sight;
use super::wheels::Truth;
use super::{Said, World, short};
use std::collections::HashMap;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::tasks::WriteAnswer;
use toolwarrant_store::{Integrity, IntegrityRule};
use toolwarrant_tasks::machine::Provability;
use toolwarrant_tasks::store::{Record, TaskFilter, TaskStore};
use toolwarrant_tasks::task::{Task, TaskId, TaskPolicy, TaskStatus, UpstreamAnswer};

/// From the deadline or the last start to the end of a task. A found send may still arrive, a
/// look-up and a last reading follow, and the disk may fail a few times.
const GRACE: Duration = Duration::from_secs(130);

/// On a sound disk, without the readings between the steps.
const STEPS: Duration = Duration::from_secs(9);

const TRIES: Duration = Duration::from_secs(5);

impl World {
    pub(super) async fn violations(&self) -> Vec<String> {
        let mut broken = self.platters.violations.lock().expect("no panic").clone();
        let all = TaskFilter { limit: 1_000, examine: 1_000, ..TaskFilter::default() };
        let records = self.platters.memory.tasks(all).await.expect("memory").records;
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
                ends.iter().filter(|step| TaskStatus::ENDS.iter().any(|status| status.as_str() == step.phase)).count();
            let entries = ledger.get(&record.id).map_or(&[][..], |entries| entries);
            let sight = self.wheels.sight(&record.identity.target);
            let truths = &self.wheels.state().truths;
            let never = Truth::default();
            let truth = truths.get(&record.id).unwrap_or(&never);
            let mut violated =
                |what: &str| broken.push(format!("{} ({:?}): {what}", short(record.id), record.task.phase));
            self.ends(record, ends, &mut violated);
            if record
                .call
                .as_ref()
                .is_some_and(|call| self.nature.denied.lock().expect("no panic").contains(&call.request_id))
            {
                violated("its client was told that nothing was done");
            }
            money(record, entries, truth, &mut violated);
            says_what_happened(record, truth, &mut violated);
            says_no_more_than_was_shown(record, &sight, &mut violated);
            if !self.disturbed {
                forgets_no_answer(record, truth, &mut violated);
            }
            if !self.disturbed && self.nature.weather.broken_disk == 0 && self.nature.weather.dark == 0 {
                says_all_that_can_be_known(record, truth, &sight, &mut violated);
                comes_as_soon_as_it_can(record, truth, &sight, &mut violated);
            }
        }
        let said = self.said.lock().expect("no panic");
        broken.extend(said.iter().filter_map(|said| find_wrong_answer(said, &records)));
        broken
    }

    fn ends(&self, record: &Record, ends: usize, violated: &mut impl FnMut(&str)) {
        let Some(finished_at) = record.task.finished_at else { return violated("it never ends") };
        let started = *self.started.lock().expect("no panic");
        if finished_at > started.max(record.task.deadline_at).plus(GRACE + self.takeover) {
            violated("it ends late");
        }
        if ends != 1 {
            violated("it ends more than once");
        }
    }
}

fn money(record: &Record, entries: &[&str], truth: &Truth, violated: &mut impl FnMut(&str)) {
    let count = |kind: &str| entries.iter().filter(|entry| **entry == kind).count();
    let (charges, reversals, refunds) = (count("charge"), count("reversal"), count("refund"));
    if refunds != usize::from(record.task.status() == Some(TaskStatus::FailedSilent)) {
        violated("refunds are not one for `failed_silent` alone");
    }
    if truth.left > 0 && charges - reversals.min(charges) != 1 {
        violated("it left and is not charged");
    }
}

fn says_what_happened(record: &Record, truth: &Truth, violated: &mut impl FnMut(&str)) {
    let Task { policy, outcome, settled, .. } = &record.task;
    let said = outcome.map(|(upstream, _)| upstream);
    if !policy.idempotent && truth.done > 1 {
        violated("it was done more than once");
    }
    if truth.read_in_vain {
        violated("it was read where nothing can be seen");
    }
    match record.task.status() {
        Some(TaskStatus::Success) if truth.done == 0 && !truth.was_so => violated("it was not done"),
        Some(TaskStatus::SuccessUnverified) if !truth.claimed => violated("nobody said so"),
        Some(TaskStatus::FailedSilent) if truth.done > 0 => violated("it is refunded and was done"),
        Some(TaskStatus::FailedSilent) if !truth.claimed => violated("it is refunded and nobody said that it was done"),
        Some(TaskStatus::Failed) if said.is_none() && truth.left > 0 => violated("it left, and says that it did not"),
        Some(TaskStatus::Failed) if settled.absent > 0 && truth.done > 0 => violated("it was done"),
        Some(TaskStatus::Failed) if truth.done > 1 => violated("it was done, by a send that was not answered"),
        Some(TaskStatus::Failed) if !said.is_none_or(UpstreamAnswer::is_failure) => {
            violated("nobody said that it failed")
        }
        _ => {}
    }
}

fn forgets_no_answer(record: &Record, truth: &Truth, violated: &mut impl FnMut(&str)) {
    if truth.told.is_some() && record.task.outcome.map(|(upstream, _)| upstream) != truth.told {
        violated("its answer was forgotten");
    }
}

/// Checks the claim of the status. If the probe could prove nothing, the evidence must give the
/// reason.
fn says_no_more_than_was_shown(record: &Record, sight: &Sight, violated: &mut impl FnMut(&str)) {
    let Task { policy: TaskPolicy { probe: Some(probe), .. }, finished_at: Some(at), outcome, .. } = &record.task
    else {
        return;
    };
    let compared = !probe.baseline || record.task.baseline.is_some();
    let answer = outcome.map(|(upstream, _)| upstream);
    match (record.task.status(), sight.provability(*at)) {
        (Some(TaskStatus::Success), Provability::Absence | Provability::Nothing(_)) => {
            violated("its success was not shown")
        }
        (Some(TaskStatus::FailedSilent), Provability::Presence | Provability::Nothing(_)) => {
            violated("its absence was not shown")
        }
        (Some(TaskStatus::FailedSilent), _) if !compared => violated("its absence was compared with nothing"),
        (Some(TaskStatus::SuccessUnverified), Provability::Both | Provability::Presence) => {
            violated("its success could be shown")
        }
        (Some(TaskStatus::Timeout), Provability::Nothing(_)) if answer == Some(UpstreamAnswer::Ok) => {
            violated("it waited for what nothing can show");
        }
        (_, Provability::Nothing(why)) if answer.is_some() => {
            let evidence = record.task.evidence().expect("an end");
            if !evidence.observed.as_str().contains(why) {
                violated("it does not say why nothing was checked");
            }
        }
        _ => {}
    }
}

fn says_all_that_can_be_known(record: &Record, truth: &Truth, sight: &Sight, violated: &mut impl FnMut(&str)) {
    let Task { policy, outcome, deadline_at, finished_at: Some(finished_at), attempts, .. } = &record.task else {
        return;
    };
    let provability = sight.throughout(record.created_at, *finished_at);
    let Some((upstream, answered_at)) = outcome else {
        if *attempts == 0 && matches!(provability, Some(Provability::Nothing(_))) {
            violated("it was not sent, for want of a reading that shows nothing");
        }
        return;
    };
    if policy.probe.is_none() || answered_at.plus(policy.settle() + two_readings(sight)) > *deadline_at {
        return;
    }
    let must: &[TaskStatus] = match (provability, upstream, truth.done > 0 || truth.was_so) {
        (Some(Provability::Both), _, true) => &[TaskStatus::Success],
        (Some(Provability::Presence), _, true) | (None, ..) => return,
        (Some(Provability::Both), UpstreamAnswer::Ok, false) => &[TaskStatus::FailedSilent],
        (Some(Provability::Absence), UpstreamAnswer::Ok, true) => &[TaskStatus::SuccessUnverified],
        // Readings of an absent effect can be wrong, so either status can come first.
        (Some(Provability::Absence), UpstreamAnswer::Ok, false) => {
            &[TaskStatus::FailedSilent, TaskStatus::SuccessUnverified]
        }
        (Some(Provability::Nothing(_)), UpstreamAnswer::Ok, _) => &[TaskStatus::SuccessUnverified],
        (Some(Provability::Presence), UpstreamAnswer::Ok, false) => &[TaskStatus::Timeout],
        (Some(_), UpstreamAnswer::Err | UpstreamAnswer::Refused(_) | UpstreamAnswer::Busy(_), _) => {
            &[TaskStatus::Failed]
        }
        (Some(_), UpstreamAnswer::None | UpstreamAnswer::Unsure, _) => &[TaskStatus::Timeout],
    };
    // If an earlier send was not answered, nothing proves that it had no effect.
    let open = |status: TaskStatus| if record.task.unanswered && never(status) { TaskStatus::Timeout } else { status };
    let must: Vec<_> = must.iter().map(|status| open(*status)).collect();
    if !record.task.status().is_some_and(|status| must.contains(&status)) {
        violated(&format!("it must be {must:?}"));
    }
}

fn never(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Failed | TaskStatus::FailedSilent)
}

fn comes_as_soon_as_it_can(record: &Record, truth: &Truth, sight: &Sight, violated: &mut impl FnMut(&str)) {
    let Task {
        policy,
        outcome,
        operation,
        attempts,
        deadline_at,
        start_delay_ms,
        finished_at: Some(finished_at),
        left,
        ..
    } = &record.task
    else {
        return;
    };
    let known_at = match (sight.gone_at(), truth.lost_at, truth.done_at) {
        (Some(gone_at), ..) if !left => {
            Some(gone_at.max(record.created_at.plus(Duration::from_millis(*start_delay_ms))))
        }
        _ if policy.probe.is_none() => None,
        // If the name of the operation was lost too, the task waits for that. A second send is
        // another operation.
        (_, Some(lost_at), Some(done_at))
            if operation.is_some() && *attempts == 1 && means_both(sight, record.created_at, *finished_at) =>
        {
            Some(lost_at.max(done_at))
        }
        _ => match (sight.throughout(record.created_at, *finished_at), outcome) {
            (Some(Provability::Nothing(_)), Some((UpstreamAnswer::Ok, at))) => Some(*at),
            (Some(Provability::Nothing(_)), Some((UpstreamAnswer::Err, at))) if !record.task.unanswered => Some(*at),
            _ => None,
        },
    };
    // After the send, each wait doubles the time that it has taken so far. Before it, the task
    // waits for its next try, or for a reading.
    let latest = known_at.map(|at| match left {
        true => at.plus(two_readings(sight) + at.since(record.created_at)),
        false => at.plus(TRIES + sight.reads_for()),
    });
    if latest.is_some_and(|latest| *finished_at > latest && latest < *deadline_at) {
        violated("it could have ended sooner");
    }
}

fn means_both(sight: &Sight, from: Timestamp, to: Timestamp) -> bool {
    sight.throughout(from, to) == Some(Provability::Both)
}

fn two_readings(sight: &Sight) -> Duration {
    STEPS + 2 * sight.reads_for()
}

fn find_wrong_answer((call, answer): &Said, records: &[Record]) -> Option<String> {
    let WriteAnswer { task_id, tool, target, accepted_at: _, hit, matches } = answer.as_ref().ok()?;
    let Some(record) = records.iter().find(|record| record.id.to_string() == *task_id) else {
        return Some(format!("{task_id} was accepted and is not there"));
    };
    let asked = (call.act.tool(), call.wheel.to_string());
    let told_of = (&record.tool, &record.identity.target) == (tool, target);
    let told_of = told_of && *record.identity.application == *call.application;
    let ours = asked == (&**tool, target.clone());
    let sound = told_of && if *hit { ours || !matches } else { ours && *matches };
    (!sound).then(|| format!("{call:?} was answered with {answer:?}"))
}
