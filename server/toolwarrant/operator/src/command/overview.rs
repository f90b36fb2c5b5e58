//! The overview: how the server does, the last 24 hours, and what needs a look.

use super::answer::refusal;
use super::keys::{self, KeyQuery};
use super::targets;
use super::tasks::{self, TaskCountQuery};
use crate::answers::{Concern, KeyState, ListCommand, OverviewAnswer, StateCounts, TargetCounts};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::when::{TimePoint, TimeRange};
use std::collections::BTreeMap;
use std::time::Duration;
use toolwarrant_core::catalogue::ResourceDef;
use toolwarrant_core::tasks::TaskStatus;

const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(7 * 24);

/// More are not listed.
const COUNTED_MAX: u32 = 1_000;

pub(super) async fn describe(context: &OperatorContext) -> Result<OverviewAnswer, OperatorError> {
    let server = context.server.as_ref().ok_or_else(|| refusal("no server runs in this process"))?;
    let server = server.describe().await;
    let (mut targets, mut needs_a_look) = (Vec::new(), find_concerns(context, server.why_not.as_deref()).await?);
    for def in context.program.catalogue.resources.iter().filter(|def| !def.states.is_empty()) {
        if let Ok(StateCounts { count, states, .. }) = targets::count_states(context, def, None, String::new()).await {
            needs_a_look.extend(find_unreadable(def, &states));
            targets.push(TargetCounts { resource: def.name, count, states });
        }
    }
    Ok(OverviewAnswer { server, targets, needs_a_look })
}

/// Returns what is not as it should be, each with the command that shows it.
async fn find_concerns(context: &OperatorContext, unready: Option<&str>) -> Result<Vec<Concern>, OperatorError> {
    let concern = |count, what: &str, words: &[&'static str], flags: &[(&'static str, &str)]| {
        let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Concern { count, what: what.to_owned(), see: ListCommand { words: words.to_vec(), flags } }
    };
    let unready = unready.map(|why| concern(1, &format!("the server is not ready: {why}"), &["ready"], &[]));
    let time = TimeRange { since: Some(TimePoint::Span(DAY)), until: None };
    let query = TaskCountQuery { time, ..TaskCountQuery::default() };
    let counts = tasks::count(context, query).await?.tasks;
    let ends = [
        (TaskStatus::FailedSilent, "tasks that failed silently in the last day"),
        (TaskStatus::Failed, "tasks that failed in the last day"),
        (TaskStatus::Timeout, "tasks of the last day whose outcome is unknown"),
    ];
    let ends = ends.map(|(status, what)| {
        let count = counts.0.iter().find(|(name, _)| *name == status.as_str()).map_or(0, |(_, count)| *count as usize);
        concern(count, what, &["task", "list"], &[("status", status.as_str()), ("since", "24h")])
    });
    let query = KeyQuery { ends_within: Some(WEEK), ..KeyQuery::default() };
    let ending = keys::list(context, &query, |_| true).await?;
    let ending = ending.iter().filter(|key| key.state == KeyState::Live).count();
    let what = "keys that end, or whose older secret ends, within a week";
    let ending = concern(ending, what, &["key", "list"], &[("ends-within", "7d")]);
    Ok(unready.into_iter().chain(ends).chain([ending]).filter(|concern| concern.count > 0).collect())
}

fn find_unreadable(def: &ResourceDef, states: &BTreeMap<&str, u64>) -> Option<Concern> {
    let (resource, state) = (def.name, def.unreadable?);
    let count = *states.get(state).filter(|count| **count > 0)?;
    let what = format!("{resource}s that cannot be read");
    let flags = vec![("state", state.to_owned()), ("limit", COUNTED_MAX.to_string())];
    Some(Concern { count: count as usize, what, see: ListCommand { words: vec![resource, "list"], flags } })
}
