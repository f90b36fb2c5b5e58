//! Going on without acknowledged writes that the store has lost, as after a restore from a backup.

use crate::Postgres;
use crate::column::{millis, rows};
use crate::connection::unavailable;
use crate::directory;
use crate::runs::TIMELINE;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::Act;
use toolwarrant_core::store::{DirectoryStore, StoreError, Stored};
use toolwarrant_store::{Recovery, not_off};
use toolwarrant_tasks::machine::abandon;
use toolwarrant_tasks::store::{Advance, OpenTask, TaskStore};

const PAGE: u32 = 100;

impl Postgres {
    /// Turns all keys off, and ends the tasks in flight as `timeout`, because they may have been
    /// sent. `at` is the wall clock. If it fails, no process leads before it is called again.
    /// Returns the number of ended tasks.
    pub async fn begin_again(&self, at: Timestamp, act: Act) -> Result<u64, StoreError> {
        let sql = format!(
            "BEGIN;
             UPDATE cluster SET lost = coalesce(lost, 'an operator begins again'), timeline = {TIMELINE}, restored_at = {};
             INSERT INTO unconfirmed_key SELECT id, secrets FROM api_key WHERE secrets <> '[]'
                 ON CONFLICT (id) DO UPDATE SET secrets = excluded.secrets;
             UPDATE api_key SET secrets = '[]' WHERE secrets <> '[]';
             COMMIT",
            millis(at)
        );
        let run = |sql: String| {
            self.inspector.read(move |client| {
                let sql = sql.clone();
                async move { client.batch_execute(&sql).await.map_err(unavailable) }
            })
        };
        run(sql).await?;
        let mut ended = 0;
        loop {
            let page = self.in_flight(None, PAGE).await?;
            if page.is_empty() {
                break;
            }
            for OpenTask { id, .. } in page {
                let Some(record) = self.task(id).await? else { continue };
                let step = abandon(record.task, at);
                let what = "the store was restored, or has lost writes: what became of it is not known".to_owned();
                let (version, task, entries) = (record.version, step.task, step.entries);
                self.advance(Advance { id, version, task, entries, what: what.into(), at }).await?;
                ended += 1;
            }
        }
        self.put_acts(vec![act]).await?;
        run("UPDATE cluster SET lost = NULL".to_owned()).await?;
        Ok(ended)
    }

    pub async fn read_loss(&self) -> Result<Option<String>, StoreError> {
        let sql = "SELECT lost FROM cluster";
        let read = self.inspector.read(|client| async move { client.query_one(sql, &[]).await.map_err(unavailable) });
        Ok(read.await?.get(0))
    }
}

impl Recovery for Postgres {
    fn restored_at(&self) -> Option<Timestamp> {
        self.restored_at
    }

    fn keys_to_confirm(&self) -> Stored<'_, Vec<String>> {
        Box::pin(self.reader.read(|client| async move {
            let found = rows(client.query("SELECT id FROM unconfirmed_key ORDER BY id", &[]).await)?;
            Ok(found.iter().map(|row| row.get(0)).collect())
        }))
    }

    fn confirm_keys(&self, keys: Vec<String>, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(async move {
            let confirmed = self.act(directory::confirm_keys(keys.clone(), &acts, &self.trail)?).await;
            let Err(StoreError::Conflict(_)) = confirmed else { return confirmed };
            let off = self.keys_to_confirm().await?;
            keys.iter().find(|key| !off.contains(key)).map_or(confirmed, |key| Err(not_off(key)))
        })
    }
}
