//! Requests that share a statement, and what a statement reads.

use super::*;
use store_suite::alike;
use tokio::task::JoinSet;
use toolwarrant_store::Integrity;

fn identity(number: u128) -> Identity {
    nth(number).identity
}

#[tokio::test]
async fn reads_at_the_same_time_share_a_statement_and_get_their_own_answers() {
    let Some(address) = cluster().await else { return };
    let relay = Relay::start(server().expect("it runs").socket()).await;
    let (one, other) = (lead(&address, "one").await, Arc::new(super::read(&relay.address(&address)).await));
    for number in (1..=60).step_by(2) {
        one.accept(nth(number), vec![]).await.expect("the server runs");
    }
    assert_eq!(other.task(id(2)).await, Ok(None), "it is connected");
    let before = relay.count_messages();
    let reads = (1..=60).map(|number| {
        let other = other.clone();
        async move {
            let (task, hit) = tokio::join!(other.task(id(number)), other.repeat(identity(number)));
            let found = [
                task.expect("read").map(|task| task.id),
                hit.expect("read").and_then(|hit| TaskId::parse(&hit.task_id)),
            ];
            assert_eq!(found, [(number % 2 == 1).then(|| id(number)); 2]);
        }
    });
    reads.collect::<JoinSet<_>>().join_all().await;
    // 60 of them are rows, and a statement takes about 20.
    let messages = relay.count_messages() - before;
    assert!(messages < 240, "{messages}");
}

#[tokio::test]
async fn a_read_that_the_server_refuses_and_a_row_that_cannot_be_read_fail_alone() {
    let Some((address, one)) = lead_anew().await else { return };
    for number in [1, 2] {
        one.accept(nth(number), vec![]).await.expect("the server runs");
    }
    let strange = Identity { key: Some("\0".to_owned()), ..identity(3) };
    let (strange, first, none) = tokio::join!(one.repeat(strange), one.repeat(identity(1)), one.repeat(identity(4)));
    assert_unavailable(&strange, "0x00");
    assert_eq!((first.expect("read").map(|hit| hit.task_id), none), (Some(id(1).to_string()), Ok(None)));
    server().expect("it runs").count(&address.url, "UPDATE task SET state = '{' WHERE target = 't2'").await;
    let (first, broken) = tokio::join!(one.task(id(1)), one.task(id(2)));
    assert_eq!(first.expect("read").map(|task| task.id), Some(id(1)));
    assert!(matches!(broken, Err(StoreError::Corrupt(_))), "{broken:?}");
}

#[tokio::test]
async fn a_statement_reads_its_own_task_alone_although_it_was_planned_for_a_small_table() {
    const TASKS: u128 = 300;
    let Some((address, one)) = lead_anew().await else { return };
    let run = async |sql: &str| server().expect("it runs").count(&address.url, sql).await;
    let carry_out = async |numbers: std::ops::RangeInclusive<u128>| {
        for number in numbers.clone() {
            one.accept(nth(number), vec![]).await.expect("the server runs");
            let other = new(number + 2 * TASKS, &format!("l{number}"), &format!("t{number}"));
            let without_key = alike(other.clone(), |identity| identity.key = None);
            for other in [other, without_key] {
                assert_eq!(one.repeat(other.identity.clone()).await, Ok(None));
                let busy = one.accept(other, vec![]).await;
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
    run("INSERT INTO task (id, created_at, fingerprint, application, tool, resource, target, request_id, key_id, sealed, version, state)
         SELECT gen_random_uuid(), 1, '', 'a', '', '', number, '', '', '', 0, '' FROM generate_series(1, 20000) AS number")
        .await;
    run("DELETE FROM task WHERE state = ''").await;
    run("ANALYZE task, target").await;
    carry_out(2..=TASKS).await;
    let figure = async |column: &str, condition: &str| {
        run(&format!(
            "SELECT sum({column})::bigint FROM pg_stat_user_indexes WHERE schemaname = current_schema() AND {condition}"
        ))
        .await
    };
    while figure("idx_scan", "indexrelname = 'task_pkey'").await < TASKS as i64 {}
    let entries = figure("idx_tup_read", "relname IN ('task', 'target')").await;
    assert!(entries < 30 * TASKS as i64, "{entries}");
}

#[tokio::test]
async fn a_batch_does_not_read_the_versions_before_while_an_old_transaction_is_open() {
    const BATCHES: i64 = 3_000;
    let Some((address, one)) = lead_anew().await else { return };
    one.touch().await.expect("the server runs");
    server().expect("it runs").count(&address.url, "ANALYZE writer").await;
    let _open = server().expect("it runs").begin().await;
    for _ in 0..BATCHES {
        one.touch().await.expect("the server runs");
    }
    let figure = |columns: &str| {
        let sql = format!(
            "SELECT ({columns})::bigint FROM pg_statio_user_tables JOIN pg_stat_user_tables USING (relid) WHERE relid = 'writer'::regclass"
        );
        let address = address.clone();
        async move { server().expect("it runs").count(&address.url, &sql).await }
    };
    while figure("n_tup_upd").await < BATCHES {}
    let blocks = figure("heap_blks_hit + idx_blks_hit").await;
    assert!(blocks < 9 * BATCHES, "{blocks}");
}
