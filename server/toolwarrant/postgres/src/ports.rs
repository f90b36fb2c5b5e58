//! The ports, each method as one statement.

use crate::accepting::Accept;
use crate::advancing::Advancement;
use crate::column::{json, millis, moment, rows};
use crate::connection::{unavailable, wait_for_standby};
use crate::lane::{self, LaneFacts, Parameter};
use crate::prepared::PreparedClient;
use crate::single::WriteStatement;
use crate::{Postgres, directory, partitions, reads, rules, runs};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use toolwarrant_audit::{Anchor, Head};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::{hex, json};
use toolwarrant_core::act::{Act, ActFilter, StoredAct};
use toolwarrant_core::store::{
    ApplicationRow, AuditStore, DirectoryStore, KeyRow, RequestCount, SecretUse, StoreError, Stored,
};
use toolwarrant_store::{Figure, Integrity, IntegrityRule, WriteFigures};
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, Identity, LedgerRow, OpenTask, Record, RefundFilter, StatusCounts,
    TaskFilter, TaskRows, TaskStore, TimelineEvent, WriteAnswer,
};
use toolwarrant_tasks::task::TaskId;

/// For reads that go through a whole table.
pub(crate) const INSPECTION: Duration = Duration::from_mins(10);

/// For a request to be sent, for locks, and for an answer.
const FATE_PATIENCE: Duration = Duration::from_secs(10);

impl Postgres {
    pub(crate) async fn write(&self, write: WriteStatement) -> Result<Vec<i64>, StoreError> {
        self.single.ask_to_write(write).await
    }

    /// Carries out a change by an operator, who must not read what is not known. If its fate stays
    /// unknown, this never returns, and [`Self::wait_for_unknown_fate`] does.
    pub(crate) async fn act(&self, write: WriteStatement) -> Result<(), StoreError> {
        let why = match timeout(FATE_PATIENCE, self.single.learn_fate(write)).await {
            Ok(Err(StoreError::Unanswered(why))) => why,
            Ok(known) => return known.map(drop),
            Err(_) => format!("PostgreSQL has not answered for {} s", FATE_PATIENCE.as_secs()),
        };
        self.facts.unknown_fate.send_replace(Some(why));
        pending().await
    }

    /// Returns once this process must end without an answer.
    pub async fn wait_for_unknown_fate(&self) -> StoreError {
        let mut unknown = self.facts.unknown_fate.subscribe();
        // The sender is in `self`.
        let why = unknown.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()).unwrap_or_default();
        StoreError::Unanswered(format!("it is not known if a change was stored: {why}"))
    }

    /// Returns once a write has shown that this process does not lead any more.
    pub async fn wait_for_eviction(&self) -> StoreError {
        // The sender is in `self`.
        let _ = self.facts.evicted.subscribe().wait_for(|evicted| *evicted).await;
        lane::describe_eviction()
    }

    /// Ends this run as planned, so that the next process leads at once.
    pub async fn leave(&self) -> Result<(), StoreError> {
        self.write(WriteStatement::new(runs::LEAVE, Vec::new)).await.map(drop)
    }
}

impl TaskStore for Postgres {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<WriteAnswer>> {
        Box::pin(self.repeats.ask(identity))
    }

