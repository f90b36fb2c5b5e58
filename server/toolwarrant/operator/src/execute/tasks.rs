//! Commands about tasks and refunds.

use super::answer::{Answer, names, refusal};
use crate::command::TaskCommand;
use crate::context::OperatorContext;
use crate::error::OperatorError;
use serde_json::{Value, json};
use std::collections::HashMap;
use toolwarrant_base::text::clean;
use toolwarrant_tasks::store::{LedgerRow, Record, TaskFilter, TimelineEvent};
use toolwarrant_tasks::task::TaskId;

pub(super) async fn execute(context: &OperatorContext, command: TaskCommand) -> Answer {
    let names = names(context).await;
    match command {
        TaskCommand::List { app, target, limit } => {
            let application = match app {
                Some(app) => Some(context.registry.find(&app).await?.id),
                None => None,
            };
            let records = context.store.tasks(TaskFilter { application, target, before: None, limit }).await?;
            Ok(records.iter().map(|record| line(context, record, &names)).collect())
        }
        TaskCommand::Show { task } => {
            let id = TaskId::parse(&task).ok_or_else(|| refusal(format!("`{task}` is not a task id")))?;
            let record = context.store.task(id).await?.ok_or_else(|| no_task(&task))?;
            let Record { task, refunded_at, .. } = &record;
            let mut shown = line(context, &record, &names);
            shown["deadline_at"] = json!(task.deadline_at);
            shown["refunded_at"] = json!(refunded_at);
            shown["meaning"] = json!(task.outward_status().def(context.catalogue).map(|state| state.meaning));
            shown["evidence"] = json!(task.evidence());
            let timeline = context.store.timeline(id).await?;
            let event = |TimelineEvent { at, phase, what }: &TimelineEvent| json!({"at": at, "phase": phase, "what": clean(what)});
            shown["timeline"] = timeline.iter().map(event).collect();
            Ok(shown)
        }
    }
}

fn no_task(task: &str) -> OperatorError {
    OperatorError::not_found(format!("there is no task `{task}`; `task list` shows the latest"))
}

/// Number of ledger entries per read.
const LEDGER_PAGE: u32 = 1_000;

/// Lists refunds, newest first.
pub(super) async fn refunds(context: &OperatorContext, limit: usize) -> Answer {
    let names = names(context).await;
    let (mut last, mut refunds) = (0, Vec::new());
    loop {
        let page = context.store.ledger(last, LEDGER_PAGE).await?;
        let Some(entry) = page.last() else { break };
        last = entry.number;
        refunds.extend(page.into_iter().filter(|entry| entry.kind == "refund"));
    }
    let line = |LedgerRow { id, application, at, .. }: LedgerRow| {
        let application = names.get(&application).unwrap_or(&application);
        json!({"refunded_at": at, "application": application, "units": 1, "task_id": id.to_string()})
    };
    Ok(refunds.into_iter().rev().take(limit).map(line).collect())
}

/// Returns a task as a row of a list. If the contract has one resource, the argument of the tools
/// names its target. If it has several, the row also has the resource, because targets of different
/// resources can have the same id.
fn line(context: &OperatorContext, record: &Record, names: &HashMap<String, String>) -> Value {
    let Record { id, application, tool, resource, target, created_at, task, .. } = record;
    let application = names.get(application).unwrap_or(application);
    let mut line = json!({"task_id": id.to_string(), "application": application, "tool": tool});
    let mut targets = context.catalogue.tools.iter().filter_map(|tool| tool.target.as_ref());
    match (context.catalogue.resources, targets.next()) {
        ([_], Some(only)) => line[only.arg] = json!(target),
        _ => (line["resource"], line["target"]) = (json!(resource), json!(target)),
    }
    line["status"] = json!(task.outward_status().as_str());
    // Null for an ended task.
    line["phase"] = json!(task.status().is_none().then(|| task.phase.as_str()));
    line["attempts"] = json!(task.attempts);
    line["created_at"] = json!(created_at);
    line["finished_at"] = json!(task.finished_at);
    line
}
