//! Finds an id of any kind, with what belongs to it.

use super::tasks::TaskListQuery;
use super::trail::AuditQuery;
use super::{acts, applications, audit, keys, targets, tasks, trail};
use crate::answers::{FoundObject, TrailLine, Viewers};
use crate::context::OperatorContext;
use crate::error::{FailureCode, OperatorError};
use crate::when::{TimePoint, TimeRange};
use std::time::Duration;
use toolwarrant_core::act::{ACT_PREFIX, ActFilter};

const LATEST: u32 = 5;

const LINE_DELAY: Duration = Duration::from_mins(1);

pub(super) async fn find(context: &OperatorContext, id: &str) -> Result<FoundObject, OperatorError> {
    audit::flush(context).await;
    if id.starts_with(ACT_PREFIX) {
        let filter = ActFilter { id: Some(id.to_owned()), limit: 1, ..ActFilter::default() };
        let unknown = || OperatorError::not_found(format!("there is no act `{id}`; `acts` lists the latest"));
        let act = acts::rows(context, filter).await?.into_iter().next().ok_or_else(unknown)?;
        return Ok(FoundObject::Act { act: Box::new(act) });
    }
    if id.starts_with("task_") {
        let task = tasks::show(context, id).await?;
        let made_at = task.task.created_at;
        let bounds = [made_at.minus(LINE_DELAY), made_at.plus(Duration::from_hours(1))];
        let [since, until] = bounds.map(|at| Some(TimePoint::At(at)));
        let time = TimeRange { since, until };
        let lines = lines(context, AuditQuery { task: Some(id.to_owned()), time, ..AuditQuery::default() });
        return Ok(FoundObject::Task { task, lines: lines.await? });
    }
    if let Some(key) = existing(keys::show(context, id).await)? {
        let lines = lines(context, AuditQuery { key: Some(id.to_owned()), ..AuditQuery::default() }).await?;
        return Ok(FoundObject::Key { key: Box::new(key), acts: acts::latest_on(context, id).await?, lines });
    }
    let seen_by = list_viewers(context, id).await;
    if !seen_by.is_empty() {
        return show_target(context, id, seen_by).await;
    }
    if let Some(application) = existing(applications::show(context, id).await)? {
        let query = TaskListQuery { app: Some(id.to_owned()), limit: LATEST, ..TaskListQuery::default() };
        let tasks = tasks::list(context, query).await?.tasks;
        let acts = acts::latest_on(context, &application.application.id).await?;
        return Ok(FoundObject::Application { application, tasks, acts });
    }
    let lines = lines(context, AuditQuery { request: Some(id.to_owned()), ..AuditQuery::default() }).await?;
    if let Some(line) = lines.first() {
        let task = match line.read().and_then(|line| line.task_id) {
            Some(task) => existing(tasks::show(context, &task).await)?,
            None => None,
        };
        return Ok(FoundObject::Request { lines, task });
    }
    match show_target(context, id, seen_by).await? {
        FoundObject::Target { tasks, .. } if tasks.is_empty() => Err(unknown(id)),
        found => Ok(found),
    }
}

async fn list_viewers(context: &OperatorContext, id: &str) -> Vec<Viewers> {
    let (resources, rows) = (targets::resources_with(context, id).await, context.registry.applications().await);
    let viewers = |resource: &'static str| {
        let sees = rows.iter().filter(|row| row.grants.covers(resource, id)).map(|row| row.name.clone());
        Viewers { resource, applications: sees.collect() }
    };
    resources.into_iter().map(viewers).collect()
}

async fn show_target(context: &OperatorContext, id: &str, seen_by: Vec<Viewers>) -> Result<FoundObject, OperatorError> {
    let query = TaskListQuery { target: Some(id.to_owned()), limit: LATEST, ..TaskListQuery::default() };
    let tasks = tasks::list(context, query).await?.tasks;
    let lines = lines(context, AuditQuery { target: Some(id.to_owned()), ..AuditQuery::default() }).await?;
    Ok(FoundObject::Target { seen_by, tasks, lines })
}

async fn lines(context: &OperatorContext, query: AuditQuery) -> Result<Vec<TrailLine>, OperatorError> {
    Ok(trail::list(context, AuditQuery { limit: LATEST, ..query }).await?.lines)
}

fn existing<T>(found: Result<T, OperatorError>) -> Result<Option<T>, OperatorError> {
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
