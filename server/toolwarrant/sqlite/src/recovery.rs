//! Makes copies of a database, and turns such a copy into a database to continue with.
//!
//! Events after the backup are not known: revoked keys, the outcome of tasks in flight, used
//! nonces. So the keys are off until an operator confirms them. Tasks in flight end as `timeout`
//! and the engine sends nothing more for them. The time of the restore is stored, because the
//! server must refuse requests that were signed before it. Start at [`restore`].

use super::column::{millis, moment};
use super::error::DatabaseError;
use super::fault::Fault;
use super::open;
use super::{acts, directory, tasks};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::path::Path;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::act::Act;
use toolwarrant_core::store::{ApplicationRow, KeyRow};
use toolwarrant_store::not_off;
use toolwarrant_tasks::machine::abandon;
use toolwarrant_tasks::store::Advance;

#[derive(Debug)]
pub struct RestoredData {
    pub applications: Vec<ApplicationRow>,
    /// As they were in the backup. All keys with secrets are now off.
    pub keys: Vec<KeyRow>,
    pub ended: u64,
}

/// Stores the act of the restore; `at` is the wall clock. Blocks. After an error, the copy may have
/// been migrated already.
pub fn restore(path: &Path, at: Timestamp, act: &Act) -> Result<RestoredData, DatabaseError> {
    let mut writer = open::connect(path, open::EarlierLayout::Migrate)?.writer;
    open::load_target_locks(&writer)?;
    begin_again(&mut writer, at, act)
        .map_err(|why| DatabaseError::Content { path: path.to_owned(), why: why.to_string() })
}

fn begin_again(writer: &mut Connection, at: Timestamp, act: &Act) -> Result<RestoredData, Fault> {
    let (applications, keys) = directory::directory(writer)?;
    let db = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    db.execute("UPDATE identity SET id = randomblob(16), sequence = 0, restored_at = ?1", [millis(at)])?;
    db.execute_batch(
        "INSERT INTO unconfirmed_key
             SELECT id, latest_verifier, latest_sealed, previous_verifier, previous_sealed FROM api_key
             WHERE latest_verifier IS NOT NULL;
         UPDATE api_key SET latest_verifier = NULL, latest_sealed = NULL, previous_verifier = NULL, previous_sealed = NULL;",
    )?;
    let mut ended = 0;
    while let Some(open) = tasks::in_flight(&db, None, 1)?.first() {
        let id = open.id;
        let gone = || Fault::corrupt(format!("{id} is in flight, but does not exist"));
        let record = tasks::task(&db, id)?.ok_or_else(gone)?;
        let step = abandon(record.task, at);
        let state = tasks::state(id, &step.task)?;
        let what = "restored from a backup: what became of it is not known".to_owned();
        let (version, task, entries) = (record.version, step.task, step.entries);
        tasks::advance(&db, &Advance { id, version, task, entries, what: what.into(), at }, &state)?;
        ended += 1;
    }
    acts::put(&db, std::slice::from_ref(act))?;
    db.commit()?;
    Ok(RestoredData { applications, keys, ended })
}

pub(super) fn restored_at(db: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let at = db.query_row("SELECT restored_at FROM identity", [], |row| row.get(0)).optional()?.flatten();
    Ok(at.map(moment))
}

pub(super) fn copy_to(db: &Connection, path: &Path) -> Result<(), Fault> {
    let path = path.to_str().ok_or_else(|| Fault::unavailable(format!("{} is not UTF-8", path.display())))?;
    db.execute("VACUUM INTO ?1", [path])?;
    Ok(())
}

pub(super) fn keys_to_confirm(db: &Connection) -> Result<Vec<String>, Fault> {
    let mut select = db.prepare_cached("SELECT id FROM unconfirmed_key ORDER BY id")?;
    Ok(select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

pub(super) fn confirm_keys(db: &Connection, keys: &[String]) -> Result<(), Fault> {
    let confirm = "UPDATE api_key SET latest_verifier = was.latest_verifier, latest_sealed = was.latest_sealed,
                                      previous_verifier = was.previous_verifier, previous_sealed = was.previous_sealed
                   FROM unconfirmed_key AS was WHERE api_key.id = ?1 AND was.id = ?1";
    for key in keys {
        if db.prepare_cached(confirm)?.execute([key])? == 0 {
            return Err(Fault(not_off(key)));
        }
        directory::forget_unconfirmed(db, key)?;
    }
    Ok(())
}
