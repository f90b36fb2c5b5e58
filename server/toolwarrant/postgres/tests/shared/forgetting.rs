//! A store that lacks what it had acknowledged: a copy has replaced it, as at a failover to a
//! standby that lags.

use super::{Address, cluster, join, server, step};
use std::sync::Arc;
use store_suite::{AT, application, id, new};
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::SecretRow;
use toolwarrant_base::random::Random;
use toolwarrant_core::act::{Act, ActFilter, Changes, Channel, Operator, Origin, Role};
use toolwarrant_core::cluster::{Beat, ClusterStore, Membership, StoreTrust};
use toolwarrant_core::store::{DirectoryStore, KeyRow, StoreError};
use toolwarrant_postgres::Postgres;
use toolwarrant_store::Recovery;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::store::{Acceptance, TaskStore};
use toolwarrant_tasks::task::{Phase, Status};

/// Changes the store as a copy of an earlier moment would.
async fn replace_by_copy(address: &Address, changes: &[&str]) {
    let server = server().expect("it runs");
    let earlier = ["UPDATE cluster SET timeline = '00000000'", "UPDATE replica SET whole_in = '00000000'"];
    for sql in earlier.iter().chain(changes) {
        server.count(address, sql).await;
    }
}

async fn trust(replica: &Postgres) -> StoreTrust {
    replica.beat(Beat::default()).await.expect("the server runs").trust
}

