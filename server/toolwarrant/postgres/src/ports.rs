//! The ports, each method as one statement.

use crate::accepting::Accept;
use crate::advancing::Advancement;
use crate::cluster::Heard;
use crate::column::{Id, get, json, millis, moment, rows};
use crate::connection::unavailable;
use crate::lane::{LaneFacts, Parameter, UNSETTLED};
use crate::prepared::PreparedClient;
use crate::single::{SingleRequest, Write};
use crate::{Postgres, cluster, directory, documents, partitions, reads, rules};
use serde::de::IgnoredAny;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio_postgres::types::ToSql;
use toolwarrant_audit::{Anchor, Head};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::{hex, ignore_poison};
use toolwarrant_core::act::{Act, ActFilter, StoredAct};
use toolwarrant_core::cluster::{Beat, BeatNumber, Beats, ClusterStore, Epoch, StoreTrust};
use toolwarrant_core::documents::{Document, DocumentStore};
use toolwarrant_core::store::{
    ApplicationRow, AuditStore, DirectoryChanges, DirectoryStore, KeyRow, SecretUse, StoreError, Stored,
};
use toolwarrant_store::{Figure, Integrity, IntegrityRule, WriteFigures};
use toolwarrant_tasks::store::{
    Acceptance, Advance, Advanced, DeduplicationKey, DuplicateOf, Identity, LedgerRow, NewTask, OpenTask, Record,
    RefundFilter, TaskFilter, TaskRows, TaskStore, TimelineEvent,
};
use toolwarrant_tasks::task::TaskId;

/// Time for reads that go through a whole table.
pub(crate) const INSPECTION: Duration = Duration::from_mins(10);

/// Asks if this run stands, and if the store has all its writes.
static MAY_SEND: LazyLock<String> = LazyLock::new(|| {
    let (lands, whole) = (cluster::lands("$1"), cluster::is_whole("$1", "$2"));
    format!(
        "SELECT EXISTS (SELECT FROM replica WHERE epoch = $1 AND state IN ('serving', 'draining')) AS stands,
                {lands} AND {whole} AS is_trusted"
    )
});

impl Postgres {
    pub(crate) async fn write(&self, write: Write) -> Result<Vec<i64>, StoreError> {
        self.single.ask_to_write(SingleRequest::Write(write)).await
    }

    /// Writes a change of the directory. Without an answer, the version was not the expected one.
    async fn change(&self, write: Result<Write, StoreError>) -> Result<Option<u64>, StoreError> {
        let version = self.write(write?).await?.first().copied();
        let version = version.ok_or(StoreError::Stale)?;
        Ok(Some(version.cast_unsigned()))
    }
}

