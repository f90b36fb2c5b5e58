//! The lines of acts in the audit trail. Start at [`ActLines::write`].
//!
//! An act is stored first. Its line follows, and then the store records the number of the last act
//! with a line, next to the newest seal. After a kill between these steps, the next process
//! continues after that number: it may write a line twice, and never misses one.

use crate::keeping::AuditKeeper;
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::act::{Act, Changes, Operator, StoredAct};
use toolwarrant_core::store::{AuditStore, DirectoryStore, StoreError};

const PAGE: u32 = 256;

const RECORD_INTERVAL: Duration = Duration::from_millis(10);
const RECORD_TIMEOUT: Duration = Duration::from_secs(2);

/// In bytes. A longer line is written without the changes.
const LINE_MAX: usize = 8 << 10;

#[derive(Serialize)]
pub(crate) struct ActLine<'a> {
    pub(crate) time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) act_id: Option<&'a str>,
    /// Of the call that a command made, if it left no act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a str>,
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

/// The lines of acts in the trail of this process.
#[derive(Debug, Default)]
pub struct ActLines {
    /// The number of the last act whose line is queued.
    queued: Mutex<u64>,
    /// The number of the last act whose line is in its file.
    written: watch::Sender<u64>,
    pub(crate) fails: AtomicBool,
}

impl ActLines {
    /// Continues after the acts whose lines are in the trail.
    #[must_use]
    pub fn of(keeper: &AuditKeeper) -> Self {
        let written = keeper.acts();
        let last = *written.borrow();
        Self { queued: Mutex::new(last), written, fails: AtomicBool::default() }
    }

    /// Returns true if all lines are in their files, which a full disk prevents.
    pub async fn write(
        &self,
        store: &dyn DirectoryStore,
        audit: &AuditHandle,
        clock: &Clock,
    ) -> Result<bool, StoreError> {
        let mut queued = self.queued.lock().await;
        loop {
            let acts = store.acts_of_trail(*queued, PAGE).await?;
            for StoredAct { number, act } in &acts {
                let Act { id, at, operator, command, object, changes } = act;
                let object = object.as_deref();
                let (act_id, changes) = (Some(id.as_str()), Some(changes));
                let (time, request_id, outcome) = (*at, None, "ok");
                let line = ActLine { time, act_id, request_id, operator, command, object, changes, outcome };
                if !line.write(audit, clock.now()) {
                    return Ok(false);
                }
                *queued = *number;
            }
            if acts.len() < PAGE as usize {
                break;
            }
        }
        if *self.written.borrow() == *queued {
            return Ok(true);
        }
        let is_written = audit.flush().await;
        if is_written {
            self.written.send_replace(*queued);
        }
        Ok(is_written)
    }

    /// Waits until the store has the number of the last act with a line, which the keeper puts
    /// there. A copy from before would write that line again.
    pub(crate) async fn wait_until_recorded(&self, store: &dyn AuditStore) {
        let last = *self.written.borrow();
        let recorded = async {
            while store.audit_anchor().await.is_ok_and(|anchor| anchor.is_some_and(|anchor| anchor.acts < last)) {
                sleep(RECORD_INTERVAL).await;
            }
        };
        let _ = timeout(RECORD_TIMEOUT, recorded).await;
    }
}
