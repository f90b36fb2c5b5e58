//! The process that leads, and those that wait.

use super::*;
use kit::{LinkRelay, LinkState, wait_for};
use tokio::time::{sleep, timeout};
use toolwarrant_core::files::FileStore;
use toolwarrant_postgres::RunState;
use toolwarrant_store::Integrity;

const SHORT: Duration = Duration::from_millis(1_500);

pub(super) fn wait_to_lead(address: &Address, new: NewRun) -> (JoinHandle<Claim>, watch::Receiver<Waiting>) {
    let (shown, why) = watch::channel(Waiting::default());
    let address = address.clone();
    let waiting = async move {
        let candidate = Candidate::new(&address, new).expect("a URL");
        candidate.wait(&shown, &watch::Sender::default()).await.expect("the server can be used")
    };
    (tokio::spawn(waiting), why)
}

async fn states(address: &Address) -> Vec<(String, RunState)> {
    let runs = read(address).await.runs().await.expect("read");
    runs.into_iter().map(|run| (run.name, run.state)).collect()
}

#[tokio::test]
async fn the_next_leader_has_everything_and_nothing_of_the_former_one_lands() {
    let Some((address, one)) = lead_anew().await else { return };
    assert_eq!(one.accept(new(1, "k", "t"), vec![]).await, Ok(Acceptance::Fresh { wake_at: AT }));
    let next = lead(&address, "next").await;
    assert!(next.epoch() > one.epoch());
    for refused in [
        one.accept(new(2, "l", "u"), vec![]).await.map(drop),
        one.advance(step(1, Phase::Sending, vec![Entry::Charge])).await.map(drop),
        one.mark(vec![]).await,
        one.put_application(application("a", "first"), vec![]).await,
        one.put_files(vec![("list".to_owned(), b"late".to_vec())]).await,
        one.leave().await,
    ] {
        assert_unavailable(&refused, "another process leads");
    }
    let why = timeout(LEASE, one.wait_for_eviction()).await.expect("the process ends");
    assert!(why.to_string().contains("another process leads"), "{why}");
    assert_eq!((next.task(id(2)).await.expect("read"), next.ledger(0, 9).await.expect("read")), (None, vec![]));
    let found = next.in_flight(None, 9).await.expect("read");
    assert_eq!(found.iter().map(|task| task.id).collect::<Vec<_>>(), [id(1)]);
    assert_eq!(next.advance(step(1, Phase::Sending, vec![Entry::Charge])).await, Ok(Advanced::Written));
    let reader = read(&address).await;
    for refused in [
        reader.put_application(application("a", "first"), vec![]).await,
        reader.put_files(vec![("list".to_owned(), b"late".to_vec())]).await,
    ] {
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "a reader writes nothing: {refused:?}");
    }
    assert_eq!(next.files().await.expect("read").len(), 0);
    reader.touch().await.expect("it tests the server all the same");
    next.leave().await.expect("the server runs");
    let expected = [("next".to_owned(), RunState::Left), ("one".to_owned(), RunState::Replaced)];
    assert_eq!(states(&address).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_processes_one_leads_and_after_its_death_another_one_when_its_lease_is_over() {
    let Some(address) = cluster().await else { return };
    let start = |number: u32| wait_to_lead(&address, NewRun { lease: SHORT, ..run(&format!("r{number}"), KEY) });
    let mut waiting: Vec<_> = (0..6).map(start).collect();
    let mut former: Option<Lease> = None;
    while waiting.len() > 3 {
        while !waiting.iter().any(|(claim, _)| claim.is_finished()) {
            sleep(Duration::from_millis(20)).await;
        }
        let led = waiting.iter().position(|(claim, _)| claim.is_finished()).expect("one leads");
        assert!(former.is_none_or(|lease| !lease.stands()), "the former one may still act");
        let claim = waiting.remove(led).0.await.expect("no panic");
        let (clock, name) = (Clock::system(), states(&address).await.remove(0).0);
        let lease = Lease::new(clock.clone());
        assert!(
            timeout(SHORT * 3, claim.keep(&lease, &clock, &watch::Sender::default())).await.is_err() && lease.stands()
        );
        assert!(!waiting.iter().any(|(claim, _)| claim.is_finished()));
        for (_, why) in &waiting {
            assert!(matches!(&*why.borrow(), Waiting::Leader(leader) if leader.name == name), "{:?}", why.borrow());
        }
        former = Some(lease);
    }
    waiting.into_iter().for_each(|(claim, _)| claim.abort());
}

#[tokio::test]
async fn a_leader_that_stands_still_loses_its_session_and_learns_that() {
    let Some(address) = cluster().await else { return };
    let clock = Clock::system();
    let stuck = claim(&address, NewRun { lease: SHORT, ..run("stuck", KEY) }).await;
    let (next, _) = wait_to_lead(&address, NewRun { lease: SHORT, ..run("next", KEY) });
    let next = next.await.expect("no panic");
    let lease = Lease::new(clock.clone());
    let why = stuck.keep(&lease, &clock, &watch::Sender::default()).await.to_string();
    assert!(why.contains("PostgreSQL"), "{why}");
    assert!(!lease.stands() && next.epoch > stuck.epoch);
    // A process whose run has ended, and whose session lives, learns it with its next beat.
    let server = server().expect("it runs");
    server.count(&address.url, "UPDATE replica SET state = 'evicted'").await;
    let why = next.keep(&lease, &clock, &watch::Sender::default()).await.to_string();
    assert!(why.contains("another process leads") && !lease.stands(), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_on_the_runs_that_outlasts_the_lease_is_named_and_moves_no_leader() {
    let Some(address) = cluster().await else { return };
    let claim = claim(&address, NewRun { lease: SHORT, ..run("one", KEY) }).await;
    let clock = Clock::system();
    let lease = Lease::new(clock.clone());
    let kept = lease.clone();
    let leading = tokio::spawn(async move { claim.keep(&kept, &clock, &watch::Sender::default()).await });
    let (next, mut why) = wait_to_lead(&address, NewRun { lease: SHORT, ..run("two", KEY) });
    why.wait_for(|why| matches!(why, Waiting::Leader(_))).await.expect("it waits");
    let lock = "SELECT FROM replica FOR UPDATE; SAVEPOINT row; LOCK TABLE replica";
    let open = begin(&address, lock).await;
    let pid: i32 = open.query_one("SELECT pg_backend_pid()", &[]).await.expect("it runs").get(0);
    let held_up =
        format!("SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY (pg_blocking_pids(pid)) AND wait_event");
    // The table cannot be read, and then its row cannot be written.
    for (kind, next) in [("= 'relation'", "ROLLBACK TO row"), ("<> 'relation'", "SELECT")] {
        let held_up = format!("{held_up} {kind}");
        let outlasted =
            wait_for(async || match (lease.stands(), server().expect("it runs").count(&address.url, &held_up).await) {
                (false, 1..) => Ok(()),
                other => Err(format!("{other:?}")),
            });
        outlasted.await.expect("the lease is over");
        let said = why.wait_for(|why| matches!(why, Waiting::Obstacle(_))).await.expect("it waits").to_string();
        assert!(said.contains("for a lock of process") && !lease.stands(), "{said}");
        open.batch_execute(next).await.expect("the server runs");
    }
    commit(&open).await;
    why.wait_for(|why| matches!(why, Waiting::Leader(leader) if leader.name == "one")).await.expect("it waits");
    // On a busy machine, the leader renews its lease late.
    while !lease.stands() && !leading.is_finished() {
        sleep(SHORT / 10).await;
    }
    assert!(!leading.is_finished() && !next.is_finished());
    next.abort();
}

#[tokio::test]
async fn a_machine_whose_clock_is_off_does_not_lead_and_says_so() {
    let Some(mut address) = cluster().await else { return };
    // The function takes the place of that of the server.
    address.url += "%2Cpg_catalog";
    let shift = async |by: &str| {
        let sql = format!(
            "CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
                 'SELECT pg_catalog.clock_timestamp() + interval $${by}$$'"
        );
        server().expect("it runs").count(&address.url, &sql).await;
    };
    shift("1 hour").await;
    let (claim, mut why) = wait_to_lead(&address, run("one", KEY));
    let said = why.wait_for(|why| matches!(why, Waiting::Obstacle(_))).await.expect("it waits").to_string();
    assert!(said.contains("behind that of PostgreSQL"), "{said}");
    shift("0 hours").await;
    let (claim, clock) = (claim.await.expect("no panic"), Clock::system());
    shift("-1 hour").await;
    let why = claim.keep(&Lease::new(clock.clone()), &clock, &watch::Sender::default()).await.to_string();
    assert!(why.contains("ahead of that of PostgreSQL"), "{why}");
}

#[tokio::test]
async fn tables_of_another_layout_are_refused_by_number() {
    let Some(address) = cluster().await else { return };
    for (layout, says) in [(3, "older than 4"), (5, "newer than 4")] {
        server().expect("it runs").count(&address.url, &format!("UPDATE cluster SET layout = {layout}")).await;
        let refused = try_to_claim(&address, run("one", KEY)).await.map(drop).expect_err("another layout").to_string();
        assert!(refused.contains(&format!("layout {layout}, which is {says}")), "{refused}");
    }
}

#[tokio::test]
async fn a_second_process_with_the_name_of_a_replica_is_refused_and_an_account_that_may_not_end_the_leader_is_told() {
    let Some((address, one)) = lead_anew().await else { return };
    // A copy of a folder has its run, too.
    let start = |former| try_to_claim(&address, NewRun { former, ..run("one", KEY) });
    for claimed in <[_; 2]>::from(tokio::join!(start(None), start(Some(one.epoch())))) {
        let refused = claimed.map(drop).expect_err("another folder").to_string();
        assert!(refused.contains("another process is the replica `one`"), "{refused}");
    }
    assert_eq!(one.accept(new(1, "k", "t"), vec![]).await, Ok(Acceptance::Fresh { wake_at: AT }));
    server().expect("it runs").count(&address.url, "CREATE ROLE unable LOGIN").await;
    Postgres::grant(&address, "unable").await.expect("the owner may");
    let other = Address::from(address.url.replace("tests@", "unable@"));
    let (waiting, mut why) = wait_to_lead(&other, run("two", KEY));
    let said = why.wait_for(|why| *why != Waiting::Starting).await.expect("it waits").to_string();
    assert!(said.contains("GRANT pg_signal_backend TO unable"), "{said}");
    server().expect("it runs").count(&address.url, "GRANT pg_signal_backend TO unable").await;
    why.wait_for(|why| matches!(why, Waiting::Leader(leader) if leader.name == "one")).await.expect("it waits");
    one.leave().await.expect("the server runs");
    waiting.abort();
}

#[tokio::test]
async fn a_start_whose_former_session_outlives_its_process_waits_and_leads() {
    let Some(address) = cluster().await else { return };
    let former = claim(&address, NewRun { lease: SHORT, ..run("one", KEY) }).await;
    let (next, _) = wait_to_lead(&address, NewRun { lease: SHORT, former: Some(former.epoch), ..run("one", KEY) });
    assert!(next.await.expect("it is not refused").epoch > former.epoch);
}

#[tokio::test]
async fn a_death_that_is_noted_while_another_process_begins_to_lead_takes_nothing_from_it() {
    let Some(mut address) = cluster().await else { return };
    // The function takes the place of that of the server.
    address.url += "%2Cpg_catalog";
    let server = server().expect("it runs");
    let wait = "CREATE FUNCTION pg_terminate_backend(integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
            FOR n IN 1..40 LOOP
                EXIT WHEN NOT EXISTS (SELECT FROM replica WHERE state = 'dead'); PERFORM pg_sleep(0.05);
            END LOOP; RETURN true; END $$";
    server.count(&address.url, wait).await;
    let _writes = begin(&address, "LOCK TABLE writer IN ROW EXCLUSIVE MODE").await;
    let former = claim(&address, run("one", KEY)).await.epoch;
    let lock = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
        AND (classid::bigint << 32) | objid::bigint = hashtextextended('toolwarrant leader ' || current_schema(), 0)";
    let until_held = async |by: i64| {
        while server.count(&address.url, lock).await != by {
            sleep(Duration::from_millis(20)).await;
        }
    };
    until_held(0).await;
    let (other, _) = wait_to_lead(&address, run("two", KEY));
    until_held(1).await;
    let (one, mut why) = wait_to_lead(&address, NewRun { former: Some(former), ..run("one", KEY) });
    let claim = other.await.expect("it leads");
    why.wait_for(|why| matches!(why, Waiting::Leader(leader) if leader.name == "two")).await.expect("it waits");
    let two = Postgres::lead(&claim, "two".to_owned()).await.expect("the server runs");
    assert_eq!(two.accept(new(1, "k", "t"), vec![]).await, Ok(Acceptance::Fresh { wake_at: AT }));
    one.abort();
}

#[tokio::test]
async fn a_start_without_a_server_waits_and_says_why_and_then_leads() {
    let Some(address) = cluster().await else { return };
    let link = LinkRelay::start(server().expect("it runs").socket()).await.expect("a port");
    link.set(LinkState::Cut);
    let through = relay::address(link.port, &address);
    let (claim, mut why) = wait_to_lead(&through, run("one", KEY));
    let said = why.wait_for(|why| matches!(why, Waiting::Obstacle(_))).await.expect("it waits").to_string();
    assert!(said.contains("no PostgreSQL answers"), "{said}");
    link.set(LinkState::Open);
    claim.await.expect("it leads");
}

#[tokio::test]
async fn a_process_that_leads_is_served_by_once_it_says_so_and_not_after_its_end() {
    let Some(address) = cluster().await else { return };
    let first = claim(&address, run("one", KEY)).await;
    let reader = read(&address).await;
    assert_eq!(reader.is_served().await, Ok(false), "it starts");
    first.note_serving().await;
    assert_eq!(reader.is_served().await, Ok(true));
    first.give_back().await;
    assert_eq!(reader.is_served().await, Ok(false));
}
