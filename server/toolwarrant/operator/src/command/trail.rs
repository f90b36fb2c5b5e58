//! Finds lines of the audit trail.

use super::answer::{find_application, names, refusal, resolve};
use super::targets;
use crate::answers::{AuditLine, AuditPage, TrailLine};
use crate::context::OperatorContext;
use crate::data::AUDIT;
use crate::error::OperatorError;
use crate::when::TimeRange;
use clap::Args;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::spawn_blocking;
use toolwarrant_audit::{TrailPlace, VisitedPart, visit_back};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;

/// Selects lines of the audit trail.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditQuery {
    /// Only calls of this application: a name or an id
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Only calls with this key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only calls with this {target}, and acts on this application or key
    #[arg(long = "on", value_name = "ID")]
    pub target: Option<String>,
    /// Only lines with this outcome: ok, or the code of a failure
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Option<String>,
    /// Only the call with this request id
    #[arg(long, value_name = "ID")]
    pub request: Option<String>,
    /// Only calls that made or read this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Only acts of this user, as the server's machine names it
    #[arg(long, value_name = "USER")]
    pub operator: Option<String>,
    /// Their time.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeRange,
    /// Only lines before this place: the `next` of the page before
    #[arg(long, value_name = "PLACE")]
    pub before: Option<String>,
    /// Maximum number of lines
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

const EXAMINED_MAX: u64 = 1 << 30;

pub(super) async fn list(context: &OperatorContext, query: AuditQuery) -> Result<AuditPage, OperatorError> {
    let now = context.clock.latest();
    let AuditQuery { app, key, tool, target, outcome, request, task, operator, time, before, limit } = query;
    let app = find_application(context, app.as_deref()).await?.map(|row| row.id);
    let target = match target {
        // A target comes before an application of that name.
        Some(named) if targets::resources_with(context, &named).await.is_empty() => {
            Some(resolve(context, &named).await.unwrap_or(named))
        }
        Some(named) => Some(named),
        None => None,
    };
    let [since, until] = time.moments(now);
    let before = before.map(|place| parse_place(&place)).transpose()?;
    let last = until.map(|until| until.minus(Duration::from_millis(1)).to_string());
    let end = last.as_deref().and_then(|last| last.split('T').next());
    // It sorts after all files of the day.
    let end = end.map(|day| TrailPlace { day: format!("{day}~"), offset: 0 });
    let until = until.map(|until| until.to_string());
    let wanted = Wanted::new([app, key, tool, target, outcome, request, task, operator]);
    let since = since.map(|since| since.to_string());
    let (mut lines, mut back_to) = (Vec::new(), None);
    let found = read(context.folder.join(AUDIT), move |folder| {
        let part = visit_back(folder, before.or(end).as_ref(), EXAMINED_MAX, &mut |line| {
            let time = time_of(line);
            let is_before =
                |limit: &Option<String>| time.zip(limit.as_deref()).is_some_and(|(time, limit)| time < limit);
            let day = |text: &str| text.split('T').next().map(str::to_owned);
            if is_before(&since) && time.and_then(day) < since.as_deref().and_then(day) {
                return ControlFlow::Break(());
            }
            back_to = time.map(str::to_owned).or(back_to.take());
            if !is_before(&since) && (until.is_none() || is_before(&until)) {
                lines.extend(wanted.parse(line));
            }
            if lines.len() < limit as usize { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok((lines, back_to, part))
    });
    let (mut lines, back_to, VisitedPart { bytes, rest }) = found.await?;
    let names = names(context).await;
    for line in &mut lines {
        let name = line.read().and_then(|line| line.application).and_then(|id| names.get(&id));
        if let (Some(name), Some(members)) = (name, line.0.as_object_mut()) {
            members.insert("application_name".to_owned(), name.to_string().into());
        }
    }
    let next = rest.filter(|_| lines.len() == limit as usize || bytes >= EXAMINED_MAX);
    let next = next.map(|TrailPlace { day, offset }| format!("{day}:{offset}"));
    Ok(AuditPage { lines, examined_bytes: bytes, examined_back_to: back_to, next })
}

/// The values that a line must have, in the order of [`Self::parse`].
struct Wanted([Option<String>; 8], Vec<Finder<'static>>);

impl Wanted {
    fn new(wanted: [Option<String>; 8]) -> Self {
        let finder = |value: &String| Finder::new(&Value::from(value.as_str()).to_string()).into_owned();
        let finders = wanted.iter().flatten().map(finder).collect();
        Self(wanted, finders)
    }

    /// Searches for the bytes first, because that is cheaper than parsing.
    fn parse(&self, line: &[u8]) -> Option<TrailLine> {
        let Self(wanted, finders) = self;
        if !finders.iter().all(|finder| finder.find(line).is_some()) {
            return None;
        }
        let parsed: TrailLine = json::read_bytes(line).ok()?;
        let AuditLine {
            application, key_id, tool, target, object, outcome, request_id, act_id, task_id, operator, ..
        } = parsed.read().unwrap_or_default();
        let (operator, request) = (operator.map(|operator| operator.name), request_id.or(act_id));
        let found = [application, key_id, tool, target.or(object), outcome, request, task_id, operator];
        wanted.iter().zip(&found).all(|(wanted, found)| wanted.is_none() || wanted == found).then_some(parsed)
    }
}

fn time_of(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(b"{\"time\":\"")?;
    let time = rest.get(..Timestamp(0).to_string().len())?;
    str::from_utf8(time).ok()
}

fn parse_place(text: &str) -> Result<TrailPlace, OperatorError> {
    let parsed = text
        .split_once(':')
        .and_then(|(day, offset)| Some(TrailPlace { day: day.to_owned(), offset: offset.parse().ok()? }));
    parsed.ok_or_else(|| refusal(format!("{text:?} is not a place; use the `next` of the page before")))
}

pub(super) async fn read<T: Send + 'static>(
    folder: PathBuf,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, OperatorError> {
    let path = folder.display().to_string();
    let read = spawn_blocking(move || work(&folder)).await.map_err(|error| refusal(error.to_string()))?;
    read.map_err(|error| refusal(format!("{path}: {error}")))
}
