//! The lines of acts in the audit trail. Start at [`ActLines::write`].
//!
//! An act is stored first. Its line follows, and then the store records that it has one. After a
//! kill between these steps, the next process may write the line twice, and never misses one.

use serde::Serialize;
use std::sync::atomic::AtomicBool;
use tokio::sync::Mutex;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::act::{Act, Changes, Operator, StoredAct};
use toolwarrant_core::store::{DirectoryStore, StoreError};

const PAGE: u32 = 256;

/// In bytes. A longer line is written without the changes.
const LINE_MAX: usize = 8 << 10;

#[derive(Serialize)]
pub(crate) struct ActLine<'a> {
    pub(crate) time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) act_id: Option<&'a str>,
    pub(crate) operator: &'a Operator,
    pub(crate) command: &'a str,
    pub(crate) object: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<&'a Changes>,
    pub(crate) outcome: &'a str,
}

impl ActLine<'_> {
    pub(crate) fn write(&self, audit: &AuditHandle, now: Timestamp) -> bool {
        let whole = self.json();
        let short = || ActLine { changes: None, ..*self }.json();
        audit.write_json(now, &if whole.len() > LINE_MAX { short() } else { whole })
    }

    /// Counts the command if its operator was refused often. Returns false if the trail has no
    /// room.
    pub(crate) fn refuse(&self, audit: &AuditHandle, now: Timestamp) -> bool {
        let Self { operator: Operator { channel, uid, .. }, command, outcome, .. } = *self;
        let (operator, command) = (format!("{channel:?} {uid}"), format!("{command} {outcome}"));
        let folded = ActLine { object: None, ..*self }.json();
        audit.refuse_json(now, (&operator, &command), [&self.json(), &folded])
    }

    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub struct ActLines {
    queued: Mutex<Queued>,
    pub(crate) fails: AtomicBool,
}

#[derive(Debug, Default)]
struct Queued {
    last: u64,
    unrecorded: Vec<u64>,
}

impl ActLines {
    /// Returns true if all lines are in their files, which a full disk prevents.
    pub async fn write(
        &self,
        store: &dyn DirectoryStore,
        audit: &AuditHandle,
        clock: &Clock,
    ) -> Result<bool, StoreError> {
        let mut queued = self.queued.lock().await;
        loop {
            let acts = store.acts_without_line(queued.last, PAGE).await?;
            for StoredAct { number, act, .. } in &acts {
                let Act { id, at, operator, command, object, changes } = act;
                let object = object.as_deref();
                let (act_id, changes) = (Some(id.as_str()), Some(changes));
                let line = ActLine { time: *at, act_id, operator, command, object, changes, outcome: "ok" };
                if !line.write(audit, clock.now()) {
                    return Ok(false);
                }
                queued.last = *number;
                queued.unrecorded.push(*number);
            }
            if acts.len() < PAGE as usize {
                break;
            }
        }
        if queued.unrecorded.is_empty() {
            return Ok(true);
        }
        if !audit.flush().await {
            return Ok(false);
        }
        store.put_lines_of_acts(queued.unrecorded.clone()).await?;
        queued.unrecorded.clear();
        Ok(true)
    }
}
