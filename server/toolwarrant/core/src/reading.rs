//! The tool that reads tasks. It is the same for every contract, so it needs no handler.

use crate::catalogue::{Catalogue, PermissionSet};
use crate::failure::Failure;
use crate::handler::Call;
use crate::pipeline::Outcome;
use crate::reply::{Answer, AnsweredTask, Frame};
use crate::tasks::{Evidence, Refund, TaskReadError, TaskStatus, TaskView, UpstreamReport};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::time::Duration;
use toolwarrant_base::wording::Words;
use toolwarrant_base::words;
use toolwarrant_common::TASKS_KEPT_DAYS;

/// Every task costs one unit.
const REFUNDED_UNITS: i64 = 1;

pub async fn outcome(call: &Call<'_>, id: &str, wait: Option<i64>) -> Result<Outcome, Failure> {
    let wait = wait.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
    let read = tokio::select! {
        biased;
        read = call.task(id, wait) => read,
        // A poll may be held for a long time, but authority ends at once.
        failure = call.wait_for_end() => return Err(failure),
    };
    match read {
        Ok(told) => {
            let shown =
                TaskResult::of(call, &told).ok_or_else(|| internal_failure(call, "it does not fit the contract"))?;
            // The engine shows only tasks that the caller made or on targets that it sees.
            let answer = Answer::of(&shown, call).map_err(|error| internal_failure(call, &error.to_string()))?;
            // Other frames leave as they are.
            Ok(Outcome::Answer(match Frame::from(call) {
                Frame::Plain => answer.of_task(name_task(told)),
                Frame::Text { .. } => answer,
            }))
        }
        Err(TaskReadError::NotFound) => {
            let what =
                words!["no such task for this application; one is kept for ", TASKS_KEPT_DAYS, " days after its end"];
            let failure = Failure::new(call.catalogue.roles.not_found, what);
            Err(failure.with_advice(call.catalogue.phrases.lost_task, call.caller.application.permissions))
        }
        Err(TaskReadError::Broken(why)) => Err(internal_failure(call, &why)),
    }
}

fn name_task(TaskView { id, status, created_at, finished_at, .. }: TaskView) -> AnsweredTask {
    AnsweredTask { id, status, created_at, finished_at, is_new: false, is_same: false }
}

fn internal_failure(call: &Call<'_>, why: &str) -> Failure {
    tracing::error!(request_id = call.request_id, why, "a task could not be read");
    Failure::new(call.catalogue.roles.internal, "the task could not be read").with("request_id", call.request_id)
}

struct TaskResult<'a> {
    told: &'a TaskView,
    targets: Vec<(&'static str, &'static str)>,
    next_step: Words,
}

impl<'a> TaskResult<'a> {
    /// Returns `None` if the contract no longer has the resource or the target.
    fn of(call: &Call<'_>, told: &'a TaskView) -> Option<Self> {
        let catalogue = call.catalogue;
        let targets = targets(catalogue);
        let known = targets.iter().any(|(resource, _)| *resource == told.resource);
        let admitted = known && catalogue.resource(&told.resource)?.ids.admits(&told.target);
        let next_step = next_step(catalogue, told, call.caller.application.permissions)?;
        admitted.then_some(Self { told, targets, next_step })
    }
}

/// Prefers advice by the probe, then by the upstream's report, then by the status.
fn next_step(catalogue: &Catalogue, task: &TaskView, reader: PermissionSet) -> Option<Words> {
    let TaskView { status, probe, evidence, .. } = task;
    let state = status.def(catalogue)?;
    let (mut by_probe, mut by_report) = (None, None);
    if let Some(Evidence { reported, .. }) = evidence {
        let probe = catalogue.probes.iter().find(|known| probe.as_deref() == Some(known.name));
        by_probe = match (status, reported) {
            (TaskStatus::Timeout, _) => probe.map(|probe| probe.timeout),
            (TaskStatus::Success, _) => probe.map(|probe| probe.success),
            (_, UpstreamReport::NotSent) => probe.map(|probe| probe.unread),
            _ => None,
        };
        by_report = state.reported.iter().find(|(known, _)| known == reported).map(|(_, advice)| *advice);
    }
    let advice = [by_probe, by_report, Some(state.next_step)].into_iter().flatten();
    Some(advice.map(|advice| advice.for_reader(reader)).find(|told| !told.as_str().is_empty()).unwrap_or_default())
}

fn targets(catalogue: &Catalogue) -> Vec<(&'static str, &'static str)> {
    let mut targets: Vec<(&str, &str)> = Vec::new();
    for target in catalogue.tools.iter().filter(|tool| tool.task.is_some()).filter_map(|tool| tool.target.as_ref()) {
        if !targets.iter().any(|(resource, _)| *resource == target.resource) {
            targets.push((target.resource, target.arg));
        }
    }
    targets
}

impl Serialize for TaskResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { told, targets, next_step } = self;
        let TaskView {
            id,
            tool,
            probe: _,
            resource,
            target,
            status,
            created_at,
            deadline_at,
            finished_at,
            poll_after_seconds,
            evidence,
            refunded_at,
        } = told;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("task_id", id)?;
        map.serialize_entry("tool", tool)?;
        for (known, field) in targets {
            map.serialize_entry(field, &(*known == resource).then_some(target))?;
        }
        map.serialize_entry("status", status.as_str())?;
        map.serialize_entry("terminal", &status.is_terminal())?;
        map.serialize_entry("created_at", created_at)?;
        map.serialize_entry("deadline_at", deadline_at)?;
        map.serialize_entry("finished_at", finished_at)?;
        map.serialize_entry("poll_after_seconds", poll_after_seconds)?;
        map.serialize_entry("evidence", evidence)?;
        let refund = refunded_at.map(|refunded_at| Refund { units: REFUNDED_UNITS, refunded_at });
        map.serialize_entry("refund", &refund)?;
        map.serialize_entry("next_step", next_step)?;
        map.end()
    }
}
