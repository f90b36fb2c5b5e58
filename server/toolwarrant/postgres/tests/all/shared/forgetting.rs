//! A copy that has replaced the server, and may lack what was acknowledged, as at a failover to a
//! standby that lags.

use super::*;
use store_suite::act;
use toolwarrant_postgres::SeenBeat;

async fn replace_by_copy(address: &Address, synchronous: bool) {
    let sql = format!("UPDATE cluster SET timeline = '00000000', synchronous = {synchronous}");
    server().expect("it runs").count(&address.url, &sql).await;
}

async fn obstacle(address: &Address, new: NewRun) -> String {
    let (shown, mut why) = watch::channel(Waiting::default());
    let candidate = Candidate::new(address, new).expect("a URL");
    let waiting = tokio::spawn(async move { drop(candidate.wait(&shown, &watch::Sender::default()).await) });
    let why = why.wait_for(|why| matches!(why, Waiting::Obstacle(_))).await.expect("it waits").to_string();
    waiting.abort();
    why
}

#[tokio::test]
async fn in_a_copy_nothing_of_the_leader_lands_and_the_next_one_leads_if_nothing_can_be_missing() {
    let Some((address, one)) = lead_anew().await else { return };
    replace_by_copy(&address, true).await;
    assert_unavailable(&one.accept(new(1, "k", "t"), vec![]).await, "");
    // Each commit had waited for the standby.
    let next = lead(&address, "next").await;
    next.accept(new(1, "k", "t"), vec![]).await.expect("the copy is trusted");
    // The last run has left, and that was its last write.
    next.leave().await.expect("the server runs");
    replace_by_copy(&address, false).await;
    let third = lead(&address, "third").await;
    third.accept(new(2, "l", "u"), vec![]).await.expect("the copy is trusted");
}

#[tokio::test]
async fn a_process_that_waits_remembers_the_beats_that_it_has_seen_while_an_older_copy_takes_the_place_of_the_server() {
    let Some((address, one)) = lead_anew().await else { return };
    let (shown, mut why) = watch::channel(Waiting::default());
    let (seen, mut kept) = watch::channel(SeenBeat::default());
    let candidate = Candidate::new(&address, run("two", KEY)).expect("a URL");
    let waiting = tokio::spawn(async move { candidate.wait(&shown, &seen).await.map(|claim| claim.epoch) });
    let epoch = one.epoch();
    let server = server().expect("it runs");
    server.count(&address.url, "UPDATE replica SET beat = 7").await;
    kept.wait_for(|beat| *beat >= SeenBeat { epoch, number: 6 }).await.expect("it waits");
    // Beats that the copy lacks are evidence also while another process leads there.
    for sql in ["UPDATE replica SET beat = 3", "UPDATE replica SET epoch = epoch + 1"] {
        server.count(&address.url, sql).await;
    }
    let lacks = |why: &Waiting| why.to_string().contains("it lacks what `two` has seen");
    why.wait_for(lacks).await.expect("it waits");
    drop(one);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(lacks(&why.borrow()) && !waiting.is_finished(), "{}", *why.borrow());
    assert_eq!(*kept.borrow(), SeenBeat { epoch, number: 6 });
    waiting.abort();
}

#[tokio::test]
async fn a_copy_that_may_lack_writes_is_led_by_nobody_before_an_operator_accepts_that() {
    let Some((address, one)) = lead_anew().await else { return };
    one.accept(new(1, "k", "t"), vec![]).await.expect("the server runs");
    replace_by_copy(&address, false).await;
    let former = Some(one.epoch());
    // Also in the folder of the run whose writes may be missing.
    for new in [NewRun { former, ..run("one", KEY) }, run("next", KEY)] {
        let why = obstacle(&address, new).await;
        assert!(why.contains("may lack what was acknowledged to `one`") && why.contains("accept-loss"), "{why}");
    }
    assert_unavailable(&one.accept(new(2, "l", "u"), vec![]).await, "");
    let claim = claim(&address, NewRun { mends: true, ..run("operator", KEY) }).await;
    let mender = Postgres::lead(&claim, "operator".to_owned()).await.expect("the server runs");
    let lost = mender.read_loss().await.expect("read").expect("a loss");
    assert!(lost.contains("`one`"), "{lost}");
    assert_eq!(mender.begin_again(AT, act(1, "alice", "cluster accept-loss", None)).await, Ok(1));
    assert_eq!(mender.read_loss().await, Ok(None));
    let ended = mender.task(id(1)).await.expect("read").expect("it is kept");
    assert_eq!(ended.task.status(), Some(TaskStatus::Timeout));
    mender.leave().await.expect("the server runs");
    drop(claim);
    let next = lead(&address, "next").await;
    next.accept(new(2, "l", "u"), vec![]).await.expect("it leads");
}

#[tokio::test]
async fn a_store_without_a_beat_that_was_seen_is_an_older_copy_until_an_operator_accepts_that() {
    let Some((address, one)) = lead_anew().await else { return };
    let seen = |number| NewRun {
        former: Some(one.epoch()),
        seen: Some(SeenBeat { epoch: one.epoch(), number }),
        ..run("one", KEY)
    };
    one.leave().await.expect("the server runs");
    let older = NewRun { mends: false, ..seen(1_000) };
    for (new, leads) in
        [(seen(0), true), (older.clone(), false), (NewRun { mends: true, ..older.clone() }, true), (older, true)]
    {
        let is_mender = new.mends;
        let (shown, mut why) = watch::channel(Waiting::default());
        let candidate = Candidate::new(&address, new).expect("a URL");
        let unseen = watch::Sender::default();
        tokio::select! {
            claim = candidate.wait(&shown, &unseen) => {
                assert!(leads);
                let claim = claim.expect("the server can be used");
                let store = Postgres::lead(&claim, "one".to_owned()).await.expect("the server runs");
                if is_mender {
                    store.begin_again(Clock::system().wall(), act(1, "alice", "cluster accept-loss", None)).await.expect("the server runs");
                }
                store.leave().await.expect("the server runs");
            }
            _ = why.wait_for(|why| why.to_string().contains("it lacks what `one` has seen")) => assert!(!leads),
        }
    }
}