    fn accept(&self, new: Record, marks: Vec<DeduplicationKey>) -> Stored<'_, Acceptance> {
        Box::pin(async move {
            let answer = self.accepting.learn_fate(Accept { task: Some(new), marks }).await?;
            answer.ok_or_else(|| StoreError::Corrupt("a task has no answer".to_owned()))
        })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        Box::pin(async move { self.advancing.ask(Advancement::new(advance)?).await })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        Box::pin(self.reader.read(move |client| async move { reads::open_tasks(&client, after, limit).await }))
    }

    fn task(&self, id: TaskId) -> Stored<'_, Option<Record>> {
        Box::pin(self.tasks.ask(id))
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, TaskRows> {
        Box::pin(self.reader.read(move |client| {
            let filter = filter.clone();
            async move { reads::tasks(&client, filter).await }
        }))
    }

    fn count_tasks(&self, filter: TaskFilter) -> Stored<'_, StatusCounts> {
        Box::pin(self.reader.read(move |client| {
            let filter = filter.clone();
            async move { reads::count(&client, filter).await }
        }))
    }

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        Box::pin(self.reader.read(move |client| async move { reads::timeline(&client, id).await }))
    }

    fn entries(&self, id: TaskId) -> Stored<'_, Vec<LedgerRow>> {
        Box::pin(self.reader.read(move |client| async move { reads::entries(&client, id).await }))
    }

    fn ledger(&self, after: u64, limit: u32) -> Stored<'_, Vec<LedgerRow>> {
        Box::pin(self.reader.read(move |client| async move { reads::ledger(&client, after, limit).await }))
    }

    fn refunds(&self, filter: RefundFilter) -> Stored<'_, Vec<LedgerRow>> {
        Box::pin(self.reader.read(move |client| {
            let filter = filter.clone();
            async move { reads::refunds(&client, filter).await }
        }))
    }

    /// Makes partitions ahead. Drops old ones, each with the ended tasks of its day. Drops targets
    /// that have long cooled down.
    fn purge(&self, before: Timestamp, limit: u32) -> Stored<'_, u32> {
        Box::pin(async move {
            let partitions = |client: Arc<PreparedClient>| async move {
                partitions::make(&client, reads::time(&client).await?).await?;
                partitions::drop_old(&client, before).await
            };
            self.inspector.read_within(INSPECTION, partitions).await?;
            let sql = ", gone AS (
                    DELETE FROM target USING turn WHERE (target.target, resource) IN (
                        SELECT target, resource FROM target WHERE task IS NULL AND (until IS NULL OR until < $4)
                        ORDER BY until LIMIT $5) AND task IS NULL
                    RETURNING 1 AS one)
                SELECT turn.one, (SELECT count(*) FROM gone) AS answer FROM turn";
            let parameters = move || -> Vec<Parameter> { vec![Box::new(millis(before)), Box::new(i64::from(limit))] };
            self.write(WriteStatement::new(sql, parameters)).await?;
            // No more can be done at once.
            Ok(0)
        })
    }

    fn mark(&self, marks: Vec<DeduplicationKey>) -> Stored<'_, ()> {
        Box::pin(async move { self.accepting.ask(Accept { task: None, marks }).await.map(drop) })
    }

    fn marks(&self, space: &'static str, after: Option<Box<[u8]>>, limit: u32) -> Stored<'_, Vec<Box<[u8]>>> {
        Box::pin(self.reader.read(move |client| {
            let after = after.clone();
            async move { reads::marks(&client, space, after, limit).await }
        }))
    }

    fn purge_marks(&self, now: Timestamp, limit: u32) -> Stored<'_, u32> {
        Box::pin(async move {
            let sql = ", gone AS (
                    DELETE FROM mark USING turn WHERE (space, key) IN (
                        SELECT space, key FROM mark WHERE until < $4 ORDER BY until, space, key LIMIT $5)
                    RETURNING 1 AS one)
                SELECT turn.one, (SELECT count(*) FROM gone) AS answer FROM turn";
            let parameters = move || -> Vec<Parameter> { vec![Box::new(millis(now)), Box::new(i64::from(limit))] };
            let purged = self.write(WriteStatement::new(sql, parameters)).await?;
            Ok(purged.first().map_or(0, |purged| u32::try_from(*purged).unwrap_or(u32::MAX)))
        })
    }

    fn outlives_machine(&self) -> bool {
        true
    }
}

impl Postgres {
    pub async fn audit_anchors(&self) -> Result<(Option<Anchor>, Vec<(String, Anchor)>), StoreError> {
        let found = self.reader.read(|client| async move {
            rows(client.query("SELECT trail, anchor FROM audit_anchor ORDER BY trail", &[]).await)
        });
        let (mut own, mut others) = (None, Vec::new());
        for row in found.await? {
            let (trail, anchor): (String, _) = (row.get(0), parse_anchor(row.get(1))?);
            if trail == self.trail { own = Some(anchor) } else { others.push((trail, anchor)) }
        }
        Ok((own, others))
    }
}

fn parse_anchor(text: &str) -> Result<Anchor, StoreError> {
    let broken = || StoreError::Corrupt("the anchor of an audit trail cannot be read".to_owned());
    let head = |number, hash: &str| Some(Head { number, hash: hex::decode(hash)?.as_slice().try_into().ok()? });
    let (newest, newest_hash, pruned, pruned_hash, acts): (u64, String, u64, String, u64) =
        json::read(text).map_err(|_| broken())?;
    let newest = head(newest, &newest_hash).ok_or_else(broken)?;
    let pruned = head(pruned, &pruned_hash).ok_or_else(broken)?;
    Ok(Anchor { newest, pruned, acts })
}

impl AuditStore for Postgres {
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>> {
        Box::pin(async move {
            let (own, _) = self.audit_anchors().await?;
            Ok(own)
        })
    }

