//! Tests of the store on disk.

mod damage;
mod layouts;
mod loss;

use super::column::{millis, moment};
use super::open::EarlierLayout;
use super::writer::{AnsweredWrite, WriteJob, commit};
use super::*;
use rusqlite::Connection;
use std::fs;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use store_suite::{
    AT, accept, act, advance, application, assert_unavailable, end, end_at, id, model, new, nth, policy,
};
use tempfile::TempDir;
use tokio::sync::oneshot;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::store::StoreError;
use toolwarrant_store::Store;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::task::{Phase, Task, TaskStatus};

async fn open_new() -> (TempDir, Arc<dyn Store>) {
    let (folder, store) = open_in(folder());
    (folder, store)
}

fn open_in(folder: TempDir) -> (TempDir, Arc<Sqlite>) {
    let store = open(folder.path());
    (folder, store)
}

store_suite::store_suite!(open_new);
store_suite::store_row_suite!(open_new);

struct Database(TempDir, Option<Arc<Sqlite>>);

impl model::Reopened for Database {
    const DELETES_ROWS: bool = true;
    const HAS_CLOCK: bool = false;

    async fn open() -> Self {
        let (folder, store) = open_in(quick_folder());
        Self(folder, Some(store))
    }

    fn store(&self) -> &dyn Store {
        &**self.1.as_ref().expect("it is open")
    }

    async fn reopen(self, killed: bool) -> Self {
        let Self(mut folder, store) = self;
        let copy = killed.then(|| leave_behind(folder.path()));
        drop(store);
        folder = copy.unwrap_or(folder);
        let store = open(folder.path());
        Self(folder, Some(store))
    }
}

#[test]
fn its_answers_are_those_of_the_store_in_memory() {
    model::compare::<Database>(250);
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns a folder in memory if there is one, so that thousands of commits do not wait for a disk.
fn quick_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder())
}

fn leave_behind(folder: &Path) -> TempDir {
    let copy = quick_folder();
    for file in [database, log] {
        fs::copy(file(folder), file(copy.path())).unwrap();
    }
    copy
}

