//! A store that lacks what it had acknowledged: a copy has replaced it, as at a failover to a
//! standby that lags.

use super::{Address, cluster, join, server};
use store_suite::{application, new};
use toolwarrant_core::cluster::{Beat, ClusterStore, StoreTrust};
use toolwarrant_core::store::{DirectoryStore, StoreError};
use toolwarrant_postgres::Postgres;
use toolwarrant_tasks::store::{Acceptance, TaskStore};

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
