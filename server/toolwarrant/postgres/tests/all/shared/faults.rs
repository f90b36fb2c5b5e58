//! Faults of the server.

use super::*;
use kit::wait_for;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use toolwarrant_store::Integrity;

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'toolwarrant%'";

const LEADER: &str = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND (classid::bigint << 32) | objid::bigint = hashtextextended('toolwarrant leader ' || current_schema(), 0)";

const SESSIONS_MAX: i64 = 6;

async fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// Reads until there is something to see.
async fn see(read: impl AsyncFn() -> Result<Option<String>, StoreError>) -> String {
    wait_for(async || read().await.expect("read").ok_or_else(String::new)).await.expect("something to see")
}

#[tokio::test]
async fn settings_of_the_account_do_not_change_what_a_session_needs() {
    let Some(server) = TestPostgres::start() else { return };
    let address: Address = server.schema().await.expect("the server runs").into();
    let settings = [
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "default_transaction_deferrable = on",
        "standard_conforming_strings = off",
        "synchronous_commit = off",
        "statement_timeout = 1000",
        "lock_timeout = 1000",
        "idle_in_transaction_session_timeout = 1000",
    ];
    let alter = settings.map(|setting| format!("ALTER ROLE tests SET {setting};")).concat();
    let direct = Address::from(server.url());
    server.count(&direct.url, &format!("DO $$ BEGIN {alter} END $$")).await;
    Postgres::init(&address, KEY).await.expect("the schema is empty");
    let one = lead(&address, "one").await;
    let accept = |number: u128| {
        let (one, name) = (Arc::clone(&one), format!("t{number}"));
        async move { one.accept(new(number, &name, &name), vec![]).await.map(drop) }
    };
    let accepted: JoinSet<_> = (1..=60).map(accept).collect();
    assert_eq!(accepted.join_all().await, vec![Ok(()); 60]);
    // A statement waits for longer than those times.
    let lock = "SET TRANSACTION READ WRITE; SET idle_in_transaction_session_timeout = 0; LOCK TABLE writer";
    let open = begin(&address, lock).await;
    let waiting = Arc::clone(&one);
    let waiting = tokio::spawn(async move { waiting.accept(new(61, "t61", "t61"), vec![]).await });
    sleep(Duration::from_millis(1_500)).await;
    assert!(!waiting.is_finished());
    commit(&open).await;
    assert_eq!(waiting.await.expect("no panic"), Ok(Acceptance::Fresh { wake_at: AT }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_host_has_its_own_time_and_the_error_tells_of_all() {
    let Some(direct) = cluster().await else { return };
    let relay = Relay::start(server().expect("it runs").socket()).await;
    let ((_one, first), (_other, second)) = (silent().await, silent().await);
    let through = relay.address(&direct).url;
    let (before, after) = through.split_once("127.0.0.1:").expect("the relay");
    let (port, options) = after.split_once("/postgres?").expect("a database");
    let url = |hosts: &str| format!("{before}{hosts}/postgres?connect_timeout=1&{options}");
    let both = Address { url: url(&format!("127.0.0.1:{first},127.0.0.1:{port}")), password: None };
    lead(&both, "one").await.accept(new(1, "k", "t"), vec![]).await.expect("the second host");
    let none = Address { url: url(&format!("127.0.0.1:{first},127.0.0.1:{second}")), password: None };
    let begun = Instant::now();
    let (waiting, mut why) = claims::wait_to_lead(&none, run("one", KEY));
    let refused = why.wait_for(|why| matches!(why, Waiting::Obstacle(_))).await.expect("it waits").to_string();
    waiting.abort();
    assert!(begun.elapsed() >= Duration::from_secs(2), "a second for each");
    for port in [first, second] {
        assert!(refused.contains(&format!("PostgreSQL at 127.0.0.1:{port} has not answered for 1 s")), "{refused}");
    }
}

#[tokio::test]
async fn a_table_that_is_locked_is_named_with_its_holder_and_moves_no_leader() {
    let Some((address, one)) = lead_anew().await else { return };
    let open = begin(&address, "LOCK TABLE task, writer").await;
    let pid: i32 = open.query_one("SELECT pg_backend_pid()", &[]).await.expect("it runs").get(0);
    let sending = Arc::clone(&one);
    let sent = tokio::spawn(async move { sending.accept(new(1, "k", "t"), vec![]).await });
    let said = see(async || one.find_obstacle().await).await;
    assert!(said.contains(&format!("a lock of process {pid}")) && said.contains("pg_terminate_backend"), "{said}");
    assert_eq!(one.examine(ServerCheck::Waits).await.map(|found| found.len()), Ok(1));
    sleep(LEASE + Duration::from_secs(1)).await;
    assert_eq!(one.leader().await.expect("read").map(|leader| leader.name), Some("one".to_owned()));
    // The session of a writer does not wait for ever, so the fate of a write is known.
    assert_unavailable(&sent.await.expect("no panic"), "55P03");
    commit(&open).await;
    assert_eq!(one.task(id(1)).await, Ok(None));
    assert_eq!(one.accept(new(1, "k", "t"), vec![]).await, Ok(Acceptance::Fresh { wake_at: AT }));
}

#[tokio::test]
async fn a_write_that_the_server_refuses_for_a_fault_of_its_own_is_shown() {
    let Some(address) = cluster().await else { return };
    let (server, one) = (server().expect("it runs"), lead(&address, "one").await);
    let full = "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
                CREATE TRIGGER full_disk BEFORE INSERT ON task EXECUTE FUNCTION fill()";
    for sql in full.split_inclusive("END $$;") {
        server.count(&address.url, sql).await;
    }
    one.accept(new(1, "k", "t"), vec![]).await.expect_err("there is no room");
    let said = one.describe_refusal().expect("it was refused");
    assert!(said.contains("could not extend file (53100); make room on the disk of PostgreSQL"), "{said}");
    assert_eq!(one.examine(ServerCheck::Waits).await.map(|found| found.len()), Ok(1));
    one.touch().await.expect("an update needs no room");
    assert!(one.describe_refusal().is_some());
    server.count(&address.url, "DROP TRIGGER full_disk ON task").await;
    one.accept(new(1, "k", "t"), vec![]).await.expect("there is room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_standby_a_process_takes_no_more_connections_and_says_what_it_waits_for() {
    let Some((_folder, pair, address)) = synchronous_pair().await else { return };
    let one = lead(&address, "one").await;
    one.accept(new(1, "k1", "t1"), vec![]).await.expect("the standby has it");
    assert!(one.server_figures().await.expect("read").has_standby);
    let (waiting, _) = claims::wait_to_lead(&address, run("two", KEY));
    let leader = pair.query(LEADER).await.expect("the server runs");
    pair.cut_replication();
    let write = |number| {
        let (one, name) = (Arc::clone(&one), format!("t{number}"));
        async move {
            let _ = one.accept(new(number, &name, &name), vec![]).await;
            let _ = one.advance(step(number, Phase::Sending, vec![])).await;
            let _ = one.touch().await;
            let _ = one.task(id(number)).await;
        }
    };
    // It waits for as long as there is no standby, and the others for it.
    let first = tokio::spawn(write(2));
    let burst: JoinSet<_> = (21..=38).map(write).collect();
    see(async || one.find_missing_standby().await).await;
    let (mut writing, mut most) = ((3..=20).map(write).collect::<JoinSet<_>>(), 0);
    let ended = wait_for(async || {
        most = most.max(pair.query(SESSIONS).await.expect("the server runs").parse::<i64>().expect("a number"));
        while writing.try_join_next().is_some() {}
        if writing.is_empty() { Ok(()) } else { Err(format!("{} of them go on", writing.len())) }
    });
    ended.await.expect("each is refused in time");
    // A waiting process has one session.
    assert!(most <= SESSIONS_MAX + 1, "{most} sessions");
    assert_eq!(pair.query(LEADER).await.expect("the server runs"), leader, "another one would wait, too");
    waiting.abort();
    // A commit that is tried again has not waited for a second yet.
    for said in [see(async || one.find_obstacle().await).await, see(async || one.find_missing_standby().await).await] {
        assert!(said.contains("the synchronous standby (synchronous_standby_names ="), "{said}");
    }
    assert!(!one.server_figures().await.expect("read").has_standby);
    first.abort();
    drop(burst);
    let refused =
        Postgres::read(&address, KEY, "reader".to_owned()).await.map(drop).expect_err("no standby").to_string();
    assert!(refused.contains("the synchronous standby (synchronous_standby_names ="), "{refused}");
}
