//! Changes that are in force and not stored yet.
//!
//! A change that takes authority away applies at once, also on a full disk. Its row then waits here
//! with its acts, until the store takes both in one transaction. If another replica changes the row
//! meanwhile, what was taken away stays so.

use super::edits::{DirectoryRow, Pending, RowId};
use super::replicas::{ATTEMPTS, OVERTAKEN};
use super::{Durability, Known, Registry};
use crate::act::Act;
use crate::store::{ApplicationRow, KeyRow, StoreError};

impl Registry {
    /// Stores all pending changes.
    pub async fn settle(&self) -> Durability {
        let mut known = self.known.lock().await;
        while let Some(row) = known.pending.keys().next().cloned() {
            if let Err(why) = self.store(&mut known, &row).await {
                return Durability::Owed(why);
            }
            if known.pending.is_empty() {
                tracing::info!("all revocations of applications and keys are on the disk");
            }
        }
        Durability::Stored
    }

    /// Stores a pending row.
    pub(super) async fn store(&self, known: &mut Known, id: &RowId) -> Result<(), String> {
        for _ in 0..ATTEMPTS {
            let (Some(row), Some(pending)) = (known.row(id), known.pending.get(id)) else { return Ok(()) };
            let acts = pending.acts.clone();
            match self.within_patience(self.put(known, &row, acts)).await {
                Ok(true) => {
                    known.pending.remove(id);
                    self.say_in_force(known);
                    return Ok(());
                }
                Ok(false) => self.pull(known).await.map_err(|error| error.to_string())?,
                Err(error) => return Err(self.describe_pending(&error)),
            }
        }
        Err(OVERTAKEN.to_owned())
    }

    /// Says why a change is pending.
    pub(super) fn describe_pending(&self, error: &StoreError) -> String {
        match self.cluster {
            Some(_) => format!("{error}; until then, other replicas do not know of it"),
            None => error.to_string(),
        }
    }
}

impl Known {
    /// Adds an act to the pending ones of a row, which was stored as `before`.
    pub(super) fn add_pending(&mut self, before: DirectoryRow, act: Act) {
        let pending = self.pending.entry(before.id());
        pending.or_insert_with(|| Pending { before, acts: Vec::new() }).acts.push(act);
    }

    /// Returns a row as it is in force.
    fn row(&self, id: &RowId) -> Option<DirectoryRow> {
        match id {
            RowId::Application(id) => self.applications.get(id).map(|(row, _)| DirectoryRow::Application(row.clone())),
            RowId::Key(id) => self.keys.get(id).cloned().map(DirectoryRow::Key),
        }
    }

    /// Takes from a row of another replica what a pending change has taken away.
    pub(super) fn merge_application(&mut self, row: &mut ApplicationRow) {
        let pending = self.pending.get_mut(&RowId::Application(row.id.clone()));
        let (Some(Pending { before, .. }), Some((ours, _))) = (pending, self.applications.get(&row.id)) else { return };
        let DirectoryRow::Application(former) = std::mem::replace(before, DirectoryRow::Application(row.clone()))
        else {
            return;
        };
        row.permissions.retain(|held| ours.permissions.contains(held) || !former.permissions.contains(held));
        if ours.requests_per_minute != former.requests_per_minute {
            row.requests_per_minute = row.requests_per_minute.min(ours.requests_per_minute);
        }
        if ours.grants != former.grants {
            row.grants = row.grants.intersection(&ours.grants);
        }
        if ours.suspended_at != former.suspended_at {
            row.suspended_at = row.suspended_at.or(ours.suspended_at);
        }
        if let (Some(at), None) = (ours.deleted_at, row.deleted_at) {
            row.delete(at);
        }
    }

    /// Takes from a row of another replica what a pending change has taken away.
    pub(super) fn merge_key(&mut self, row: &mut KeyRow) {
        let pending = self.pending.get_mut(&RowId::Key(row.id.clone()));
        let (Some(Pending { before, .. }), Some(ours)) = (pending, self.keys.get(&row.id)) else { return };
        let DirectoryRow::Key(former) = std::mem::replace(before, DirectoryRow::Key(row.clone())) else { return };
        row.secrets.retain_mut(|secret| {
            let find = |row: &KeyRow| row.secrets.iter().find(|known| known.verifier == secret.verifier).cloned();
            let known = find(ours);
            if let Some(end) = known.as_ref().and_then(|known| known.ends_at) {
                secret.ends_at = Some(secret.ends_at.map_or(end, |ends_at| ends_at.min(end)));
            }
            // A revoked key stays so, with all secrets that it has got meanwhile.
            !ours.secrets.is_empty() && (known.is_some() || find(&former).is_none())
        });
        if ours.expires_at != former.expires_at {
            row.expires_at = [row.expires_at, ours.expires_at].into_iter().flatten().min();
        }
        if ours.suspended_at != former.suspended_at {
            row.suspended_at = row.suspended_at.or(ours.suspended_at);
        }
    }
}
