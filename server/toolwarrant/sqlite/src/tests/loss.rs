//! Lost data, and ownership.

use super::super::watermark::path_of;
use super::*;
use rusqlite::OpenFlags;
use toolwarrant_base::json;
use toolwarrant_store::Recovery;

fn open_refusal(folder: &Path) -> String {
    match Sqlite::open(&database(folder), ()) {
        Err(error @ DatabaseError::Lost { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn key(id: &str, secrets: &[u8]) -> KeyRow {
    store_suite::key(id, "a", secrets)
}

/// Leaves what a power cut now would leave.
fn cut_off(folder: &Path) -> TempDir {
    let copy = leave_behind(folder);
    fs::copy(path_of(&database(folder)), path_of(&database(copy.path()))).unwrap();
    copy
}

#[tokio::test]
async fn a_lost_or_damaged_log_is_detected_at_the_next_start_and_not_changed() {
    let (folder, store) = open_in(quick_folder());
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    accept(&(store.clone() as Arc<dyn Store>), new(1, "k", "t")).await;
    let raised = fs::read_to_string(path_of(&database(folder.path()))).unwrap();
    assert!(raised.contains("\"newest_task\":null"), "{raised}");
    for checkpointed in [true, false] {
        let copy = cut_off(folder.path());
        let log = log(copy.path());
        let mut bytes = fs::read(&log).unwrap();
        if checkpointed {
            fs::remove_file(&log).unwrap();
            let reopened = open(copy.path());
            assert_eq!((reopened.directory().await.unwrap().0.len(), reopened.task(id(1)).await.unwrap()), (1, None));
            continue;
        }
        fs::write(database(copy.path()), blank_of_folder()).unwrap();
        bytes[40] ^= 1;
        fs::write(&log, &bytes).unwrap();
        let said = open_refusal(copy.path());
        assert!(said.contains("it held everything until") && said.contains("`restore`"), "{said}");
        assert_eq!(fs::read(&log).unwrap(), bytes, "what is left can still be looked at");
        assert!(matches!(Sqlite::open_as_it_is(&database(copy.path()), ()), Err(DatabaseError::Lost { .. })));
        fs::remove_file(path_of(&database(copy.path()))).unwrap();
        drop(open(copy.path()));
    }
}

fn blank_of_folder() -> Vec<u8> {
    let folder = quick_folder();
    drop(open(folder.path()));
    fs::read(database(folder.path())).unwrap()
}

#[tokio::test]
async fn a_database_that_is_older_than_its_watermark_or_missing_or_replaced_is_refused() {
    let folder = quick_folder();
    drop(open(folder.path()));
    let older = fs::read(database(folder.path())).unwrap();
    let store: Arc<dyn Store> = open(folder.path());
    accept(&store, new(1, "k", "t")).await;
    drop(store);
    let watermark = fs::read_to_string(path_of(&database(folder.path()))).unwrap();
    assert!(watermark.contains(&id(1).to_string()), "a stop raises it: {watermark}");
    let whole = fs::read(database(folder.path())).unwrap();

    fs::write(database(folder.path()), older).unwrap();
    let said = open_refusal(folder.path());
    assert!(said.contains(&format!("up to {}, and the remaining data ends at ", id(1))), "{said}");
    fs::write(database(folder.path()), blank_of_folder()).unwrap();
    assert!(open_refusal(folder.path()).contains("this is a different database"));
    fs::write(database(folder.path()), "").unwrap();
    assert!(open_refusal(folder.path()).contains("this is a different database"));
    fs::remove_file(database(folder.path())).unwrap();
    assert!(open_refusal(folder.path()).contains("it is missing"));
    assert!(!database(folder.path()).exists(), "no other one is made in its place");
    fs::write(database(folder.path()), &whole).unwrap();
    drop(open(folder.path()));
    fs::write(path_of(&database(folder.path())), "{").unwrap();
    assert!(open_refusal(folder.path()).contains("its watermark is damaged"));
}

#[tokio::test]
async fn a_change_of_a_key_is_in_the_database_and_below_the_watermark_before_the_answer() {
    let (folder, store) = open_in(quick_folder());
    let sequence = || -> serde_json::Value {
        let text = fs::read(path_of(&database(folder.path()))).unwrap();
        json::read_bytes::<serde_json::Value>(&text).unwrap()["sequence"].clone()
    };
    assert_eq!(sequence(), 1);
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    assert_eq!(sequence(), 2);
    store.put_key(key("k", &[1]), vec![]).await.unwrap();
    assert_eq!(sequence(), 3);
    let copy = quick_folder();
    fs::copy(database(folder.path()), database(copy.path())).unwrap();
    assert_eq!(open(copy.path()).directory().await.unwrap().1, [key("k", &[1])]);
}

#[tokio::test]
async fn a_change_is_stored_with_its_act_or_not_at_all() {
    let (folder, store) = open_in(quick_folder());
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON act BEGIN SELECT RAISE(ABORT, 'no act'); END;";
    Connection::open(database(folder.path())).unwrap().execute_batch(refuse).unwrap();
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    let before = store.directory().await.unwrap();
    assert!(store.put_application(application("a", "other"), vec![act(1, "alice", "restore", None)]).await.is_err());
    assert!(store.put_key(key("k", &[1]), vec![act(1, "alice", "restore", None)]).await.is_err());
    assert_eq!(store.directory().await.unwrap(), before);
}

#[tokio::test]
async fn commits_are_below_the_watermark_after_a_while_even_without_a_change_of_a_key() {
    let (folder, store) = open_in(quick_folder());
    let path = database(folder.path());
    let connection =
        super::connection::connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, super::connection::SHARED).unwrap();
    let writer = Arc::clone(&store.writer);
    let often = Keeper::start(&path, connection, writer, Duration::from_millis(5)).unwrap();
    accept(&(store.clone() as Arc<dyn Store>), new(1, "k", "t")).await;
    while !fs::read_to_string(path_of(&path)).unwrap().contains(&id(1).to_string()) {
        tokio::task::yield_now().await;
    }
    drop(often);
    let raised = fs::read(path_of(&path)).unwrap();
    drop(store);
    let after: serde_json::Value = json::read_bytes(&fs::read(path_of(&path)).unwrap()).unwrap();
    let raised: serde_json::Value = json::read_bytes(&raised).unwrap();
    assert_eq!(after["newest_task"], raised["newest_task"]);
}

#[tokio::test]
async fn nothing_is_written_to_a_database_that_was_moved_or_replaced() {
    let folder = quick_folder();
    let (path, aside) = (database(folder.path()), folder.path().join("aside"));
    let store: Arc<dyn Store> = open(folder.path());
    accept(&store, new(1, "k", "t")).await;
    let moves = [path.clone(), log(folder.path())].map(|file| (file, aside.clone()));
    for (n, (from, to)) in (2..).zip(moves) {
        fs::rename(&from, &to).unwrap();
        for replaced in [false, true] {
            if replaced {
                fs::copy(&to, &from).unwrap();
            }
            assert_unavailable(&store.accept(new(n, &format!("k{n}"), "u"), vec![]).await, "removed or replaced");
            advance(&store, 1, Phase::Sending, vec![Entry::Charge]).await.unwrap_err();
        }
        fs::rename(&to, &from).unwrap();
        assert_eq!(store.task(id(n)).await.unwrap(), None);
    }
    advance(&store, 1, Phase::Sending, vec![Entry::Charge]).await.unwrap();
}

#[tokio::test]
async fn the_process_that_opened_a_database_last_owns_it() {
    let folder = quick_folder();
    let first: Arc<dyn Store> = open(folder.path());
    accept(&first, new(1, "k", "t")).await;
    let second: Arc<dyn Store> = open(folder.path());
    assert_unavailable(&first.accept(new(2, "l", "u"), vec![]).await, "another process has");
    drop(Sqlite::open_as_it_is(&database(folder.path()), ()).unwrap());
    accept(&second, new(2, "l", "u")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_another_program_has_a_transaction_open_all_waiting_calls_are_refused_at_once() {
    let folder = quick_folder();
    let store: Arc<dyn Store> = open(folder.path());
    let other = Connection::open(database(folder.path())).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..40 {
        let store = Arc::clone(&store);
        waiting.spawn(async move {
            // Several calls in sequence, like clients that retry. Each could wait on its own.
            for again in 0..5 {
                let number = n * 5 + again;
                store.accept(nth(number), vec![]).await.unwrap_err();
            }
        });
    }
    // With the full time for each call, this would take a quarter of an hour.
    tokio::time::timeout(Duration::from_mins(1), waiting.join_all()).await.unwrap();
    other.execute_batch("ROLLBACK").unwrap();
    // Calls that arrive while the last waiting ones are refused are refused with them.
    let accepted = async { while store.accept(new(999, "k", "t"), vec![]).await.is_err() {} };
    tokio::time::timeout(Duration::from_mins(1), accepted).await.unwrap();
}

#[tokio::test]
async fn a_restored_copy_has_no_live_key_and_no_task_in_flight() {
    let (_folder, store) = open_in(quick_folder());
    let all: Arc<dyn Store> = store.clone();
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    for key in [key("k1", &[2, 1]), key("k2", &[3]), key("k3", &[]), key("k4", &[5])] {
        store.put_key(key, vec![]).await.unwrap();
    }
    accept(&all, new(1, "k", "t")).await;
    accept(&all, new(2, "l", "u")).await;
    let Record { version, task, .. } = store.task(id(2)).await.unwrap().unwrap();
    let task = Task { phase: Phase::Sending, attempts: 1, wake_at: None, ..task };
    let sent =
        Advance { id: id(2), version, task, entries: vec![Entry::Charge], what: "sent".to_owned().into(), at: AT };
    assert_eq!(store.advance(sent).await.unwrap(), Advanced::Written);
    accept(&all, new(3, "m", "v")).await;
    end(&all, 3, TaskStatus::Success, AT).await;
    let ended = store.task(id(3)).await.unwrap();

    let copy = quick_folder();
    let path = database(copy.path());
    store.copy_to(path.clone()).await.unwrap();
    drop((all, store));
    let at = AT.plus(Duration::from_secs(9));
    let RestoredData { applications, keys, ended: count } =
        restore(&path, at, &act(1, "alice", "restore", None)).unwrap();
    assert_eq!((applications.len(), keys.len(), keys[0].secrets.len(), count), (1, 4, 2, 2));

    let store = open(copy.path());
    assert_eq!(store.restored_at(), Some(at));
    assert_eq!(store.in_flight(None, 9).await.unwrap(), []);
    assert_eq!(store.task(id(3)).await.unwrap(), ended);
    for n in 1..=2 {
        let record = store.task(id(n)).await.unwrap().unwrap();
        assert_eq!((record.task.status(), record.refunded_at, record.sealed), (Some(TaskStatus::Timeout), None, None));
        // The request may have been sent at any earlier moment, so the target cools down for the
        // longest time that an operation may take.
        let next = store.accept(new(n + 10, &format!("n{n}"), &record.identity.target), vec![]).await.unwrap();
        assert!(matches!(next, Acceptance::Fresh { wake_at } if wake_at == at.plus(policy().deadline())), "{next:?}");
    }
    for rule in [IntegrityRule::Charges, IntegrityRule::Records, IntegrityRule::Secrets, IntegrityRule::Layout] {
        assert_eq!(store.violations(rule).await.unwrap(), [""; 0], "{rule:?}");
    }

    let secrets = async || store.directory().await.unwrap().1.iter().map(|key| key.secrets.len()).collect::<Vec<_>>();
    assert_eq!(
        (secrets().await, store.keys_to_confirm().await.unwrap().join(" ")),
        (vec![0; 4], "k1 k2 k4".to_owned())
    );
    store.put_key(key("k4", &[]), vec![]).await.unwrap();
    store.confirm_keys(vec!["k1".to_owned(), "k3".to_owned()], vec![]).await.unwrap_err();
    assert_eq!(secrets().await, [0; 4], "all or none");
    store.confirm_keys(vec!["k1".to_owned()], vec![]).await.unwrap();
    assert_eq!(
        (secrets().await, store.keys_to_confirm().await.unwrap().join(" ")),
        (vec![2, 0, 0, 0], "k2".to_owned())
    );
}