/// Nothing lands, and nothing may be sent.
async fn assert_stopped(replica: &Postgres, number: u128) {
    let name = format!("t{number}");
    for refused in [replica.accept(new(number, &name, &name)).await.map(drop), replica.may_send().await.map(drop)] {
        assert!(matches!(refused, Err(StoreError::Unavailable(_) | StoreError::Corrupt(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_copy_that_lacks_nothing_is_trusted_once_each_run_has_found_its_writes() {
    let Some(address) = cluster().await else { return };
    let (one, other) = (join(&address, "one").await, join(&address, "other").await);
    one.accept(new(1, "k", "t")).await.expect("the server runs");
    assert_eq!(trust(&one).await, StoreTrust::Settled);
    replace_by_copy(&address, &[]).await;
    for replica in [&one, &other] {
        assert_stopped(replica, 2).await;
    }
    assert_eq!(trust(&one).await, StoreTrust::Unsettled);
    // The other may have been told of a write that is missing, even if it is silent.
    for silent in [vec![], vec![other.epoch()]] {
        one.settle(silent).await.expect("the server runs");
        assert_eq!(trust(&one).await, StoreTrust::Unsettled);
    }
    assert_eq!(trust(&other).await, StoreTrust::Unsettled);
    other.settle(vec![]).await.expect("the server runs");
    for (replica, number) in [(&one, 3), (&other, 4)] {
        assert_eq!(trust(replica).await, StoreTrust::Settled);
        let name = format!("t{number}");
        assert!(matches!(replica.accept(new(number, &name, &name)).await, Ok(Acceptance::Fresh { .. })));
        assert_eq!(replica.may_send().await, Ok(true));
    }
    // The copy may say that commits wait for a standby, and lack the news that they do so no more.
    replace_by_copy(&address, &["UPDATE cluster SET synchronous = true"]).await;
    assert_eq!(trust(&one).await, StoreTrust::Unsettled);
    one.settle(vec![other.epoch()]).await.expect("the server runs");
    assert_eq!(trust(&one).await, StoreTrust::Unsettled);
    let waits = one.read_loss().await.expect("the server runs").expect("a run has not looked");
    assert!(waits.ends_with(": other"), "{waits}");
    // A restart of that run ends the only witness.
    replace_by_copy(&address, &["UPDATE cluster SET synchronous = false"]).await;
    join(&address, "other").await;
    assert!(matches!(trust(&one).await, StoreTrust::Lost(why) if why.starts_with("other ended")));
}

#[tokio::test]
async fn a_run_that_misses_a_write_says_so_before_it_writes_or_sends_and_all_stop() {
    for loss in
        ["UPDATE writer SET batches = batches - 1 WHERE number = 0 AND batches > 0", "UPDATE cluster SET directory = 0"]
    {
        let Some(address) = cluster().await else { return };
        let (one, other) = (join(&address, "one").await, join(&address, "other").await);
        one.accept(new(1, "k", "t")).await.expect("the server runs");
        one.put_application(application("a", "first"), vec![], None).await.expect("the server runs");
        one.beat(Beat { seen: 1, ..Beat::default() }).await.expect("the server runs");
        replace_by_copy(&address, &[loss]).await;
        assert_stopped(&one, 2).await;
        let said = one.beat(Beat { seen: 1, ..Beat::default() }).await.expect("the server runs").trust;
        assert!(matches!(&said, StoreTrust::Lost(why) if why.starts_with("one, of epoch ")), "{loss}: {said:?}");
        assert_eq!(trust(&other).await, said, "{loss}");
        other.settle(vec![one.epoch()]).await.expect("the server runs");
        assert_eq!(trust(&other).await, said, "{loss}");
        assert_stopped(&other, 3).await;
        assert_eq!(other.read_loss().await.map(|lost| lost.map(StoreTrust::Lost)), Ok(Some(said)));
    }
}

#[tokio::test]
async fn a_copy_that_lacks_a_run_is_not_trusted_by_one_that_has_seen_it_also_if_its_name_joins_again() {
    let Some(address) = cluster().await else { return };
    let (one, former) = (join(&address, "one").await, join(&address, "other").await);
    let beat = async |runs| one.beat(Beat { runs, ..Beat::default() }).await.expect("the server runs");
    assert_eq!(beat(0).await.runs, 2);
    // A run that joins a copy counts once that is trusted.
    replace_by_copy(&address, &[]).await;
    let third = join(&address, "third").await;
    for replica in [&former, &third] {
        assert_eq!((trust(replica).await, beat(2).await.runs), (StoreTrust::Unsettled, 2));
    }
    one.settle(vec![]).await.expect("the server runs");
    let beats = beat(2).await;
    assert_eq!((beats.trust, beats.runs), (StoreTrust::Settled, 3));
    let lacks_other = ["DELETE FROM replica WHERE name = 'other'", "UPDATE cluster SET runs = runs - 1"];
    replace_by_copy(&address, &lacks_other).await;
    let next = join(&address, "other").await;
    assert_eq!(trust(&next).await, StoreTrust::Unsettled);
    let said = beat(3).await.trust;
    assert!(matches!(&said, StoreTrust::Lost(why) if why.starts_with("one, of epoch ")), "{said:?}");
    assert_eq!(trust(&next).await, said);
}

#[tokio::test]
async fn an_eviction_that_was_decided_before_a_failover_does_not_land_after_it() {
    let Some(mut address) = cluster().await else { return };
    // The function takes the place of that of the server.
    address.url += "%2Cpg_catalog";
    let become_server = async |timeline: &str| {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION pg_walfile_name(pg_lsn) RETURNS text LANGUAGE sql AS 'SELECT $${timeline}$$'"
        );
        server().expect("it runs").count(&address, &sql).await;
        server().expect("it runs").count(&address, &format!("UPDATE cluster SET timeline = '{timeline}'")).await;
    };
    become_server("00000009").await;
    let (one, other) = (join(&address, "one").await, join(&address, "other").await);
    let known = async || one.beat(Beat::default()).await.expect("the server runs").replicas.remove(1).beat;
    let former = known().await;
    become_server("0000000A").await;
    assert!(!one.evict(other.epoch(), former).await.expect("the server runs"));
    let later = known().await;
    assert_eq!((former.timeline, later.timeline, later.number), (9, 10, former.number));
    assert!(one.evict(other.epoch(), later).await.expect("the server runs"));
}

#[tokio::test]
async fn an_operator_goes_on_without_what_is_lost_and_nothing_is_sent_again() {
    let Some(address) = cluster().await else { return };
    let one = join(&address, "one").await;
    for number in [1, 2] {
        let name = format!("t{number}");
        one.accept(new(number, &name, &name)).await.expect("the server runs");
    }
    one.advance(step(1, Phase::Sending, vec![Entry::Charge])).await.expect("the server runs");
    one.put_application(application("a", "first"), vec![], None).await.expect("the server runs");
    let secret = SecretRow { verifier: [1; 32], sealed: vec![1], created_at: Some(AT), ends_at: None };
    let (labels, secrets) = (Default::default(), vec![secret]);
    let row = KeyRow {
        id: "k".to_owned(),
        application: "a".to_owned(),
        secrets,
        created_at: AT,
        expires_at: None,
        labels,
        suspended_at: None,
    };
    one.put_key(row.clone(), vec![], None).await.expect("the server runs");
    replace_by_copy(&address, &["UPDATE writer SET batches = 0 WHERE number = 0"]).await;
    assert!(matches!(trust(&one).await, StoreTrust::Lost(_)));

    let mender = join(&address, "one command 7").await;
    let (role, channel, claims) = (Role::Owner, Channel::Offline, Default::default());
    let operator = Operator { role, name: "alice".to_owned(), uid: 7, channel, claims };
    let origin = Origin { operator, command: "cluster accept-loss".to_owned() };
    let act = Act::new(origin, None, Changes::default(), AT, &Random::from_seed(1)).expect("random");
    assert_eq!(mender.begin_again(AT, act.clone()).await, Ok(2));
    let refused = one.accept(new(3, "l", "u")).await;
    assert!(refused.is_err(), "{refused:?}");
    let next = join(&address, "one").await;
    assert_eq!(trust(&next).await, StoreTrust::Settled);
    assert_eq!(next.restored_at(), Some(AT));
    for number in [1, 2] {
        let task = next.task(id(number)).await.expect("read").expect("it was accepted").task;
        assert_eq!(task.status(), Some(Status::Timeout));
    }
    assert_eq!(next.acts(ActFilter { limit: 9, ..ActFilter::default() }).await.expect("read").len(), 1);
    assert_eq!(next.directory().await.expect("read").1[0].secrets, []);
    assert_eq!(next.keys_to_confirm().await, Ok(vec!["k".to_owned()]));
    let version = next.changes(0).await.expect("read").version;
    next.confirm_keys(vec!["nobody".to_owned()], vec![]).await.expect_err("it is not off");
    next.confirm_keys(vec!["k".to_owned()], vec![]).await.expect("the server runs");
    assert_eq!(next.keys_to_confirm().await, Ok(vec![]));
    assert_eq!(next.changes(version).await.expect("read").keys, vec![row]);
}

#[tokio::test]
async fn replicas_go_on_by_themselves_after_a_copy_that_lacks_nothing_and_stop_after_one_that_does() {
    let Some(address) = cluster().await else { return };
    let mut members = Vec::new();
    for name in ["one", "other"] {
        let replica = join(&address, name).await;
        replica.accept(new(members.len() as u128 + 1, name, name)).await.expect("the server runs");
        let member = Arc::new(Membership::new(replica.clone(), Clock::of_store(replica.time(), replica.time())));
        let beating = Arc::clone(&member);
        tokio::spawn(async move { beating.run().await });
        members.push((member, replica));
    }
    let wait = async |trusts: fn(&StoreTrust) -> bool| {
        for (member, _) in &members {
            member.trust().wait_for(trusts).await.expect("it beats");
        }
    };
    replace_by_copy(&address, &[]).await;
    let settled = "SELECT count(*) FROM cluster WHERE timeline <> '00000000'";
    while server().expect("it runs").count(&address, settled).await == 0 {}
    wait(|trust| *trust == StoreTrust::Settled).await;
    assert_eq!(members[0].1.may_send().await, Ok(true));
    replace_by_copy(&address, &["UPDATE writer SET batches = 0 WHERE number = 0"]).await;
    wait(|trust| matches!(trust, StoreTrust::Lost(_))).await;
}
