//! Commands about tasks and refunds.

use super::{Answer, answer, names, refused};
use crate::cli::resources;
use crate::command::TaskCommand;
use crate::context::OperatorContext;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::tasks::Evidence;
use toolwarrant_core::text::{Remark, cleaned};
use toolwarrant_tasks::store::{Record, TaskFilter};
use toolwarrant_tasks::task::TaskId;

/// A task in a list.
#[derive(Serialize)]
struct TaskLine {
    task_id: String,
    application: String,
    tool: String,
    /// The target, under the name of the argument that names it; of several resources, which one and its id.
    #[serde(flatten)]
    target: Map<String, Value>,
    status: &'static str,
    /// The phase of a task in flight; null once it has ended.
    phase: Option<&'static str>,
    attempts: u8,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
}

/// A task in detail, with everything that happened to it.
#[derive(Serialize)]
struct TaskAnswer {
    #[serde(flatten)]
    line: TaskLine,
    deadline_at: Timestamp,
    refunded_at: Option<Timestamp>,
    meaning: Option<&'static str>,
    evidence: Option<EvidenceAnswer>,
    timeline: Vec<TimelineLine>,
}

#[derive(Serialize)]
struct EvidenceAnswer {
    checked: String,
    expected: Remark,
    observed: Remark,
    reported: &'static str,
    checked_at: Timestamp,
}

#[derive(Serialize)]
struct TimelineLine {
    at: Timestamp,
    phase: &'static str,
    what: String,
}

/// A refund in a list.
#[derive(Serialize)]
struct RefundLine {
    refunded_at: Timestamp,
    application: String,
    units: u32,
    task_id: String,
}

pub(super) async fn execute(context: &OperatorContext, command: TaskCommand) -> Answer {
    let names = names(context).await;
    match command {
        TaskCommand::List { app, target, limit } => {
            let application = match app {
                Some(app) => Some(context.registry.find(&app).await?.id),
                None => None,
            };
            let records = context.store.tasks(TaskFilter { application, target, before: None, limit }).await?;
            answer(records.iter().map(|record| line(context, record, &names)).collect::<Vec<_>>())
        }
        TaskCommand::Show { task } => {
            let id = TaskId::parse(&task).ok_or_else(|| refused(format!("`{task}` is no task id")))?;
            let record = context.store.task(id).await?.ok_or_else(|| refused(format!("there is no task `{task}`")))?;
            let line = line(context, &record, &names);
            let timeline = context.store.timeline(id).await?.into_iter();
            answer(TaskAnswer {
                deadline_at: record.task.deadline_at,
                refunded_at: record.refunded_at,
                meaning: record.task.outward_status().def(context.catalogue).map(|state| state.meaning),
                evidence: record.task.evidence().map(evidence),
                timeline: timeline
                    .map(|event| TimelineLine {
                        at: event.at,
                        phase: event.phase,
                        what: cleaned(&event.what).into_owned(),
                    })
                    .collect(),
                line,
            })
        }
    }
}

/// Number of ledger entries that are read at a time.
const LEDGER_PAGE: u32 = 1_000;

/// Lists refunds, the latest first.
pub(super) async fn refunds(context: &OperatorContext, limit: usize) -> Answer {
    let names = names(context).await;
    let (mut last, mut refunds) = (0, Vec::new());
    loop {
        let page = context.store.ledger(last, LEDGER_PAGE).await?;
        let Some(entry) = page.last() else { break };
        last = entry.number;
        refunds.extend(page.into_iter().filter(|entry| entry.kind == "refund"));
    }
    let line = |entry: toolwarrant_tasks::store::LedgerRow| RefundLine {
        refunded_at: entry.at,
        application: names.get(&entry.application).unwrap_or(&entry.application).clone(),
        units: 1,
        task_id: entry.id.to_string(),
    };
    answer(refunds.into_iter().rev().take(limit).map(line).collect::<Vec<_>>())
}

fn line(context: &OperatorContext, record: &Record, names: &HashMap<String, String>) -> TaskLine {
    let Record { id, application, tool, created_at, task, .. } = record;
    TaskLine {
        task_id: id.to_string(),
        application: names.get(application).unwrap_or(application).clone(),
        tool: tool.clone(),
        target: target(context.catalogue, record),
        status: task.outward_status().as_str(),
        phase: task.status().is_none().then(|| task.phase.as_str()),
        attempts: task.attempts,
        created_at: *created_at,
        finished_at: task.finished_at,
    }
}

/// What a task is on. If the contract has one resource, its name is the argument of the tools. Things of several resources can have
/// the same id, so each is listed with its resource.
fn target(catalogue: &Catalogue, Record { resource, target, .. }: &Record) -> Map<String, Value> {
    let mut targets = catalogue.tools.iter().filter_map(|tool| tool.target.as_ref());
    let members = match (resources(catalogue).len(), targets.next()) {
        (1, Some(only)) => vec![(only.arg, json!(target))],
        _ => vec![("resource", json!(resource)), ("target", json!(target))],
    };
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn evidence(Evidence { checked, expected, observed, reported, at }: Evidence) -> EvidenceAnswer {
    EvidenceAnswer { checked, expected, observed, reported: reported.as_str(), checked_at: at }
}
