//! Requests that share a statement, and what a statement reads.

use super::*;
use store_suite::alike;
use tokio::task::JoinSet;
use toolwarrant_store::Integrity;

/// Returns the identity of a task of the suite.
fn identity(number: u128) -> Identity {
    new(number, &format!("k{number}"), &format!("t{number}")).identity
}

#[tokio::test]
async fn reads_at_the_same_time_share_a_statement_and_get_their_own_answers() {
    let Some(address) = cluster().await else { return };
    let relay = Relay::start(server().expect("it runs").socket()).await;
    let (one, other) = (join(&address, "one").await, join(&relay.address(&address), "other").await);
    for number in (1..=60).step_by(2) {
        let (key, target) = (format!("k{number}"), format!("t{number}"));
        one.accept(new(number, &key, &target)).await.expect("the server runs");
    }
    assert_eq!(other.task(id(2)).await, Ok(None), "it is connected");
    let before = relay.count_messages();
    let reads = (1..=60).map(|number| {
        let other = other.clone();
        async move {
            let (task, hit) = tokio::join!(other.task(id(number)), other.repeat(identity(number)));
            let found = [task.expect("read").map(|task| task.id), hit.expect("read").map(|hit| hit.id)];
            assert_eq!(found, [(number % 2 == 1).then(|| id(number)); 2]);
        }
    });
    reads.collect::<JoinSet<_>>().join_all().await;
    // 60 of them are rows, and a statement takes about 20.
    let messages = relay.count_messages() - before;
    assert!(messages < 240, "{messages}");
}

#[tokio::test]
async fn documents_that_are_put_at_the_same_time_share_a_batch_and_each_has_its_own_fate() {
    let Some(address) = cluster().await else { return };
    let relay = Relay::start(server().expect("it runs").socket()).await;
    let one = join(&relay.address(&address), "one").await;
    let document = |number: u64, version| Document { key: format!("k{number}"), version, body: vec![number as u8] };
    let put = |number: u64, version| {
        let (one, both) = (Arc::clone(&one), vec![document(number, version), document(number + 100, 0)]);
        async move { (number, one.put_documents("space", both).await.expect("the server runs")) }
    };
    assert_eq!(put(0, 0).await.1, [true, true]);
    let before = relay.count_messages();
    let made: JoinSet<_> = (1..=60).map(|number| put(number, 0)).collect();
    for (number, fate) in made.join_all().await {
        assert_eq!(fate, [true, true], "{number}");
    }
    let messages = relay.count_messages() - before;
    assert!(messages < 240, "120 of them are rows: {messages}");
    // Of the later ones, those of even numbers know the version.
    let changed: JoinSet<_> = (1..=60).map(|number| put(number, 1 + number % 2)).collect();
    for (number, fate) in changed.join_all().await {
        assert_eq!(fate, [number % 2 == 0, false], "{number}");
    }
    let keys = vec!["k1".to_owned(), "k2".to_owned()];
    let found = one.documents("space", keys).await.expect("the server runs");
    let mut versions: Vec<_> = found.iter().map(|found| (&*found.key, found.version)).collect();
    versions.sort_unstable();
    assert_eq!(versions, [("k1", 1), ("k2", 2)]);
}

#[tokio::test]
async fn a_read_that_the_server_refuses_and_a_row_that_cannot_be_read_fail_alone() {
    let Some(address) = cluster().await else { return };
    let one = join(&address, "one").await;
    for number in [1, 2] {
        one.accept(new(number, &format!("k{number}"), &format!("t{number}"))).await.expect("the server runs");
    }
    let strange = Identity { key: Some("\0".to_owned()), ..identity(3) };
    let (strange, first, none) = tokio::join!(one.repeat(strange), one.repeat(identity(1)), one.repeat(identity(4)));
    assert!(matches!(&strange, Err(StoreError::Unavailable(why)) if why.contains("0x00")), "{strange:?}");
    assert_eq!((first.expect("read").map(|hit| hit.id), none), (Some(id(1)), Ok(None)));
    server().expect("it runs").count(&address, "UPDATE task SET state = '{' WHERE target = 't2'").await;
    let (first, broken) = tokio::join!(one.task(id(1)), one.task(id(2)));
    assert_eq!(first.expect("read").map(|task| task.id), Some(id(1)));
    assert!(matches!(broken, Err(StoreError::Corrupt(_))), "{broken:?}");
}

