//! The keys of the registry: their secrets, ends and labels.

use super::edits::{DirectoryRow, Edit};
use super::{Changed, Durability, Known, NewKey, Registry, RegistryError, registry_error, unknown};
use crate::access::LIVE_SECRETS;
use crate::act::{Changes, Origin, RowFacts};
use crate::store::{KeyRow, Labels, SecretRow, SecretUse};
use std::collections::HashMap;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::Secret;
use zeroize::Zeroizing;

const USES_AT_ONCE: usize = 1_000;

impl Registry {
    pub async fn key(&self, key_id: &str) -> Result<KeyRow, RegistryError> {
        self.known.lock().await.key(key_id)
    }

    /// Returns keys, the oldest first. A revoked key has no secret.
    pub async fn keys(&self, selects: impl Fn(&KeyRow) -> bool) -> Vec<KeyRow> {
        let known = self.known.lock().await;
        let mut rows: Vec<_> = known.keys.values().filter(|key| selects(key)).cloned().collect();
        rows.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        rows
    }

    pub async fn revoke_key(&self, key_id: &str, origin: &Origin) -> Result<Changed, RegistryError> {
        self.change_key(key_id, origin, |row| row.secrets.clear()).await
    }

    pub async fn change_key(
        &self,
        key_id: &str,
        origin: &Origin,
        edit: impl FnOnce(&mut KeyRow) + Send,
    ) -> Result<Changed, RegistryError> {
        let plan = |known: &Known| {
            let before = known.key(key_id)?;
            let mut row = before.clone();
            edit(&mut row);
            let edit = self.edit_key(Some(before), row, origin)?;
            let act_id = edit.act.id.clone();
            Ok((edit, act_id))
        };
        let (act_id, durability) = self.carry_out(plan).await?;
        Ok(Changed { object: key_id.to_owned(), act_id, durability })
    }

    pub async fn issue_key(
        &self,
        application: &str,
        expires_at: Option<Timestamp>,
        origin: &Origin,
    ) -> Result<NewKey, RegistryError> {
        let key = self.new_key(application, expires_at)?;
        let plan = |known: &Known| self.add_secret(known, None, key.clone(), origin);
        Ok(self.carry_out(plan).await?.0)
    }

    pub(super) fn new_key(&self, application: &str, expires_at: Option<Timestamp>) -> Result<KeyRow, RegistryError> {
        let id = format!("{}{}{}", self.prefixes.id, self.cell, self.hex::<8>()?);
        let (application, created_at) = (application.to_owned(), self.clock.now());
        let (secrets, labels, suspended_at) = (Vec::new(), Labels::new(), None);
        Ok(KeyRow { id, application, secrets, created_at, expires_at, labels, suspended_at })
    }

    /// Adds a secret. The previous one stays valid until `grace` is over or, without it, until the
    /// next rotation. Older ones end.
    pub async fn rotate_key(
        &self,
        key_id: &str,
        grace: Option<Duration>,
        origin: &Origin,
    ) -> Result<NewKey, RegistryError> {
        let plan = |known: &Known| {
            let before = known.key(key_id)?;
            let mut key = before.clone();
            if let Some(older) = key.secrets.first_mut() {
                older.ends_at = grace.map(|grace| self.clock.latest().plus(grace));
            }
            if key.secrets.is_empty() {
                let what = format!("the key `{key_id}` is revoked; create another for its application");
                return Err(registry_error(what));
            }
            self.add_secret(known, Some(before), key, origin)
        };
        Ok(self.carry_out(plan).await?.0)
    }

    pub async fn store_uses(&self) -> Result<(), RegistryError> {
        let uses = self.access.collect_uses();
        for part in uses.chunks(USES_AT_ONCE) {
            self.store.put_uses(part.to_vec()).await?;
        }
        Ok(())
    }

    /// Keeps the uses of former secrets, whose cells are gone. Does not wait for a disk that has
    /// just refused the change.
    pub(super) async fn keep_uses(&self, uses: Vec<SecretUse>, durability: &Durability) {
        if *durability == Durability::Stored
            && !uses.is_empty()
            && let Err(error) = self.store.put_uses(uses).await
        {
            tracing::warn!(%error, "the last use of a changed key is not on the disk");
        }
    }

    /// Returns the last uses by key, also of secrets that have ended. `None` stands for all keys.
    pub async fn uses(&self, keys: Option<Vec<String>>) -> Result<HashMap<String, Vec<SecretUse>>, RegistryError> {
        let mut uses: HashMap<String, Vec<SecretUse>> = HashMap::new();
        let since_start = self.access.uses_since_start(keys.as_deref());
        // The latest row of a secret is the last one.
        for one in self.store.uses(keys).await?.into_iter().chain(since_start) {
            let of_key = uses.entry(one.key.clone()).or_default();
            of_key.retain(|known| known.verifier != one.verifier);
            of_key.push(one);
        }
        Ok(uses)
    }

    pub async fn reload_keys(&self) -> Result<(), RegistryError> {
        let mut known = self.known.lock().await;
        let (_, keys) = self.store.directory().await?;
        known.put_in_force(&self.access, self.offer, Vec::new(), keys);
        Ok(())
    }

    fn add_secret(
        &self,
        known: &Known,
        before: Option<KeyRow>,
        mut key: KeyRow,
        origin: &Origin,
    ) -> Result<(Edit, NewKey), RegistryError> {
        let key_id = key.id.clone();
        let secret = self.put_secret(&mut key)?;
        if known.applications.get(&key.application).is_none_or(|(row, _)| row.deleted_at.is_some()) {
            return Err(unknown("application", &key.application));
        }
        let edit = self.edit_key(before, key, origin)?;
        let act_id = edit.act.id.clone();
        Ok((edit, NewKey { key_id, secret, act_id }))
    }

    /// Makes a secret the first one of a key.
    pub(super) fn put_secret(&self, key: &mut KeyRow) -> Result<Secret<String>, RegistryError> {
        let secret = format!("{}{}", self.prefixes.secret, *Zeroizing::new(self.hex::<32>()?));
        let row = self.access.secret(&key.application, &key.id, &secret, self.clock.latest());
        key.secrets.insert(0, row.map_err(registry_error)?);
        key.secrets.truncate(LIVE_SECRETS);
        Ok(Secret::new(secret))
    }

    pub(super) fn edit_key(&self, before: Option<KeyRow>, row: KeyRow, origin: &Origin) -> Result<Edit, RegistryError> {
        let changes = Changes::between(before.as_ref().map(RowFacts::from), Some(RowFacts::from(&row)));
        let act = self.act(origin, Some(&row.id), changes)?;
        let only_takes = before.is_some_and(|before| takes_key_away(&before, &row));
        Ok(Edit { row: DirectoryRow::Key(row), act, only_takes })
    }
}

fn takes_key_away(before: &KeyRow, after: &KeyRow) -> bool {
    let KeyRow { id: _, application: _, secrets, created_at: _, expires_at, labels, suspended_at } = after;
    let no_later = |end: Option<Timestamp>, known: Option<Timestamp>| match (end, known) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(known)) => end <= known,
    };
    let known = |secret: &SecretRow| {
        let same = before.secrets.iter().find(|known| known.verifier == secret.verifier);
        same.is_some_and(|same| no_later(secret.ends_at, same.ends_at))
    };
    secrets.iter().all(known)
        && no_later(*expires_at, before.expires_at)
        && (suspended_at.is_some() || before.suspended_at.is_none())
        && (*labels == before.labels || secrets.is_empty())
}