impl TaskStore for Postgres {
    fn repeat(&self, identity: Identity) -> Stored<'_, Option<DuplicateOf>> {
        Box::pin(self.repeats.ask(identity))
    }

    fn accept(&self, mut new: NewTask) -> Stored<'_, Acceptance> {
        Box::pin(async move {
            let marks = std::mem::take(&mut new.marks);
            let answer = self.accepting.learn_fate(Accept { task: Some(new), marks }).await?;
            answer.ok_or_else(|| StoreError::Corrupt("a task has no answer".to_owned()))
        })
    }

    fn advance(&self, advance: Advance) -> Stored<'_, Advanced> {
        Box::pin(async move { self.advancing.ask(Advancement::new(advance, self.epoch)?).await })
    }

    fn in_flight(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        let owner = Some(self.epoch.0);
        Box::pin(self.reader.read(move |client| async move { reads::open_tasks(&client, owner, after, limit).await }))
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

    fn timeline(&self, id: TaskId) -> Stored<'_, Vec<TimelineEvent>> {
        Box::pin(self.reader.read(move |client| async move { reads::timeline(&client, id).await }))
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

    /// Makes partitions ahead, and drops those that are too old; they have the ended tasks of a
    /// day. Deletes targets that have long cooled down.
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
            self.write(Write::new(sql, parameters)).await?;
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
            let purged = self.write(Write::new(sql, parameters)).await?;
            Ok(purged.first().map_or(0, |purged| u32::try_from(*purged).unwrap_or(u32::MAX)))
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn may_send(&self) -> Stored<'_, bool> {
        // Not behind the reads of requests, because a send waits for it.
        Box::pin(self.control.read(move |client| async move {
            let parameters: [&(dyn ToSql + Sync); 2] = [&self.epoch.0.cast_signed(), &self.facts.list_acknowledged()];
            let found = rows(client.query_again(&MAY_SEND, &parameters).await)?;
            let row = found.first().ok_or_else(|| StoreError::Corrupt("a question has no answer".to_owned()))?;
            match (get(row, "stands")?, get(row, "is_trusted")?) {
                (true, false) => Err(StoreError::Unavailable(UNSETTLED.to_owned())),
                (stands, _) => Ok(stands),
            }
        }))
    }

    fn orphans(&self, after: Option<TaskId>, limit: u32) -> Stored<'_, Vec<OpenTask>> {
        Box::pin(self.reader.read(move |client| async move { reads::open_tasks(&client, None, after, limit).await }))
    }

    fn adopt(&self, orphans: Vec<TaskId>) -> Stored<'_, Vec<TaskId>> {
        Box::pin(async move {
            let sql = ", adopted AS (
                    UPDATE task SET owner = $2 FROM turn, unnest($4::uuid[]) WITH ORDINALITY AS asked (id, place)
                        WHERE task.id = ANY (ARRAY[asked.id]) AND (task.owner = $2 OR task.owner IN (
                            SELECT epoch FROM replica WHERE state IN ('left', 'evicted')))
                    RETURNING asked.place)
                SELECT turn.one, adopted.place AS answer FROM turn LEFT JOIN adopted ON true";
            let asked = orphans.clone();
            let parameters =
                move || -> Vec<Parameter> { vec![Box::new(asked.iter().copied().map(Id).collect::<Vec<_>>())] };
            let places = self.write(Write::new(sql, parameters)).await?;
            let of_place = |place: i64| usize::try_from(place - 1).ok().and_then(|place| orphans.get(place).copied());
            Ok(places.into_iter().filter_map(of_place).collect())
        })
    }

    fn find_ended(&self, ids: Vec<TaskId>) -> Stored<'_, Vec<TaskId>> {
        Box::pin(self.reader.read(move |client| {
            let ids: Vec<_> = ids.iter().copied().map(Id).collect();
            async move {
                // Fewer tables than those of all days.
                let sql = "SELECT id FROM unnest($1::uuid[]) AS held (id)
                    WHERE NOT EXISTS (SELECT FROM task WHERE task.id = held.id)";
                rows(client.query(sql, &[&ids]).await)?.iter().map(|row| Ok(get::<Id>(row, "id")?.0)).collect()
            }
        }))
    }
}

impl Postgres {
    /// Returns the anchor of the audit trail of this replica, if there is one, and the names and
    /// anchors of the other trails in the order of their names.
    ///
    /// # Errors
    /// The store cannot be read.
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
    // The last two values are not used.
    let (newest, newest_hash, pruned, pruned_hash, ..): (u64, String, u64, String, IgnoredAny, IgnoredAny) =
        serde_json::from_str(text).map_err(|_| broken())?;
    let newest = head(newest, &newest_hash).ok_or_else(broken)?;
    let pruned = head(pruned, &pruned_hash).ok_or_else(broken)?;
    Ok(Anchor { newest, pruned })
}

