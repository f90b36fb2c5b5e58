//! Maintains the audit trail: records the newest seal, and deletes old files. Start at
//! [`AuditKeeper::start`].
//!
//! The record is in the database, so an attacker who changes only the files of the trail cannot
//! make them agree with it.

use crate::flags;
use crate::owner::remedy;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use toolwarrant_audit::retention::{self, Retention};
use toolwarrant_audit::{Anchor, Audit, AuditParts, Head};
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_core::store::{AuditStore, StoreError};

/// Nothing is deleted for its age before the first interval has passed: a clock that is wrong at a
/// start may be corrected by then.
const PRUNE_EVERY: Duration = Duration::from_hours(1);

const FILES_KEPT: u64 = 16;

const FILE_MIN: u64 = 1 << 20;

const RETRY: Duration = Duration::from_secs(10);

/// Retention of the audit trail.
#[derive(Clone, Copy, Debug, Args)]
pub struct AuditOptions {
    /// Number of days for which the audit trail is kept
    #[arg(long = flags::KEEP_DAYS, value_name = "DAYS", default_value_t = retention::DAYS,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_days: u32,

    /// Maximum size of the audit trail in bytes; its newest file, of about a sixteenth of that and
    /// at least 1 MiB, is always kept
    #[arg(long = flags::KEEP_BYTES, value_name = "BYTES", default_value_t = retention::BYTES)]
    pub keep_bytes: u64,

    /// Leave the addresses of clients out of the audit trail
    #[arg(long = flags::WITHOUT_ADDRESS)]
    pub without_address: bool,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { keep_days: retention::DAYS, keep_bytes: retention::BYTES, without_address: false }
    }
}

pub struct AuditKeeper {
    sealed: watch::Receiver<Head>,
    acts: watch::Sender<u64>,
    store: Arc<dyn AuditStore>,
    folder: PathBuf,
    options: AuditOptions,
    clock: Clock,
    anchor: Anchor,
}

impl AuditKeeper {
    /// Records the beginning of the chain if the database has no record of the trail.
    pub async fn start(
        folder: &Path,
        keyring: &KeyRing,
        clock: Clock,
        store: Arc<dyn AuditStore>,
        options: AuditOptions,
    ) -> Result<(Audit, Self), StoreError> {
        let known = store.audit_anchor().await?;
        let file_max = (options.keep_bytes / FILES_KEPT).max(FILE_MIN);
        let parts = AuditParts { folder, key: keyring.chain_key(), clock: clock.clone(), anchor: known, file_max };
        let unusable = |error| StoreError::Unavailable(format!("{error}; {}", remedy(folder, &error)));
        let audit = Audit::start(parts).map_err(unusable)?;
        let anchor = known.unwrap_or_else(|| audit.first_anchor());
        if known.is_none() {
            store.put_audit_anchor(anchor).await?;
        }
        let sealed = audit.handle().seals();
        let acts = watch::Sender::new(anchor.acts);
        Ok((audit, Self { sealed, acts, store, folder: folder.to_owned(), options, clock, anchor }))
    }

    /// Returns the sender of the number of the last act whose line is in the trail. The keeper
    /// records each number.
    pub(crate) fn acts(&self) -> watch::Sender<u64> {
        self.acts.clone()
    }

    pub async fn run(mut self) {
        let (begun, mut acts) = (self.clock.now(), self.acts.subscribe());
        let mut prune_at = begun;
        let (mut open, mut recorded) = (true, true);
        while open {
            tokio::select! {
                changed = self.sealed.changed() => open = changed.is_ok(),
                Ok(()) = acts.changed() => {}
                () = tokio::time::sleep(RETRY), if !recorded => {}
                () = self.clock.sleep_until(prune_at) => {}
            }
            let anchor = Anchor { newest: *self.sealed.borrow(), acts: *acts.borrow(), ..self.anchor };
            if self.anchor != anchor {
                recorded = self.record(anchor, recorded).await;
            }
            let (now, is_due) = (self.clock.now(), self.clock.now() >= prune_at);
            if recorded {
                self.prune(is_due && now.since(begun) >= PRUNE_EVERY).await;
            }
            if is_due {
                prune_at = now.plus(PRUNE_EVERY);
            }
        }
    }

    async fn record(&mut self, anchor: Anchor, loud: bool) -> bool {
        match self.store.put_audit_anchor(anchor).await {
            Ok(()) => self.anchor = anchor,
            Err(error) if loud => {
                tracing::error!(%error, "the newest seal of the audit cannot be recorded; retrying");
                return false;
            }
            Err(_) => return false,
        }
        true
    }

    /// Records the new beginning before it deletes files.
    async fn prune(&mut self, by_age: bool) {
        let AuditOptions { keep_days, keep_bytes, without_address: _ } = self.options;
        let retention = Retention { days: by_age.then_some(keep_days), bytes: keep_bytes };
        let (folder, now) = (self.folder.clone(), self.clock.earliest());
        let plan = match spawn_blocking(move || retention::plan(&folder, retention, now)).await {
            Ok(Ok(plan)) if !plan.is_empty() => plan,
            Ok(Ok(_)) | Err(_) => return,
            Ok(Err(error)) => return tracing::error!(%error, "the audit trail cannot be pruned; trying again later"),
        };
        let pruned = plan.pruned.unwrap_or(self.anchor.pruned);
        if !self.record(Anchor { pruned, ..self.anchor }, true).await {
            return;
        }
        let bytes = plan.bytes;
        match spawn_blocking(move || plan.remove()).await {
            Ok(Ok(files)) => tracing::info!(files, bytes, "pruned the audit trail"),
            Ok(Err(error)) => tracing::error!(%error, "the audit trail cannot be pruned; trying again later"),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
