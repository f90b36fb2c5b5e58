//! The tasks extension of the protocol: the host of a model follows a task by itself.
//!
//! A call that makes a task is answered with the task, if its request declares the extension. The
//! host then asks with `tasks/get`, which reads the task with the contract's own tool: rights,
//! errors and audit line are those of that tool. Each end is `completed`, because it is an answer.
//! `tasks/cancel` changes nothing, because nothing that was sent can be taken back.

use super::answers::{Answers, EXTENSION};
use bytes::Bytes;
use serde::Serialize;
use serde::de::Error;
use serde_json::json;
use serde_json::value::RawValue;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::wording::Words;
use toolwarrant_base::{json, words};
use toolwarrant_core::catalogue::{Catalogue, PermissionSet, ToolDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::reply::{Answer, AnsweredTask};
use toolwarrant_core::revision::Revision;
use toolwarrant_core::tasks::KEPT;

/// Returns true if an application with these permissions can make tasks and read them.
pub(super) fn is_offered(catalogue: &Catalogue, permissions: PermissionSet) -> bool {
    let may_call = |tool: &ToolDef| permissions.covers(tool.right);
    catalogue.followed.is_some_and(may_call) && catalogue.tools.iter().any(|tool| tool.task.is_some() && may_call(tool))
}

pub(super) fn missing_capability(catalogue: &Catalogue) -> Failure {
    let what = words!["the request does not declare the extension `", EXTENSION, "`"];
    let failure = Failure::new(catalogue.roles.missing_capability, what);
    failure.with("requiredCapabilities", json!({"extensions": {EXTENSION: {}}}))
}

/// Replaces the errors of the tool that reads tasks. All ids without an answer get the same.
pub(super) fn conceal(catalogue: &Catalogue, permissions: PermissionSet, failure: Failure) -> Failure {
    let roles = &catalogue.roles;
    if ![roles.not_found, roles.invalid_argument].contains(&failure.def()) {
        return failure;
    }
    let days = KEPT.as_secs() / (24 * 60 * 60);
    let what = words!["no such task for this application; one is kept for ", days, " days after its end"];
    let advice = catalogue.phrases.lost_task;
    Failure::new(roles.invalid_params, what).with_advice(advice, permissions).for_reader(permissions)
}

/// Writes the plain answer of a call: as a task, or as a result if nothing of the call was sent.
pub(super) fn write_call(
    answers: &Answers,
    catalogue: &Catalogue,
    (id, revision): (&str, Revision),
    answer: Answer,
) -> serde_json::Result<Answer> {
    let made = answer.task().filter(|task| task.is_same).map(|task| members(catalogue, task));
    let json = Bytes::from(answer);
    let told: &RawValue = json::read_bytes(&json)?;
    match made {
        Some(members) => Ok(answers.new_task(id, &members?, told)),
        None => Answer::of(&told, answers.frame(id, revision)),
    }
}

/// Writes the plain answer of the tool that reads tasks.
pub(super) fn write_task(
    answers: &Answers,
    catalogue: &Catalogue,
    id: &str,
    answer: Answer,
) -> serde_json::Result<Answer> {
    let task = answer.task().ok_or_else(|| serde_json::Error::custom("the answer has no task"))?;
    let (members, has_ended) = (members(catalogue, task)?, task.status.is_terminal());
    match has_ended {
        true => answers.task_with_result(id, &members, json::read_bytes(&Bytes::from(answer))?),
        false => Ok(answers.task(id, &members)),
    }
}

/// Returns the members of a task as JSON, without its braces.
fn members(catalogue: &Catalogue, task: &AnsweredTask) -> serde_json::Result<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct TaskMembers<'a> {
        task_id: &'a str,
        status: &'static str,
        status_message: Words,
        created_at: Timestamp,
        last_updated_at: Timestamp,
        ttl_ms: u128,
        poll_interval_ms: u64,
    }
    let AnsweredTask { id: task_id, status, created_at, finished_at, .. } = task;
    let (protocol_status, status_message) = match status.is_terminal() {
        true => ("completed", status.def(catalogue).map_or("", |state| state.meaning).into()),
        false => ("working", catalogue.phrases.under_way.for_reader(PermissionSet::NONE)),
    };
    let (created_at, last_updated_at) = (*created_at, finished_at.unwrap_or(*created_at));
    let members = serde_json::to_string(&TaskMembers {
        task_id,
        status: protocol_status,
        status_message,
        created_at,
        last_updated_at,
        ttl_ms: (KEPT + last_updated_at.since(created_at)).as_millis(),
        poll_interval_ms: 1_000 * u64::from(catalogue.service.poll_interval_seconds),
    })?;
    Ok(members.trim_start_matches('{').trim_end_matches('}').to_owned())
}