impl AuditStore for Postgres {
    fn audit_anchor(&self) -> Stored<'_, Option<Anchor>> {
        Box::pin(async move {
            let (own, _) = self.audit_anchors().await?;
            Ok(own)
        })
    }

    fn put_audit_anchor(&self, Anchor { newest, pruned }: Anchor) -> Stored<'_, ()> {
        Box::pin(async move {
            let head = |head: &Head| (head.number, hex::encode(&head.hash));
            let ((newest, newest_hash), (pruned, pruned_hash)) = (head(&newest), head(&pruned));
            let anchor = json(&(newest, newest_hash, pruned, pruned_hash, "", 0));
            let anchor = anchor.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let sql = ", put AS (
                    INSERT INTO audit_anchor SELECT $4, $5 FROM turn
                    ON CONFLICT (trail) DO UPDATE SET anchor = excluded.anchor)
                SELECT one, NULL::bigint AS answer FROM turn";
            let trail = self.trail.clone();
            let parameters = move || -> Vec<Parameter> { vec![Box::new(trail.clone()), Box::new(anchor.clone())] };
            self.write(Write::new(sql, parameters)).await.map(drop)
        })
    }
}

impl DirectoryStore for Postgres {
    fn directory(&self) -> Stored<'_, (Vec<ApplicationRow>, Vec<KeyRow>)> {
        Box::pin(async move {
            let read = |client: Arc<PreparedClient>| async move { directory::changes(&client, None).await };
            let DirectoryChanges { applications, keys, version: _ } =
                self.inspector.read_within(INSPECTION, read).await?;
            Ok((applications, keys))
        })
    }

    fn put_application(
        &self,
        application: ApplicationRow,
        acts: Vec<Act>,
        base: Option<u64>,
    ) -> Stored<'_, Option<u64>> {
        Box::pin(self.change(directory::put_application(application, acts, base)))
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
            self.write(Write::new(sql, parameters)).await.map(drop)
        })
    }

    fn put_key(&self, key: KeyRow, acts: Vec<Act>, base: Option<u64>) -> Stored<'_, Option<u64>> {
        Box::pin(self.change(directory::put_key(key, acts, base)))
    }

    fn changes(&self, after: u64) -> Stored<'_, DirectoryChanges> {
        Box::pin(self.reader.read(move |client| async move { directory::changes(&client, Some(after)).await }))
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

    fn put_acts(&self, acts: Vec<Act>) -> Stored<'_, ()> {
        Box::pin(async move { self.write(directory::put_acts(&acts)?).await.map(drop) })
    }

    fn acts(&self, filter: ActFilter) -> Stored<'_, Vec<StoredAct>> {
        Box::pin(self.reader.read(move |client| {
            let filter = filter.clone();
            async move { directory::acts(&client, &self.trail, filter).await }
        }))
    }

    fn acts_without_line(&self, after: u64, limit: u32) -> Stored<'_, Vec<StoredAct>> {
        let trail = &*self.trail;
        let page = move |client: Arc<PreparedClient>| async move {
            directory::acts_without_line(&client, trail, after, limit).await
        };
        Box::pin(self.reader.read(page))
    }

    fn put_lines_of_acts(&self, numbers: Vec<u64>) -> Stored<'_, ()> {
        Box::pin(async move {
            let numbers: Vec<_> = numbers.into_iter().map(u64::cast_signed).collect();
            let sql = ", put AS (UPDATE act SET has_line = true FROM turn WHERE number = ANY($4))
                SELECT one, NULL::bigint AS answer FROM turn";
            let parameters = move || -> Vec<Parameter> { vec![Box::new(numbers.clone())] };
            self.write(Write::new(sql, parameters)).await.map(drop)
        })
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
            let write = Write::new(" SELECT one, NULL::bigint AS answer FROM turn", Vec::new);
            self.write(write).await.map(drop)
        })
    }
}

impl ClusterStore for Postgres {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn name(&self) -> String {
        self.replica.clone()
    }

    fn lease(&self) -> Duration {
        self.lease
    }

