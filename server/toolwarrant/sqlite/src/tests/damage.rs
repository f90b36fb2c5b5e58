//! A killed process, a full disk, and files that have changed: acknowledged data is there, or the
//! fault is reported.

use super::model::everything;
use super::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn verdict(folder: &Path) -> String {
    let database = Connection::open(database(folder)).unwrap();
    database
        .query_row("SELECT group_concat(integrity_check) FROM pragma_integrity_check", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_kill_at_any_moment() {
    const CLIENTS: usize = 16;
    const TASKS: usize = 480;
    let (folder, sqlite) = open_in(folder());
    // A copy of the two files belongs to one moment only if the log is not merged into the database
    // meanwhile.
    let keep = |db: &Connection| Ok(db.pragma_update(None, "wal_autocheckpoint", 0)?);
    sqlite.writer.write(keep).await.unwrap();
    let store: Arc<dyn Store> = sqlite;
    let (next, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(BTreeMap::new())));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (store, next, acknowledged) = (Arc::clone(&store), Arc::clone(&next), Arc::clone(&acknowledged));
            tokio::spawn(async move {
                for _ in 0..TASKS / CLIENTS {
                    let n = u128::from(next.fetch_add(1, Relaxed));
                    accept(&store, nth(n)).await;
                    acknowledged.lock().unwrap().insert(n, 0);
                    advance(&store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
                    acknowledged.lock().unwrap().insert(n, 1);
                }
            })
        })
        .collect();
    for kill in 0..20 {
        while acknowledged.lock().unwrap().len() < kill * TASKS / 20 {
            tokio::task::yield_now().await;
        }
        let known = acknowledged.lock().unwrap().clone();
        let copy = leave_behind(folder.path());
        let reopened = open(copy.path());
        for (n, version) in known {
            let record = reopened.task(id(n)).await.unwrap();
            assert!(record.is_some_and(|record| record.version >= version), "{n} was at {version}");
        }
        let (charges, open) =
            (reopened.ledger(0, u32::MAX).await.unwrap(), reopened.in_flight(None, u32::MAX).await.unwrap());
        for OpenTask { id, .. } in open {
            let charged = charges.iter().any(|row| row.id == id);
            let record = reopened.task(id).await.unwrap().unwrap();
            let told = reopened.timeline(id).await.unwrap().len();
            assert_eq!((record.version as usize, told), (usize::from(charged), 1 + usize::from(charged)));
            assert!(matches!(
                reopened.accept(new(u128::MAX, "k", &record.identity.target), vec![]).await.unwrap(),
                Acceptance::Busy { .. }
            ));
        }
        drop(reopened);
        assert_eq!(verdict(copy.path()), "ok");
    }
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn a_full_disk_loses_no_acknowledged_write_and_the_store_recovers_when_there_is_room() {
    let (folder, sqlite) = open_in(quick_folder());
    let store: Arc<dyn Store> = sqlite.clone();
    let pages = async |pages: u32| {
        let limit = move |db: &Connection| {
            Ok(db.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))?)
        };
        sqlite.writer.write(limit).await.unwrap()
    };
    let task = |n: u128| Record { sealed: Some(vec![7; 3_000]), ..nth(n) };
    accept(&store, task(0)).await;
    let most = pages(1).await + 20;
    pages(most).await;
    let mut refused = Vec::new();
    for n in 1..60 {
        // Two calls share a transaction. If one does not find room, the answer of the other must
        // not be lost.
        let (a, b) = tokio::join!(store.accept(task(2 * n), vec![]), store.accept(task(2 * n + 1), vec![]));
        for (n, answer) in [(2 * n, a), (2 * n + 1, b)] {
            match answer {
                Ok(_) => assert!(store.task(id(n)).await.unwrap().is_some()),
                Err(why) => {
                    assert!(matches!(&why, StoreError::Unavailable(why) if why.contains("full")), "{why}");
                    refused.push(n);
                }
            }
        }
    }
    assert!((60..118).contains(&refused.len()), "{}", refused.len());
    let steps = advance(&store, 0, Phase::Sending, vec![Entry::Charge]).await;
    pages(u32::MAX).await;
    if steps.is_err() {
        advance(&store, 0, Phase::Sending, vec![Entry::Charge]).await.unwrap();
    }
    for n in refused {
        assert_eq!(store.task(id(n)).await.unwrap(), None);
        accept(&store, task(n)).await;
    }
    let before = everything(&*store).await;
    drop((store, sqlite));
    assert_eq!(everything(&*open(folder.path())).await, before);
    assert_eq!(
        (verdict(folder.path()).as_str(), open(folder.path()).in_flight(None, 999).await.unwrap().len()),
        ("ok", 119)
    );
}

#[tokio::test]
async fn each_start_finds_all_tasks_in_flight_on_one_target_and_accepts_no_further_one() {
    let folder = quick_folder();
    let store: Arc<dyn Store> = open(folder.path());
    for n in 1..=2 {
        accept(&store, nth(n)).await;
    }
    drop(store);
    let database = Connection::open(super::database(folder.path())).unwrap();
    database.execute_batch("UPDATE task SET target = 't1'").unwrap();
    let mut store: Arc<dyn Store> = open(folder.path());
    let found = store.violations(IntegrityRule::TargetLocks).await.unwrap();
    assert_eq!(found, [format!("{} is in flight on t1, and so is another task", id(2))]);
    for n in 1..=2 {
        let left: Vec<_> = store.in_flight(None, 9).await.unwrap().iter().map(|task| task.id).collect();
        assert_eq!(left, (n..=2).map(id).collect::<Vec<_>>());
        let refused = store.accept(new(3, "k3", "t1"), vec![]).await.unwrap();
        assert!(matches!(refused, Acceptance::Busy { .. }), "{refused:?}");
        end(&store, n, TaskStatus::Timeout, AT).await;
        drop(store);
        store = open(folder.path());
    }
    accept(&store, new(3, "k3", "t1")).await;
}

#[test]
fn a_file_that_cannot_be_created_is_named() {
    // Not even root can create a file there.
    let refused = Sqlite::open(Path::new("/sys/store.db"), ()).unwrap_err().to_string();
    assert!(refused.starts_with("cannot use /sys/store.db: "), "{refused}");
}

#[test]
fn a_file_that_is_not_a_database_is_refused_by_name() {
    let folder = folder();
    let path = database(folder.path());
    fs::write(&path, "not a database, but long enough to look like one").unwrap();
    let refused = Sqlite::open(&path, ()).unwrap_err().to_string();
    assert_eq!(refused, format!("cannot open the database `{}`: file is not a database", path.display()));
}
