//! Notices between replicas.

use super::*;
use tokio::sync::broadcast::Receiver;
use toolwarrant_postgres::Notice;

/// Ends a task that nobody holds.
async fn end_task(at: &Postgres, number: u128) {
    let name = format!("t{number}");
    at.accept(new(number, &name, &name)).await.expect("the server runs");
    let done = step(number, Phase::Done(Status::Success), vec![Entry::Release(AT)]);
    assert_eq!(at.advance(done).await, Ok(Advanced::Written));
}

/// Returns the notices of a replica that listens.
async fn listen(at: &Postgres) -> Receiver<Notice> {
    let heard = at.notices();
    at.beat(Beat::default()).await.expect("the server runs");
    heard
}

/// Returns the next notice.
async fn next(heard: &mut Receiver<Notice>) -> Notice {
    let next = tokio::time::timeout(Duration::from_secs(60), heard.recv()).await;
    next.expect("a notice").expect("the store is open")
}

#[tokio::test]
async fn a_replica_tells_the_others_of_ended_tasks_and_changes_unless_notices_are_off() {
    let (Some(address), Some(stranger)) = (cluster().await, cluster().await) else { return };
    let (one, other) = (join(&address, "one").await, join(&address, "other").await);
    let off = Postgres::join(&address, NewReplica { notices: false, ..replica("off", KEY) }).await;
    let (off, stranger) = (Arc::new(off.expect("the server runs")), join(&stranger, "one").await);
    let (mut heard, mut kept, mut abroad) = (listen(&other).await, listen(&off).await, listen(&stranger).await);
    end_task(&off, 1).await;
    end_task(&one, 2).await;
    one.accept(new(3, "k3", "t3")).await.expect("the server runs");
    one.put_application(application("a", "first"), vec![], Some(0)).await.expect("the server runs");
    assert_eq!(next(&mut heard).await, Notice::Ended(id(2)));
    assert_eq!(next(&mut heard).await, Notice::Directory);
    // Without notices, a look finds what has ended.
    let mut ended = off.find_ended(vec![id(1), id(2), id(3)]).await.expect("read");
    ended.sort();
    assert_eq!(ended, [id(1), id(2)]);
    for (replica, deaf) in [(&off, &mut kept), (&stranger, &mut abroad)] {
        replica.beat(Beat::default()).await.expect("the server runs");
        assert!(deaf.is_empty(), "{:?}", deaf.recv().await);
    }
}

#[tokio::test]
async fn many_ends_share_a_notice_within_its_length() {
    let Some(address) = cluster().await else { return };
    let (one, other) = (join(&address, "one").await, join(&address, "other").await);
    let mut heard = listen(&other).await;
    let numbers = 1..=500;
    let ends = numbers.clone().map(|number| {
        let one = one.clone();
        async move { end_task(&one, number).await }
    });
    ends.collect::<tokio::task::JoinSet<_>>().join_all().await;
    let mut left: Vec<_> = numbers.map(id).collect();
    while !left.is_empty() {
        let Notice::Ended(task) = next(&mut heard).await else { panic!("another notice") };
        left.retain(|id| *id != task);
    }
}

#[tokio::test]
async fn a_replica_whose_connection_has_lost_a_notice_listens_again_and_finds_the_end() {
    let Some(address) = cluster().await else { return };
    let relay = Relay::start(server().expect("it runs").socket()).await;
    let (one, other) = (join(&address, "one").await, join(&relay.address(&address), "other").await);
    let (mut own, mut heard) = (listen(&one).await, listen(&other).await);
    // Those of the start end, and one listens.
    while relay.count_open() > 1 {
        tokio::task::yield_now().await;
    }
    relay.cut_at(0);
    end_task(&one, 1).await;
    assert_eq!(next(&mut own).await, Notice::Ended(id(1)));
    while !relay.has_cut() {
        tokio::task::yield_now().await;
    }
    other.beat(Beat::default()).await.expect("it connects again");
    end_task(&one, 2).await;
    assert_eq!(next(&mut heard).await, Notice::Ended(id(2)));
    assert_eq!(other.find_ended(vec![id(1)]).await, Ok(vec![id(1)]));
}

#[tokio::test]
async fn a_beat_after_one_without_an_answer_gets_another_connection() {
    let Some(server) = TestPostgres::start() else { return };
    let address = server.schema().await.expect("the server runs");
    Postgres::init(&address, KEY).await.expect("the schema is empty");
    let one = join(&address, "one").await;
    one.beat(Beat::default()).await.expect("the server runs");
    // The process behind the connection stands still, as if nobody told of a cut.
    let beats = "SELECT pid::bigint FROM pg_stat_activity WHERE query LIKE 'WITH checked%'";
    let process = server.count(&address, beats).await;
    driver::signal(u32::try_from(process).expect("an id"), "STOP").expect("it runs");
    // A member waits no longer.
    let _ = tokio::time::timeout(LEASE * 3 / 10, one.beat(Beat::default())).await;
    one.beat(Beat::default()).await.expect("another connection");
}