    fn beat(&self, beat: Beat) -> Stored<'_, Beats> {
        Box::pin(self.control.read(move |client| async move {
            let told = self.facts.list_acknowledged();
            let Heard { mut beats, timeline, is_whole, is_synchronous, restored_at } =
                cluster::beat(&client, self.epoch, beat, &told).await?;
            let own = beats.replicas.iter().find(|row| row.epoch == self.epoch);
            let lost = match own {
                Some(row) => (!row.state.has_ended() && !is_whole)
                    .then_some("misses writes that were acknowledged to it, or a run that it has seen"),
                // An operator who has begun again has evicted it.
                None => (restored_at.map(moment) == self.restored_at
                    && timeline != *ignore_poison(self.timeline.lock()))
                .then_some("is not known any more"),
            };
            if let Some(why) = lost {
                let why = format!("{}, of epoch {}, {why}", self.replica, self.epoch);
                self.facts.has_forgotten.store(true, Relaxed);
                cluster::declare_lost(&client, &why).await?;
                beats.trust = StoreTrust::Lost(why);
            } else if own.is_none_or(|row| row.state.has_ended()) {
                self.facts.evicted.store(true, Relaxed);
            } else if is_whole {
                *ignore_poison(self.timeline.lock()) = timeline;
                self.facts.has_forgotten.store(false, Relaxed);
            }
            if beats.trust == StoreTrust::Settled {
                self.is_synchronous.store(is_synchronous, Relaxed);
            }
            Ok(beats)
        }))
    }

    fn correct_time(&self, known: i64, ahead: i64) -> Stored<'_, ()> {
        let read = move |client: Arc<PreparedClient>| async move { cluster::correct_time(&client, known, ahead).await };
        Box::pin(self.control.read(read))
    }

    fn settle(&self, silent: Vec<Epoch>) -> Stored<'_, ()> {
        // The copy may lack the news that the former server waited for no standby.
        let silent = if self.is_synchronous.load(Relaxed) { silent } else { Vec::new() };
        Box::pin(self.control.read(move |client| {
            let silent: Vec<_> = silent.iter().map(|epoch| epoch.0.cast_signed()).collect();
            async move { cluster::settle(&client, &silent).await }
        }))
    }

    fn evict(&self, epoch: Epoch, BeatNumber { timeline, number }: BeatNumber) -> Stored<'_, bool> {
        Box::pin(async move {
            let (epoch, number, timeline) = (epoch.0.cast_signed(), number.cast_signed(), format!("{timeline:08X}"));
            let parameters =
                move || -> Vec<Parameter> { vec![Box::new(epoch), Box::new(number), Box::new(timeline.clone())] };
            Ok(!self.write(Write::new(cluster::eviction(), parameters)).await?.is_empty())
        })
    }

    fn leave(&self) -> Stored<'_, ()> {
        Box::pin(async move { self.write(Write::new(cluster::LEAVE, Vec::new)).await.map(drop) })
    }

    fn forget_ended(&self, epochs: Vec<Epoch>) -> Stored<'_, ()> {
        let epochs: Vec<_> = epochs.into_iter().map(|epoch| epoch.0.cast_signed()).collect();
        let parameters = move || -> Vec<Parameter> { vec![Box::new(epochs.clone())] };
        Box::pin(async move { self.write(Write::new(cluster::FORGET, parameters)).await.map(drop) })
    }
}

impl DocumentStore for Postgres {
    fn documents(&self, space: &'static str, keys: Vec<String>) -> Stored<'_, Vec<Document>> {
        Box::pin(self.reader.read(move |client| {
            let keys = keys.clone();
            async move { documents::read(&client, space, keys).await }
        }))
    }

    fn put_documents(&self, space: &'static str, given: Vec<Document>) -> Stored<'_, Vec<bool>> {
        Box::pin(async move {
            let count = given.len();
            let given = given.into_iter().map(|document| (space, document)).collect();
            let put = self.single.ask_to_write(SingleRequest::Put(given)).await?;
            Ok((1..).take(count).map(|place: i64| put.contains(&place)).collect())
        })
    }
}