#[tokio::test]
async fn a_statement_reads_its_own_task_alone_although_it_was_planned_for_a_small_table() {
    const TASKS: u128 = 300;
    let Some(address) = cluster().await else { return };
    let one = join(&address, "one").await;
    let run = async |sql: &str| server().expect("it runs").count(&address, sql).await;
    let carry_out = async |numbers: std::ops::RangeInclusive<u128>| {
        for number in numbers.clone() {
            let (key, target) = (format!("k{number}"), format!("t{number}"));
            one.accept(new(number, &key, &target)).await.expect("the server runs");
            let other = new(number + 2 * TASKS, &format!("l{number}"), &target);
            let without_key = alike(other.clone(), |identity| identity.key = None);
            for other in [other, without_key] {
                assert_eq!(one.repeat(other.identity.clone()).await, Ok(None));
                let busy = one.accept(other).await;
                assert!(matches!(busy, Ok(Acceptance::Busy { .. })), "{busy:?}");
            }
        }
        let advance = |number| {
            let one = Arc::clone(&one);
            async move { one.advance(step(number, Phase::Sending, vec![Entry::Charge])).await }
        };
        let steps: JoinSet<_> = numbers.map(advance).collect();
        assert!(steps.join_all().await.iter().all(|advanced| *advanced == Ok(Advanced::Written)));
    };
    carry_out(1..=1).await;
    // An old transaction keeps dead rows, and ANALYZE finds hardly any other.
    let _open = server().expect("it runs").begin().await;
    run("INSERT INTO task (id, created_at, fingerprint, application, tool, resource, target, request_id, key_id, sealed, owner,
                           version, state)
         SELECT gen_random_uuid(), 1, '', 'a', '', '', number, '', '', '', 0, 0, '' FROM generate_series(1, 20000) AS number")
        .await;
    run("DELETE FROM task WHERE state = ''").await;
    run("ANALYZE task, target").await;
    carry_out(2..=TASKS).await;
    for _ in 0..TASKS {
        assert_eq!(one.orphans(None, 9).await, Ok(vec![]));
    }
    let figure = async |column: &str, condition: &str| {
        run(&format!(
            "SELECT sum({column})::bigint FROM pg_stat_user_indexes WHERE schemaname = current_schema() AND {condition}"
        ))
        .await
    };
    while figure("idx_scan", "indexrelname = 'task_pkey'").await < TASKS as i64 {}
    assert_eq!(figure("idx_scan", "indexrelname = 'ix_task_owner'").await, 0, "a step goes by the id");
    let entries = figure("idx_tup_read", "relname IN ('task', 'target')").await;
    assert!(entries < 30 * TASKS as i64, "{entries}");
}

#[tokio::test]
async fn a_batch_does_not_read_the_versions_before_while_an_old_transaction_is_open() {
    const BATCHES: i64 = 3_000;
    const QUESTIONS: i64 = 200;
    let Some(address) = cluster().await else { return };
    let one = join(&address, "one").await;
    one.touch().await.expect("the server runs");
    server().expect("it runs").count(&address, "ANALYZE writer").await;
    assert!(one.may_send().await.expect("the server runs"));
    let _open = server().expect("it runs").begin().await;
    for _ in 0..BATCHES {
        one.touch().await.expect("the server runs");
    }
    let figure = |columns: &str| {
        let sql = format!("SELECT ({columns})::bigint FROM pg_statio_user_tables WHERE relid = 'writer'::regclass");
        let address = address.clone();
        async move { server().expect("it runs").count(&address, &sql).await }
    };
    while figure("idx_blks_hit").await < BATCHES {}
    let blocks = figure("heap_blks_hit + idx_blks_hit").await;
    assert!(blocks < 9 * BATCHES, "{blocks}");
    let (mut questions, mut asked) = (0, 0);
    // The server counts blocks a second late.
    while questions < QUESTIONS || asked < questions {
        assert!(one.may_send().await.expect("the server runs"));
        (questions, asked) = (questions + 1, figure("heap_blks_hit + idx_blks_hit").await - blocks);
    }
    assert!(asked < 20 * questions, "{asked} for {questions}");
}

#[tokio::test]
async fn a_look_for_the_tasks_of_others_goes_by_their_owners_and_not_through_all_tasks() {
    let Some(address) = cluster().await else { return };
    let (one, other) = (join(&address, "one").await, join(&address, "other").await);
    let accept = |number: u128| {
        let (one, key, target) = (Arc::clone(&one), format!("k{number}"), format!("t{number}"));
        async move { one.accept(new(number, &key, &target)).await.expect("the server runs") }
    };
    (1..=3_000).map(accept).collect::<JoinSet<_>>().join_all().await;
    server().expect("it runs").count(&address, "ANALYZE task").await;
    join(&address, "gone").await.leave().await.expect("the server runs");
    // The server counts scans a second late.
    let scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelid = 'ix_task_owner'::regclass";
    for _ in 0..1_000 {
        assert_eq!(other.orphans(None, 9).await, Ok(vec![]));
        if server().expect("it runs").count(&address, scans).await > 0 {
            return;
        }
    }
    panic!("it does not use the index of owners");
}