    fn put_audit_anchor(&self, Anchor { newest, pruned, acts }: Anchor) -> Stored<'_, ()> {
        Box::pin(async move {
            let head = |head: &Head| (head.number, hex::encode(&head.hash));
            let ((newest, newest_hash), (pruned, pruned_hash)) = (head(&newest), head(&pruned));
            let anchor = json(&(newest, newest_hash, pruned, pruned_hash, acts));
            let anchor = anchor.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let sql = ", put AS (
                    INSERT INTO audit_anchor SELECT $4, $5 FROM turn
                    ON CONFLICT (trail) DO UPDATE SET anchor = excluded.anchor)
                SELECT one, NULL::bigint AS answer FROM turn";
            let trail = self.trail.clone();
            let parameters = move || -> Vec<Parameter> { vec![Box::new(trail.clone()), Box::new(anchor.clone())] };
            self.write(WriteStatement::new(sql, parameters)).await.map(drop)
        })
    }
}

impl DirectoryStore for Postgres {
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        Box::pin(async move {
            let read = |client: Arc<PreparedClient>| async move { directory::directory(&client).await };
            self.inspector.read_within(INSPECTION, read).await
        })
    }

    fn put_application(&self, application: ApplicationRow, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(async move { self.act(directory::put_application(application, None, acts, &self.trail)?).await })
    }

    fn put_application_with_key(&self, application: ApplicationRow, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(async move { self.act(directory::put_application(application, Some(key), acts, &self.trail)?).await })
    }

    fn latest_time(&self) -> Stored<'_, Option<Timestamp>> {
        Box::pin(self.reader.read(|client| async move {
            let row = client.query_one("SELECT seen FROM cluster", &[]).await.map_err(unavailable)?;
            Ok(row.get::<_, Option<i64>>(0).map(moment))
        }))
    }

    fn see(&self, now: Timestamp) -> Stored<'_, ()> {
        Box::pin(async move {
            let sql = ", put AS (UPDATE cluster SET seen = $4 FROM turn) SELECT one, NULL::bigint AS answer FROM turn";
            let parameters = move || -> Vec<Parameter> { vec![Box::new(millis(now))] };
            self.write(WriteStatement::new(sql, parameters)).await.map(drop)
        })
    }

    fn put_key(&self, key: KeyRow, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(async move { self.act(directory::put_key(key, acts, &self.trail)?).await })
    }

    fn put_uses(&self, uses: Vec<SecretUse>) -> Stored<'_, ()> {
        Box::pin(async move { self.write(directory::put_uses(uses)).await.map(drop) })
    }

    fn uses(&self, keys: Option<Vec<String>>) -> Stored<'_, Vec<SecretUse>> {
        Box::pin(self.reader.read(move |client| {
            let keys = keys.clone();
            async move { directory::uses(&client, keys).await }
        }))
    }

    fn put_requests(&self, requests: Vec<RequestCount>, since: u64) -> Stored<'_, ()> {
        Box::pin(async move { self.write(directory::put_requests(requests, since)).await.map(drop) })
    }

    fn requests(&self) -> Stored<'_, Vec<RequestCount>> {
        Box::pin(self.reader.read(|client| async move { directory::requests(&client).await }))
    }

    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(async move { self.act(directory::put_acts(&acts, &self.trail)?).await })
    }

    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>> {
        Box::pin(self.reader.read(move |client| {
            let filter = filter.clone();
            async move { directory::acts(&client, filter).await }
        }))
    }

    fn acts_of_trail(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>> {
        let trail = &*self.trail;
        let page = move |client: Arc<PreparedClient>| async move {
            directory::acts_of_trail(&client, trail, after, limit).await
        };
        Box::pin(self.reader.read(page))
    }
}

impl Integrity for Postgres {
    fn violations(&self, rule: IntegrityRule) -> Stored<'_, Vec<String>> {
        let read = move |client: Arc<PreparedClient>| async move { rules::violations(&client, rule).await };
        Box::pin(self.inspector.read_within(INSPECTION, read))
    }

    fn figures(&self) -> Stored<'_, Vec<Figure>> {
        let read = |client: Arc<PreparedClient>| async move { rules::figures(&client).await };
        Box::pin(self.inspector.read_within(INSPECTION, read))
    }

    fn writes(&self) -> WriteFigures {
        let LaneFacts { commits, requests, failures, .. } = &*self.facts;
        let waiting = self.accepting.length() + self.advancing.length() + self.single.length();
        WriteFigures { commits: commits.get(), requests: requests.get(), failures: failures.get(), waiting }
    }

    fn touch(&self) -> Stored<'_, ()> {
        Box::pin(async move {
            if self.epoch == 0 {
                let test =
                    |client: Arc<PreparedClient>| async move { wait_for_standby(&client).await.map_err(unavailable) };
                return self.inspector.read(test).await;
            }
            let write = WriteStatement::new(" SELECT one, NULL::bigint AS answer FROM turn", Vec::new);
            self.write(write).await.map(drop)
        })
    }
}
