//! The check that acts and their lines in the audit trail agree.

use super::found::{Found, unreadable};
use crate::data::AUDIT;
use serde::Deserialize;
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use toolwarrant_audit::visit_back;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::json;
use toolwarrant_core::act::{ActFilter, StoredAct};
use toolwarrant_store::Store;

const PAGE: u32 = 1_000;

/// The newest file, and earlier files that fit into the limit with it.
pub(super) const VERIFIED: u64 = 64 << 20;

const LINE_DELAY: Duration = Duration::from_mins(15);

#[derive(Deserialize)]
struct SeenLine {
    time: Timestamp,
    act_id: Option<String>,
}

/// Looks at the newest part of the trail. An act may still wait for its line.
pub(super) async fn find_unmatched(folder: &Path, store: &dyn Store) -> Found {
    let trail = folder.join(AUDIT);
    let read = tokio::task::spawn_blocking(move || read_lines(&trail)).await;
    let (mut lines, oldest, whole) = read.map_err(unreadable)?.map_err(unreadable)?;
    let anchor = store.audit_anchor().await?;
    let whole = whole && anchor.is_some_and(|anchor| anchor.pruned.number == 0);
    let since = oldest.filter(|_| !whole).map(|oldest| oldest.plus(LINE_DELAY));
    let written = anchor.map_or(0, |anchor| anchor.acts);
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = store.acts_of_trail(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for StoredAct { act, number } in &page {
            let is_old = since.is_some_and(|since| act.at < since);
            if lines.remove(&act.id).is_none() && *number <= written && !is_old {
                found.push(format!("{} has no line in the audit trail", act.id));
            }
        }
    }
    // These acts are older than the lines that were read, or do not exist. Some from before a
    // restore may not.
    let restored_at = store.restored_at().unwrap_or(Timestamp(0));
    for (id, time) in lines.into_iter().filter(|(_, time)| *time > restored_at) {
        let filter = ActFilter { id: Some(id.clone()), limit: 1, ..ActFilter::default() };
        if store.acts(filter).await?.is_empty() {
            found.push(format!("a line of {time} in the audit trail names {id}, which the database does not have"));
        }
    }
    Ok(found)
}

/// Returns the acts, the oldest time, and true if all lines were read.
fn read_lines(trail: &Path) -> io::Result<(HashMap<String, Timestamp>, Option<Timestamp>, bool)> {
    let (mut lines, mut oldest) = (HashMap::new(), None);
    let part = visit_back(trail, None, VERIFIED, &mut |line| {
        if let Ok(SeenLine { time, act_id }) = json::read_bytes(line) {
            oldest = Some(time);
            lines.extend(act_id.map(|id| (id, time)));
        }
        ControlFlow::Continue(())
    })?;
    Ok((lines, oldest, part.rest.is_none()))
}