fn database(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

fn log(folder: &Path) -> PathBuf {
    folder.join("store.db-wal")
}

fn open(folder: &Path) -> Arc<Sqlite> {
    Arc::new(Sqlite::open(&database(folder), ()).unwrap())
}

#[test]
fn the_bundled_sqlite_is_recent_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[tokio::test]
async fn only_the_owner_can_access_its_files_and_its_lock_is_released_last() {
    struct Lock(PathBuf, Arc<AtomicBool>);
    impl Drop for Lock {
        fn drop(&mut self) {
            self.1.store(!log(&self.0).exists(), Relaxed);
        }
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = folder();
    let closed = Arc::new(AtomicBool::new(false));
    let lock = Lock(folder.path().to_owned(), Arc::clone(&closed));
    let store = Sqlite::open(&database(folder.path()), lock).unwrap();
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    drop(store);
    assert!(closed.load(Relaxed), "the lock was dropped before the database was closed, or not at all");
}

#[test]
fn every_connection_has_the_settings_that_durability_rests_on() {
    let folder = folder();
    let super::open::Connections { writer, keeper, readers, inspector } =
        super::open::connect(&database(folder.path()), EarlierLayout::Migrate).unwrap();
    for connection in readers.iter().chain([&writer, &keeper, &inspector]) {
        let get =
            |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        assert_eq!(get("journal_mode"), "wal".to_owned().into());
        for (name, value) in [("synchronous", 2), ("mmap_size", 0), ("foreign_keys", 1), ("trusted_schema", 0)] {
            assert_eq!(get(name), value.into(), "{name}");
        }
    }
    assert!(readers.iter().chain([&inspector]).all(|reader| reader.execute("DELETE FROM settling", []).is_err()));
    writer.execute("DELETE FROM settling", []).unwrap();
}

#[tokio::test]
async fn no_argument_is_on_the_disk_in_plain_text_and_after_the_end_not_even_sealed() {
    let folder = folder();
    let (database, log) = (database(folder.path()), log(folder.path()));
    let holds = |bytes: &[u8]| {
        let files = [fs::read(&database).unwrap(), fs::read(&log).unwrap_or_default()].concat();
        files.windows(bytes.len()).any(|window| window == bytes)
    };
    let arguments = format!("{{\"password\":\"hunter2\",\"note\":\"{}\"}}", "long ".repeat(100));
    let sealed = KeyRing::new("test", &[7; 32], Random::System).seal("task", &arguments).unwrap();
    let store: Arc<dyn Store> = open(folder.path());
    accept(&store, Record { sealed: Some(sealed.clone()), ..new(1, "k", "the target") }).await;
    assert!(holds(&sealed) && holds(b"the target"), "nothing can be found like this");
    assert!(!holds(b"hunter2") && !holds(b"password"));
    end(&store, 1, TaskStatus::Success, AT).await;
    drop(store);
    assert!(!log.exists(), "the log is emptied into the database");
    assert!(holds(b"the target") && !sealed.chunks_exact(16).any(holds));
}

fn unavailable(why: &str) -> Fault {
    Fault::unavailable(why.to_owned())
}

type TransactionBody = fn(&Connection) -> Result<i64, Fault>;

fn together<const N: usize>(work: [TransactionBody; N]) -> ([Result<i64, Fault>; N], Vec<i64>) {
    let folder = folder();
    let mut connection = super::open::connect(&database(folder.path()), EarlierLayout::Migrate).unwrap().writer;
    connection.execute_batch("CREATE TABLE probe (number INTEGER PRIMARY KEY)").unwrap();
    let (requests, mut answers): (Vec<Box<dyn WriteJob>>, Vec<_>) = work
        .map(|work| {
            let (reply, answer) = oneshot::channel();
            (Box::new(AnsweredWrite::new(work, reply)) as Box<dyn WriteJob>, answer)
        })
        .into_iter()
        .unzip();
    let ownership = Ownership::of(&database(folder.path()), None).unwrap();
    let _ = commit(&mut connection, &ownership, requests.into_iter(), &mut iter::empty(), &WriteCounts::default());
    assert!(connection.is_autocommit(), "the transaction is still open");
    let mut select = connection.prepare("SELECT number FROM probe ORDER BY number").unwrap();
    let rows = select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    (std::array::from_fn(|n| answers[n].try_recv().unwrap_or_else(|_| Err(unavailable("not begun")))), rows)
}

fn put<const N: i64>(db: &Connection) -> Result<i64, Fault> {
    db.execute("INSERT INTO probe VALUES (?1)", [N])?;
    Ok(N)
}

#[test]
fn a_failed_request_does_not_affect_others_and_leaves_nothing_behind() {
    let half = |db: &Connection| put::<2>(db).and(put::<1>(db));
    let refuses = |db: &Connection| put::<3>(db).and(Err(unavailable("no")));
    let (answers, rows) = together([put::<1>, half, refuses, put::<4>]);
    let [first, half, refused, last] = answers;
    assert_eq!((first.unwrap(), last.unwrap(), rows), (1, 4, vec![1, 4]));
    assert!(half.unwrap_err().to_string().contains("UNIQUE"));
    assert_eq!(refused.unwrap_err().to_string(), "no");
}

#[test]
fn a_failed_commit_fails_only_for_the_request_that_caused_it() {
    let orphan = |db: &Connection| {
        db.execute_batch("PRAGMA defer_foreign_keys = ON; INSERT INTO resource_target VALUES ('nobody', 'r', 't')")?;
        Ok(0)
    };
    let (answers, rows) = together([put::<1>, orphan, put::<2>]);
    let [first, orphan, last] = answers;
    assert_eq!((first.unwrap(), last.unwrap(), rows), (1, 2, vec![1, 2]));
    assert!(orphan.unwrap_err().to_string().contains("FOREIGN KEY"));
}

#[test]
fn a_transaction_that_is_lost_halfway_fails_only_for_the_request_that_lost_it() {
    // SQLite does this by itself when the disk is full.
    let lose = |db: &Connection| db.execute_batch("ROLLBACK").map_err(Fault::from).and(Err(unavailable("full")));
    let lose_unseen = |db: &Connection| Ok(db.execute_batch("ROLLBACK").map(|()| 0)?);
    for lose in [lose, lose_unseen] {
        let (answers, rows) = together([put::<1>, lose, put::<2>, lose]);
        assert_eq!(answers.map(|answer| answer.ok()), [Some(1), None, Some(2), None]);
        assert_eq!(rows, [1, 2]);
    }
}

#[test]
fn a_transaction_that_cannot_begin_is_answered() {
    let folder = folder();
    let mut connection = super::open::connect(&database(folder.path()), EarlierLayout::Migrate).unwrap().writer;
    connection.busy_timeout(Duration::ZERO).unwrap();
    let other = Connection::open(database(folder.path())).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (reply, mut answer) = oneshot::channel();
    let request: Box<dyn WriteJob> = Box::new(AnsweredWrite::new(|_: &Connection| Ok(()), reply));
    let ownership = Ownership::of(&database(folder.path()), None).unwrap();
    commit(&mut connection, &ownership, [request].into_iter(), &mut iter::empty(), &WriteCounts::default())
        .unwrap_err();
    assert!(answer.try_recv().unwrap().unwrap_err().to_string().contains("locked"));
}

#[tokio::test]
async fn after_a_panic_every_call_fails() {
    let (folder, store) = open_in(folder());
    let boom = |db: &Connection| -> Result<(), Fault> { panic!("boom, {}", db.is_autocommit()) };
    let (waiting, broken) = tokio::join!(store.accept(new(1, "k", "t"), vec![]), store.writer.write(boom));
    drop(waiting);
    broken.unwrap_err();
    store.accept(new(2, "l", "u"), vec![]).await.unwrap_err();
    store.readers.read(boom).await.unwrap_err();
    assert_eq!(store.task(id(2)).await.unwrap(), None);
    store.readers.read(boom).await.unwrap_err();
    store.task(id(2)).await.unwrap_err();
    drop(store);
    accept(&(open(folder.path()) as Arc<dyn Store>), new(2, "l", "u")).await;
}

#[tokio::test]
async fn a_caller_that_does_not_wait_loses_only_the_answer_and_a_stop_writes_waiting_requests() {
    let (folder, store) = open_in(folder());
    for n in 1..=300 {
        tokio::select! {
            biased;
            _ = store.accept(nth(n), vec![]) => {}
            () = std::future::ready(()) => {}
        }
    }
    drop(store);
    assert!(!log(folder.path()).exists());
    assert_eq!(open(folder.path()).in_flight(None, 999).await.unwrap().len(), 300);
}

#[tokio::test]
async fn a_damaged_row_is_an_error_that_names_it() {
    let (_folder, sqlite) = open_in(folder());
    let store: Arc<dyn Store> = Arc::clone(&sqlite) as Arc<dyn Store>;
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    for n in 1..=2 {
        accept(&store, nth(n)).await;
        advance(&store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    }
    let damage = async |sql: &'static str| {
        sqlite.writer.write(move |db| Ok(db.execute_batch(sql)?)).await.unwrap();
    };
    damage("PRAGMA ignore_check_constraints = ON; UPDATE task_event SET phase = 'dreaming' WHERE version = 1").await;
    damage("UPDATE task SET state = '{' WHERE target = 't1'; UPDATE ledger SET kind = 'gift' WHERE number = 2").await;
    damage("UPDATE application SET permissions = '?'").await;
    let named = |error: StoreError, name: &str| assert!(error.to_string().contains(name), "{error}");
    named(store.task(id(1)).await.unwrap_err(), &id(1).to_string());
    named(store.accept(new(3, "k", "t1"), vec![]).await.unwrap_err(), &id(1).to_string());
    named(store.timeline(id(2)).await.unwrap_err(), &id(2).to_string());
    named(store.ledger(0, 9).await.unwrap_err(), "line 2 of the ledger");
    named(store.directory().await.unwrap_err(), "application a");
    assert!(store.task(id(2)).await.unwrap().is_some());
    assert_eq!(store.ledger(0, 1).await.unwrap().len(), 1);
    assert_eq!(store.in_flight(None, 9).await.unwrap().len(), 2);
    damage("UPDATE task SET version = -1 WHERE target = 't2'").await;
    named(store.task(id(2)).await.unwrap_err(), &id(2).to_string());
}

#[tokio::test]
async fn a_time_beyond_the_range_of_a_column_is_stored_as_the_maximum() {
    let (_folder, store) = open_new().await;
    accept(&store, new(1, "k", "t")).await;
    end(&store, 1, TaskStatus::Timeout, Timestamp(u64::MAX)).await;
    assert!(matches!(store.accept(new(2, "l", "t"), vec![]).await.unwrap(), Acceptance::Fresh { .. }));
    assert_eq!((moment(-1), millis(Timestamp(7))), (Timestamp(0), 7));
}

#[tokio::test]
async fn if_there_are_too_many_tasks_the_earliest_ended_are_deleted_first() {
    let (folder, store) = open_new().await;
    for n in 1..=6 {
        accept(&store, nth(n)).await;
        if n != 2 {
            end_at(&store, n, TaskStatus::Success, AT, Timestamp(100 * n as u64)).await;
        }
    }
    let db = Connection::open(database(folder.path())).unwrap();
    for (most, limit, surplus) in [(6, 9, 0), (5, 9, 1), (1, 9, 5), (1, 2, 2), (0, 9, 6)] {
        assert_eq!(super::kept::surplus(&db, most, limit).unwrap(), surplus);
    }
    assert_eq!(super::tasks::purge(&db, Timestamp(0), 9, 2).unwrap(), 2);
    let mut left = Vec::new();
    for n in 1..=6 {
        left.extend(store.task(id(n)).await.unwrap().map(|_| n));
    }
    assert_eq!(left, [2, 4, 5, 6]);
}

#[test]
fn a_page_of_an_applications_tasks_begins_in_an_index() {
    let folder = folder();
    let _store = open(folder.path());
    let db = Connection::open(database(folder.path())).unwrap();
    for (application, statuses, index) in [
        (Some("app"), vec![], "ix_task_application (application=? AND id>? AND id<?)"),
        (None, vec![], "(id>? AND id<?)"),
        (None, vec![TaskStatus::Dispatched], "ix_task_inflight (id>? AND id<?)"),
        (None, vec![TaskStatus::Failed], "ix_task_status (status=? AND id>? AND id<?)"),
    ] {
        let application = application.map(str::to_owned);
        let filter = TaskFilter { application: application.clone(), statuses, limit: 9, ..TaskFilter::default() };
        let sql = format!("EXPLAIN QUERY PLAN {}", super::tasks::list(&filter));
        let mut select = db.prepare(&sql).unwrap();
        let values = (application, None::<[u8; 16]>, None::<[u8; 16]>);
        let plan = select.query_map(values, |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<_> = plan.map(Result::unwrap).collect();
        assert!(plan[0].contains(index) && !plan.concat().contains("SORT"), "{plan:?}");
    }
}
