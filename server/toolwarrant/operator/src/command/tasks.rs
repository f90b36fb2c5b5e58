//! Commands about tasks and refunds.

use super::answer::{CommandAnswer, find_application, name_application, names, refusal};
use super::keys::parse_span;
use crate::answers::{
    ApplicationName, Counts, ListedTasks, RefundRow, RefundSum, TaskAnswer, TaskCall, TaskCounts, TaskPeriod, TaskRow,
    TaskTarget,
};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::when::TimeRange;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;
use toolwarrant_base::json;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_tasks::history::TaskHistory;
use toolwarrant_tasks::machine::explain_end;
use toolwarrant_tasks::store::{
    CallFacts, Identity, LedgerRow, Record, RefundFilter, StatusCount, StatusCounts, TaskFilter, TaskRows,
};
use toolwarrant_tasks::task::TaskId;

#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskCommand {
    /// List tasks, newest first
    ///
    /// The time of a task is that of its acceptance. The command examines at most 20,000 tasks;
    /// with --json, the answer says how many. It says where the next page begins.
    List(TaskListQuery),
    /// Count tasks by their status
    ///
    /// The time of a task is that of its acceptance.
    Count(TaskCountQuery),
    /// Show one task with its timeline, and why it ended as it did
    ///
    /// The timeline consists of phases, and ends with the task's status:
    ///
    ///   ready      the task waits to be sent, or to be sent again
    ///   baseline   the {target} is read, for a comparison after the send
    ///   sending    the request may have been sent from here on
    ///   polling    the platform has accepted the request, and is asked for the outcome
    ///   verifying  the platform has answered, or never will; the {target} is read
    #[command(verbatim_doc_comment)]
    Show {
        /// The task's id
        task: String,
    },
}

/// Selects tasks.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskListQuery {
    /// Only tasks of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only tasks of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only tasks with this status, such as dispatched while in flight; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_parser = parse_status)]
    pub statuses: Vec<TaskStatus>,
    /// Only tasks on targets of this resource
    #[arg(long, value_name = "RESOURCE")]
    pub resource: Option<String>,
    /// Only tasks on this {target}
    #[arg(long = "{target}", value_name = "{TARGET}")]
    pub target: Option<String>,
    /// Their time.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeRange,
    /// Only tasks accepted before this one: the `next` of the page before
    #[arg(long, value_name = "TASK")]
    pub before: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// Selects tasks to be counted.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskCountQuery {
    /// Only tasks of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only tasks of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only tasks on {targets} whose ids begin so
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Their time.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeRange,
    /// Examine the latest N of each status, or of all that ended; `more` names those with older
    /// ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "every")]
    pub latest: Option<u32>,
    /// Count those of each time span as well, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = parse_span, requires = "since")]
    pub every: Option<Duration>,
}

fn parse_status(text: &str) -> Result<TaskStatus, String> {
    let known = TaskStatus::ALL.iter().find(|status| status.as_str() == text).copied();
    let names = || TaskStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ");
    known.ok_or_else(|| format!("expected one of {}", names()))
}

/// Selects refunds.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefundQuery {
    /// Only refunds of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Their time.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeRange,
    /// Sum by day and application
    #[arg(long, conflicts_with_all = ["before", "limit"])]
    #[serde(default)]
    pub sums: bool,
    /// Only refunds before the one with this `number`, which --json shows: the next page
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

const EXAMINED_MAX: u32 = 20_000;

/// The refunds that are read at once.
const REFUNDS: u32 = 10_000;

pub(super) async fn list(context: &OperatorContext, query: TaskListQuery) -> Result<ListedTasks, OperatorError> {
    let names = names(context).await;
    let now = context.clock.latest();
    let TaskListQuery { app, tool, statuses, resource, target, time, before, limit } = query;
    let application = find_application(context, app.as_deref()).await?.map(|row| row.id);
    let before = before.as_deref().map(parse).transpose()?;
    let [since, until] = time.moments(now);
    let examine = EXAMINED_MAX;
    let prefix = None;
    let filter =
        TaskFilter { application, tool, statuses, resource, target, prefix, since, until, before, limit, examine };
    let TaskRows { records, examined, next } = context.store.tasks(filter).await?;
    let tasks: Vec<_> = records.iter().map(|record| line(context, record, &names)).collect();
    let is_bounded = examined == EXAMINED_MAX && next.is_some();
    let note = is_bounded.then_some("20,000 tasks were examined; older ones are on the next page");
    Ok(ListedTasks { tasks, examined, next: next.map(|id| id.to_string()), note })
}

/// The most periods of a count.
const PERIODS_MAX: u64 = 400;

