//! Finds an id of any kind, with what belongs to it.

use super::answer::CommandAnswer;
use super::tasks::TaskListQuery;
use super::trail::AuditQuery;
use super::{acts, applications, audit, keys, targets, tasks, trail};
use crate::context::OperatorContext;
use crate::error::{FailureCode, OperatorError};
use crate::when::TimePoint;
use serde_json::{Value, json};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::{ACT_PREFIX, ActFilter};

const LATEST: u32 = 5;

const LINE_DELAY: Duration = Duration::from_mins(1);

pub(super) async fn find(context: &OperatorContext, id: &str) -> CommandAnswer {
    audit::flush(context).await;
    if id.starts_with(ACT_PREFIX) {
        let found =
            acts::rows(context, ActFilter { id: Some(id.to_owned()), limit: 1, ..ActFilter::default() }).await?;
        let unknown = || OperatorError::not_found(format!("there is no act `{id}`; `acts` lists the latest"));
        let act = found.get(0).cloned().ok_or_else(unknown)?;
        return Ok(json!({"kind": "act", "act": act}));
    }
    if id.starts_with("task_") {
        let task = tasks::show(context, id).await?;
        let made_at: Option<Timestamp> = task["created_at"].as_str().and_then(|at| at.parse().ok());
        let since = made_at.map(|at| TimePoint::At(at.minus(LINE_DELAY)));
        let until = made_at.map(|at| TimePoint::At(at.plus(Duration::from_hours(1))));
        let lines = lines(context, AuditQuery { task: Some(id.to_owned()), since, until, ..AuditQuery::default() });
        return Ok(json!({"kind": "task", "task": task, "lines": lines.await?}));
    }
    if let Some(key) = existing(keys::show(context, id).await)? {
        let lines = lines(context, AuditQuery { key: Some(id.to_owned()), ..AuditQuery::default() }).await?;
        return Ok(json!({"kind": "key", "key": key, "acts": acts::latest_on(context, id).await?, "lines": lines}));
    }
    let seen_by = describe_viewers(context, id).await;
    if !seen_by.is_empty() {
        return show_target(context, id, seen_by).await;
    }
    if let Some(application) = existing(applications::show(context, id).await)? {
        let query = TaskListQuery { app: Some(id.to_owned()), limit: LATEST, ..TaskListQuery::default() };
        let tasks = tasks::list(context, query).await?["tasks"].take();
        let acts = acts::latest_on(context, application["id"].as_str().unwrap_or_default()).await?;
        return Ok(json!({"kind": "application", "application": application, "tasks": tasks, "acts": acts}));
    }
    let of_request = lines(context, AuditQuery { request: Some(id.to_owned()), ..AuditQuery::default() }).await?;
    if let Some(line) = of_request.get(0) {
        let task = match line["task_id"].as_str() {
            Some(task) => existing(tasks::show(context, task).await)?,
            None => None,
        };
        return Ok(json!({"kind": "request", "lines": of_request, "task": task}));
    }
    let shown = show_target(context, id, seen_by).await?;
    if shown["tasks"].as_array().is_none_or(Vec::is_empty) { Err(unknown(id)) } else { Ok(shown) }
}

async fn describe_viewers(context: &OperatorContext, id: &str) -> Vec<Value> {
    let (resources, rows) = (targets::resources_with(context, id).await, context.registry.applications().await);
    let describe = |resource: &str| {
        let sees = rows.iter().filter(|row| row.grants.covers(resource, id)).map(|row| &row.name);
        json!({"resource": resource, "applications": sees.collect::<Vec<_>>()})
    };
    resources.into_iter().map(describe).collect()
}

async fn show_target(context: &OperatorContext, id: &str, seen_by: Vec<Value>) -> CommandAnswer {
    let query = TaskListQuery { target: Some(id.to_owned()), limit: LATEST, ..TaskListQuery::default() };
    let tasks = tasks::list(context, query).await?["tasks"].take();
    let lines = lines(context, AuditQuery { target: Some(id.to_owned()), ..AuditQuery::default() }).await?;
    Ok(json!({"kind": "target", "seen_by": seen_by, "tasks": tasks, "lines": lines}))
}

async fn lines(context: &OperatorContext, query: AuditQuery) -> CommandAnswer {
    Ok(trail::list(context, AuditQuery { limit: LATEST, ..query }).await?["lines"].take())
}

fn existing(found: CommandAnswer) -> Result<Option<Value>, OperatorError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code == FailureCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn unknown(id: &str) -> OperatorError {
    OperatorError::not_found(format!(
        "nothing has the id `{id}`: no task, request, application, key, act or target, and the newest 1 GiB of the audit trail \
         does not name it"
    ))
}
