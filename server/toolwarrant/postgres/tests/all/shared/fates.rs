//! Changes whose answer is lost, and what a process says of them.

use super::*;
use tokio::time::timeout;
use toolwarrant_store::Recovery;

/// The session that writes and waits for the standby, given to a function of PostgreSQL.
const WAITING_WRITER: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%UPDATE writer%'";

const LONG: Duration = Duration::from_secs(60);

fn change(store: &Arc<Postgres>, name: &'static str) -> JoinHandle<Result<(), StoreError>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.put_application(application(name, name), vec![]).await })
}

async fn names(store: &Postgres) -> Vec<String> {
    let (applications, _) = store.directory().await.expect("read");
    applications.into_iter().map(|row| row.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_session_or_wait_is_ended_is_answered_once_the_standby_has_it_and_else_ends_the_process() {
    let Some((_folder, pair, address)) = synchronous_pair().await else { return };
    let one = lead(&address, "one").await;
    // The first beat notes that there is a standby.
    wait_for_rows(&pair, "FROM replica WHERE beat > 0").await;
    for (end, name) in [("pg_terminate_backend", "first"), ("pg_cancel_backend", "second")] {
        pair.cut_replication();
        let changing = change(&one, name);
        wait_for_rows(&pair, WAITING_WRITER).await;
        pair.query(&format!("SELECT {end}(pid) {WAITING_WRITER}")).await.expect("the server runs");
        wait_for_rows(&pair, &format!("FROM application WHERE name = '{name}'")).await;
        assert!(!changing.is_finished(), "{end}: no other server has it");
        pair.join_replication();
        let changed = timeout(LONG, changing).await.expect("an answer").expect("no panic");
        assert_eq!(changed, Ok(()), "{end}: it is stored");
    }
    pair.cut_replication();
    let changing = change(&one, "third");
    wait_for_rows(&pair, WAITING_WRITER).await;
    pair.query(&format!("SELECT pg_terminate_backend(pid) {WAITING_WRITER}")).await.expect("the server runs");
    let why = timeout(LONG, one.wait_for_unknown_fate()).await.expect("it ends");
    assert!(matches!(why, StoreError::Unanswered(_)), "{why}");
    pair.join_replication();
    let next = timeout(LONG, lead(&address, "one")).await.expect("it leads");
    assert_eq!(names(&next).await, ["first", "second", "third"], "the next leader has it");
    assert!(!changing.is_finished(), "nobody has said anything of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_cannot_note_a_death_for_want_of_the_standby_says_so_and_leads_once_it_is_back() {
    let Some((_folder, pair, address)) = synchronous_pair().await else { return };
    let former = Some(claim(&address, run("one", KEY)).await.epoch);
    pair.cut_replication();
    let (next, mut why) = claims::wait_to_lead(&address, NewRun { former, ..run("one", KEY) });
    let obstacle = why.wait_for(|why| why.to_string().contains("for the synchronous standby"));
    drop(timeout(LONG, obstacle).await.expect("a reason").expect("it waits"));
    pair.join_replication();
    timeout(LONG, next).await.expect("it leads").expect("no panic");
}

#[tokio::test]
async fn a_key_that_is_revoked_while_it_is_confirmed_is_not_confirmed() {
    let Some((address, one)) = lead_anew().await else { return };
    let server = server().expect("it runs");
    server.count(&address.url, "INSERT INTO unconfirmed_key VALUES ('k', '[]')").await;
    let revoking = begin(&address, "LOCK TABLE cluster IN SHARE MODE; DELETE FROM unconfirmed_key").await;
    let confirming = Arc::clone(&one);
    let confirming = tokio::spawn(async move { confirming.confirm_keys(vec!["k".to_owned()], vec![]).await });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'cluster'::regclass";
    while server.count(&address.url, waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    commit(&revoking).await;
    let refused = confirming.await.expect("no panic");
    assert!(matches!(&refused, Err(StoreError::Conflict(why)) if why.contains("`k` does not wait")), "{refused:?}");
}

#[tokio::test]
async fn a_change_that_waits_for_a_lock_is_refused_and_does_not_land_later() {
    let Some((address, one)) = lead_anew().await else { return };
    let open = begin(&address, "LOCK TABLE application").await;
    assert_unavailable(&change(&one, "first").await.expect("no panic"), "55P03");
    commit(&open).await;
    assert_eq!(change(&one, "second").await.expect("no panic"), Ok(()));
    assert_eq!(names(&one).await, ["second"]);
}

#[tokio::test]
async fn a_claim_ends_a_batch_of_the_former_leader_that_has_begun_and_goes_on_never() {
    let Some((address, one)) = lead_anew().await else { return };
    one.accept(new(1, "k", "t"), vec![]).await.expect("the server runs");
    let stuck = begin(&address, "UPDATE writer SET batches = batches + 1").await;
    let next = timeout(LONG, lead(&address, "next")).await.expect("it leads");
    assert_eq!(next.accept(new(2, "l", "u"), vec![]).await, Ok(Acceptance::Fresh { wake_at: AT }));
    stuck.batch_execute("COMMIT").await.expect_err("its session is ended");
}
