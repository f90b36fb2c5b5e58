//! The overview: how the server does, the last 24 hours, and what needs a look.

use super::answer::{CommandAnswer, refusal};
use super::keys::{self, KeyCommand, KeyQuery};
use super::targets::{self, TargetCommand};
use super::tasks::{self, TaskListQuery};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::when::TimePoint;
use serde_json::{Value, json};
use std::time::Duration;
use toolwarrant_core::act::Origin;
use toolwarrant_core::tasks::TaskStatus;

const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(7 * 24);

/// More are not counted.
const COUNTED_MAX: u32 = 1_000;

pub(super) async fn describe(context: &OperatorContext, origin: &Origin) -> CommandAnswer {
    let server = context.server.as_ref().ok_or_else(|| refusal("no server runs in this process"))?;
    let mut shown = server.describe().await;
    let mut fleets = Vec::new();
    for def in context.catalogue.resources.iter().filter(|def| !def.states.is_empty()) {
        let asked = TargetCommand::States { app: None, prefix: String::new() };
        if let Ok(counted) = targets::execute(context, origin, def.name, asked).await {
            fleets.push(json!({"resource": def.name, "count": counted["count"], "states": counted["states"]}));
        }
    }
    let mut concerns = find_concerns(context, origin, shown["why_not"].as_str()).await?;
    concerns.extend(fleets.iter().filter_map(|fleet| find_unreadable(context, fleet)));
    shown["targets"] = fleets.into();
    shown["needs_a_look"] = concerns.into();
    Ok(shown)
}

/// Returns what is not as it should be, each with the command that shows it.
async fn find_concerns(
    context: &OperatorContext,
    origin: &Origin,
    unready: Option<&str>,
) -> Result<Vec<Value>, OperatorError> {
    let unready = unready.map(|why| format!("the server is not ready: {why}"));
    let statuses = vec![TaskStatus::FailedSilent.as_str().to_owned()];
    let since = Some(TimePoint::At(context.clock.latest().minus(DAY)));
    let query = TaskListQuery { statuses, since, limit: COUNTED_MAX, ..TaskListQuery::default() };
    let silent = tasks::list(context, query).await?["tasks"].as_array().map_or(0, Vec::len);
    let query = KeyQuery { ends_within: Some(WEEK), ..KeyQuery::default() };
    let ending = keys::execute(context, origin, KeyCommand::List(query)).await?;
    let ending = ending.as_array().into_iter().flatten().filter(|key| key["state"] == "live").count();
    let concerns = [
        (unready.iter().len(), unready.as_deref().unwrap_or_default(), "ready"),
        (silent, "tasks that failed silently in the last day", "task list --status=failed_silent --since=24h"),
        (ending, "keys that end, or whose older secret ends, within a week", "key list --ends-within=7d"),
    ];
    let concern = |(count, what, see): (usize, &str, &str)| json!({"count": count, "what": what, "see": see});
    Ok(concerns.into_iter().filter(|(count, ..)| *count > 0).map(concern).collect())
}

fn find_unreadable(context: &OperatorContext, fleet: &Value) -> Option<Value> {
    let def = context.catalogue.resource(fleet["resource"].as_str()?)?;
    let (resource, state) = (def.name, def.unreadable?);
    let count = fleet["states"][state].as_u64().filter(|count| *count > 0)?;
    let what = format!("{resource}s that cannot be read");
    Some(json!({"count": count, "what": what, "see": format!("{resource} list --state={state} --limit={COUNTED_MAX}")}))
}
