//! A killed process, a full disk, and files that have changed: acknowledged data is there, or the
//! fault is reported.

use super::model::everything;
use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use toolwarrant_base::random::SplitMix;

/// Returns SQLite's verdict on a database that no process has open.
fn verdict(folder: &Path) -> String {
    let database = Connection::open(database(folder)).unwrap();
    database
        .query_row("SELECT group_concat(integrity_check) FROM pragma_integrity_check", [], |row| row.get(0))
        .unwrap()
}

/// Writes data of each kind, one write after the other.
async fn fill(store: &Arc<dyn Store>, mut after_each: impl AsyncFnMut()) {
    store.put_application(application("a", "first"), vec![], None).await.unwrap();
    after_each().await;
    for n in 0..12 {
        accept(store, new(n, &format!("k{n}"), &format!("t{n}"))).await;
        after_each().await;
        advance(store, n, Phase::Sending, vec![Entry::Charge]).await.unwrap();
        after_each().await;
        if n % 2 == 0 {
            end(store, n, Status::Success, AT).await;
            after_each().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_kill_at_any_moment() {
    const CLIENTS: usize = 16;
    const TASKS: usize = 480;
    let folder = folder();
    let sqlite = open(folder.path());
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
                    accept(&store, new(n, &format!("k{n}"), &format!("t{n}"))).await;
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
                reopened.accept(new(u128::MAX, "k", &record.target)).await.unwrap(),
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
async fn a_log_that_is_truncated_or_damaged_anywhere_is_valid_up_to_there() {
    let folder = quick_folder();
    let sqlite = open(folder.path());
    let store: Arc<dyn Store> = sqlite.clone();
    let nothing = everything(&*store).await;
    let mut states = vec![nothing];
    fill(&store, async || states.push(everything(&*sqlite).await)).await;
    let whole = leave_behind(folder.path());
    let log = fs::read(log(whole.path())).unwrap();
    let mut random = SplitMix(1);
    // The state that the store reached with each length of the log.
    let mut reached = BTreeMap::from([(log.len(), states.len() - 1)]);
    for case in 0..150 {
        let at = random.below(log.len() as u64) as usize;
        let mut damaged = log.clone();
        match case % 3 {
            0 => damaged.truncate(at),
            1 => damaged[at] ^= 1 << random.below(8),
            _ => damaged[at..].fill(0),
        }
        let copy = leave_behind(folder.path());
        fs::write(super::log(copy.path()), damaged).unwrap();
        let reopened = open(copy.path());
        let found = everything(&*reopened).await;
        let Some(state) = states.iter().position(|state| *state == found) else { panic!("at byte {at}: {found}") };
        reached.insert(at, state);
        accept(&(reopened as Arc<dyn Store>), new(99, "k", "t")).await;
        assert_eq!(verdict(copy.path()), "ok");
    }
    assert!(reached.values().is_sorted(), "{reached:?}");
    assert!(reached.values().collect::<BTreeSet<_>>().len() > 10, "{reached:?}");
}

#[tokio::test]
async fn a_full_disk_loses_no_acknowledged_write_and_the_store_recovers_when_there_is_room() {
    let folder = quick_folder();
    let sqlite = open(folder.path());
    let store: Arc<dyn Store> = sqlite.clone();
    let pages = async |pages: u32| {
        let limit = move |db: &Connection| {
            Ok(db.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))?)
        };
        sqlite.writer.write(limit).await.unwrap()
    };
    let task = |n: u128| NewTask { sealed: vec![7; 3_000], ..new(n, &format!("k{n}"), &format!("t{n}")) };
    accept(&store, task(0)).await;
    let most = pages(1).await + 20;
    pages(most).await;
    let mut refused = Vec::new();
    for n in 1..60 {
        // Two calls share a transaction. If one does not find room, the answer of the other must
        // not be lost.
        let (a, b) = tokio::join!(store.accept(task(2 * n)), store.accept(task(2 * n + 1)));
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
        accept(&store, new(n, &format!("k{n}"), &format!("t{n}"))).await;
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
        let refused = store.accept(new(3, "k3", "t1")).await.unwrap();
        assert!(matches!(refused, Acceptance::Busy { .. }), "{refused:?}");
        end(&store, n, Status::Timeout, AT).await;
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

#[tokio::test]
async fn a_database_with_a_damaged_header_is_refused_by_name_or_gives_the_same_answers() {
    let folder = quick_folder();
    let store: Arc<dyn Store> = open(folder.path());
    fill(&store, async || {}).await;
    let before = everything(&*store).await;
    drop(store);
    let whole = fs::read(database(folder.path())).unwrap();
    let (mut refused, mut opened) = (0, 0);
    for (at, bit) in (0..100).flat_map(|at| [0, 7].map(move |bit| (at, bit))) {
        let copy = quick_folder();
        let path = database(copy.path());
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&path, damaged).unwrap();
        match Sqlite::open(&path, ()) {
            Err(error) => {
                refused += 1;
                let error = error.to_string();
                assert!(error.contains(&path.display().to_string()), "byte {at}, bit {bit}: {error}");
            }
            Ok(store) => {
                opened += 1;
                let found = everything(&store).await;
                assert!(found == before || found.contains("StoreError"), "byte {at}, bit {bit}: {found}");
            }
        }
    }
    assert!(refused > 10 && opened > 10, "{refused} were refused, {opened} opened");
}
