//! The lines of acts in the audit trail.
//!
//! An act is stored first. Its line follows, and then the store records that it has one. So after a
//! kill between these steps, the next process writes the line. It may write a line twice, and never
//! misses one.

use serde::Serialize;
use std::sync::atomic::AtomicBool;
use tokio::sync::Mutex;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::act::{Act, Changes, Operator, StoredAct};
use toolwarrant_core::store::{DirectoryStore, StoreError};

/// Number of acts per read.
const PAGE: u32 = 256;

/// Longest line, in bytes. A longer one is written without the changes.
const LINE_MAX: usize = 8 << 10;

/// The line of an act, or of a command that was refused.
#[derive(Serialize)]
pub(crate) struct ActLine<'a> {
    pub(crate) time: Timestamp,
    /// The id of the act; absent if the command was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) act_id: Option<&'a str>,
    pub(crate) operator: &'a Operator,
    pub(crate) command: &'a str,
    pub(crate) object: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<&'a Changes>,
    /// `ok`, or the code of the failure.
    pub(crate) outcome: &'a str,
}

impl ActLine<'_> {
    /// Queues the line. Returns false if the trail has no room for it.
    pub(crate) fn write(&self, audit: &AuditHandle, now: Timestamp) -> bool {
        let whole = self.json();
        let short = || ActLine { changes: None, ..*self }.json();
        audit.write_json(now, &if whole.len() > LINE_MAX { short() } else { whole })
    }

    /// Queues the line of a refused command, or counts the command if its operator was refused
    /// often. Returns false if the trail has no room for it.
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

/// Writes the lines of stored acts.
#[derive(Debug, Default)]
pub struct ActLines {
    queued: Mutex<Queued>,
    /// Set while the store fails.
    pub(crate) fails: AtomicBool,
}

/// The acts whose lines this process has queued.
#[derive(Debug, Default)]
struct Queued {
    /// The highest number.
    last: u64,
    /// The numbers that the store does not have as written yet.
    unrecorded: Vec<u64>,
}

impl ActLines {
    /// Writes the line of every act that has none. Returns false if some lines are not in their
    /// files yet, for example on a full disk: the caller tries again later.
    ///
    /// # Errors
    /// The store cannot be read or written.
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