pub(super) async fn count(context: &OperatorContext, query: TaskCountQuery) -> Result<TaskCounts, OperatorError> {
    let now = context.clock.latest();
    let TaskCountQuery { app, tool, prefix, time, latest, every } = query;
    let application = find_application(context, app.as_deref()).await?.map(|row| row.id);
    let [since, until] = time.moments(now);
    let examine = latest.unwrap_or(u32::MAX);
    let all = TaskFilter { application, tool, prefix, since, until, examine, ..TaskFilter::default() };
    let found = context.store.count_tasks(all.clone()).await?;
    let cut = found.iter().zip(TaskStatus::ALL).filter(|(found, _)| found.is_cut);
    let more = cut.map(|(_, status)| status.as_str()).collect();
    let mut counts = TaskCounts { tasks: counts(found), more, every: Vec::new() };
    let (Some(every), Some(mut begin)) = (every, since) else { return Ok(counts) };
    let end = until.unwrap_or(now);
    let periods = end.since(begin).as_millis().checked_div(every.as_millis()).unwrap_or(u128::MAX);
    if periods > PERIODS_MAX.into() {
        return Err(refusal(format!("that would be more than {PERIODS_MAX} time spans; name a longer one")));
    }
    while begin < end {
        let next = begin.plus(every);
        let filter = TaskFilter { since: Some(begin), until: Some(next.min(end)), ..all.clone() };
        let tasks = self::counts(context.store.count_tasks(filter).await?);
        counts.every.push(TaskPeriod { since: begin, tasks });
        begin = next;
    }
    Ok(counts)
}

fn counts(counts: StatusCounts) -> Counts {
    let counts = counts.map(|StatusCount { count, .. }| count);
    let named = TaskStatus::ALL.iter().map(|status| status.as_str()).zip(counts);
    Counts(named.filter(|(_, count)| *count > 0).collect())
}

pub(super) async fn show(context: &OperatorContext, task: &str) -> Result<Box<TaskAnswer>, OperatorError> {
    let id = TaskId::parse(task).ok_or_else(|| no_task(task))?;
    let record = context.store.task(id).await?.ok_or_else(|| no_task(task))?;
    let row = line(context, &record, &names(context).await);
    let Record { task, refunded_at, call, .. } = record;
    let call = call.map(|CallFacts { request_id, key_id, arguments }| {
        let arguments = arguments.and_then(|json| json::read(&json).ok());
        TaskCall { request_id, key_id, arguments }
    });
    let (timeline, entries) = (context.store.timeline(id).await?, context.store.entries(id).await?);
    Ok(Box::new(TaskAnswer {
        resource: row.target.arg.map(|_| row.target.resource.clone()),
        task: row,
        refunded_at,
        meaning: task.outward_status().def(context.program.catalogue).map(|state| state.meaning),
        call,
        history: TaskHistory::of(&task, timeline, &entries),
    }))
}

fn parse(task: &str) -> Result<TaskId, OperatorError> {
    TaskId::parse(task).ok_or_else(|| refusal(format!("`{task}` is not a task id")))
}

fn no_task(task: &str) -> OperatorError {
    OperatorError::not_found(format!("there is no task `{task}`; `task list` shows the latest"))
}

pub(super) async fn refunds(context: &OperatorContext, query: RefundQuery) -> CommandAnswer {
    let (names, now) = (names(context).await, context.clock.latest());
    let RefundQuery { app, time, sums, before, limit } = query;
    let limit = if sums { REFUNDS } else { limit };
    let application = find_application(context, app.as_deref()).await?.map(|row| row.id);
    let [since, until] = time.moments(now);
    let mut filter = RefundFilter { application, since, until, before, limit };
    let line = |LedgerRow { id, application, at, number, .. }: LedgerRow| {
        let application = name_application(&names, &application);
        RefundRow { refunded_at: at, application, units: 1, task_id: id.to_string(), number }
    };
    let (mut summed, mut places) = (Vec::new(), HashMap::new());
    loop {
        let rows: Vec<_> = context.store.refunds(filter.clone()).await?.into_iter().map(line).collect();
        if !sums {
            return Ok(rows.into());
        }
        filter.before = rows.last().map(|row| row.number);
        let is_last = rows.len() < limit as usize;
        add_up(&mut summed, &mut places, rows);
        if is_last {
            return Ok(summed.into());
        }
    }
}

/// Adds refunds, the latest first, to the sum at the place of their day and application.
fn add_up(sums: &mut Vec<RefundSum>, places: &mut HashMap<(String, ApplicationName), usize>, rows: Vec<RefundRow>) {
    for RefundRow { refunded_at, application, units, .. } in rows {
        let day = refunded_at.to_string().split('T').next().unwrap_or_default().to_owned();
        let place = *places.entry((day.clone(), application.clone())).or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => sum.units += units,
            None => sums.push(RefundSum { day, application, units }),
        }
    }
}

fn line(context: &OperatorContext, record: &Record, names: &HashMap<String, ApplicationName>) -> TaskRow {
    let Record { id, identity: Identity { application, resource, target, .. }, tool, created_at, task, .. } = record;
    let mut targets = context.program.catalogue.tools.iter().filter_map(|tool| tool.target.as_ref());
    TaskRow {
        task_id: id.to_string(),
        application: name_application(names, application),
        tool: tool.clone(),
        target: TaskTarget {
            resource: resource.clone(),
            id: target.clone(),
            arg: targets.next().filter(|_| context.program.catalogue.resources.len() == 1).map(|only| only.arg),
        },
        status: task.outward_status(),
        phase: task.status().is_none().then(|| task.phase.as_str()),
        attempts: task.attempts,
        created_at: *created_at,
        finished_at: task.finished_at,
        why: explain_end(task),
    }
}
