//! The process that leads, those that wait, and batches that land once or never, whatever breaks.

mod claims;
mod encryption;
mod fates;
mod faults;
mod forgetting;
mod reads;
mod relay;

use super::KEY;
use kit::{PostgresPair, TestPostgres, wait_for};
use relay::Relay;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use store_suite::{AT, application, assert_unavailable, end, id, ledger, new, nth};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::{Client, NoTls};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::lease::Lease;
use toolwarrant_core::store::{DirectoryStore, StoreError};
use toolwarrant_postgres::{Address, Candidate, Claim, LEASE, NewRun, Postgres, ServerCheck, Waiting};
use toolwarrant_store::Store;
use toolwarrant_tasks::machine::Entry;
use toolwarrant_tasks::store::{Acceptance, Advance, Advanced, Identity, Record, TaskStore};
use toolwarrant_tasks::task::{Phase, Task, TaskId, TaskStatus};

fn server() -> Option<&'static TestPostgres> {
    static SERVER: OnceLock<Option<TestPostgres>> = OnceLock::new();
    TestPostgres::share(&SERVER)
}

async fn cluster() -> Option<Address> {
    let address = server()?.schema().await.map(Address::from).expect("the server runs");
    Postgres::init(&address, KEY).await.expect("the schema is empty");
    Some(address)
}

/// Also leads it.
async fn lead_anew() -> Option<(Address, Arc<Postgres>)> {
    let address = cluster().await?;
    let one = lead(&address, "one").await;
    Some((address, one))
}

async fn synchronous_pair() -> Option<(TempDir, PostgresPair, Address)> {
    let folder = tempfile::Builder::new().prefix("pg-").tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let pair = PostgresPair::start(folder.path()).await.expect("two servers")?;
    let address = Address::from(pair.url());
    Postgres::init(&address, KEY).await.expect("the schema is empty");
    Some((folder, pair, address))
}

async fn wait_for_rows(pair: &PostgresPair, from: &str) {
    let count = format!("SELECT count(*) {from}");
    let look = async || match &*pair.query(&count).await.expect("the server runs") {
        "0" => Err(format!("no row: {from}")),
        _ => Ok(()),
    };
    wait_for(look).await.expect("a row");
}

/// The run that leads in each schema, and its beats.
static LEADING: Mutex<BTreeMap<String, (u64, AbortHandle)>> = Mutex::new(BTreeMap::new());

/// Lets the former leader die, and leads in its folder.
pub(crate) async fn lead(address: &Address, name: &str) -> Arc<Postgres> {
    let schema = address.url.split_once("options=").map_or(&*address.url, |(_, options)| options).to_owned();
    let former = LEADING.lock().expect("no panic").remove(&schema);
    let former = former.map(|(epoch, beats)| {
        beats.abort();
        epoch
    });
    let new = NewRun { former, ..run(name, KEY) };
    let claim = claim(address, new).await;
    let store = Postgres::lead(&claim, name.to_owned()).await.expect("the server runs");
    let epoch = claim.epoch;
    let clock = Clock::system();
    let keeping =
        tokio::spawn(async move { claim.keep(&Lease::new(clock.clone()), &clock, &watch::Sender::default()).await });
    LEADING.lock().expect("no panic").insert(schema, (epoch, keeping.abort_handle()));
    Arc::new(store)
}

async fn claim(address: &Address, new: NewRun) -> Claim {
    try_to_claim(address, new).await.expect("the server can be used")
}

async fn try_to_claim(address: &Address, new: NewRun) -> Result<Claim, StoreError> {
    let candidate = Candidate::new(address, new).expect("a URL");
    candidate.wait(&watch::Sender::default(), &watch::Sender::default()).await
}

fn run(name: &str, key: [u8; 32]) -> NewRun {
    let (name, machine, program) = (name.to_owned(), "here".to_owned(), "test 1".to_owned());
    NewRun { name, former: None, machine, program, lease: LEASE, key, seen: None, mends: false }
}

async fn read(address: &Address) -> Postgres {
    Postgres::read(address, KEY, "one".to_owned()).await.expect("the server runs")
}

fn step(number: u128, phase: Phase, entries: Vec<Entry>) -> Advance {
    let finished_at = matches!(phase, Phase::Done(_)).then_some(AT);
    let task = Task { phase, finished_at, ..new(number, "", "").task };
    Advance { id: id(number), version: 0, task, entries, what: "step".to_owned().into(), at: AT }
}

async fn begin(address: &Address, sql: &str) -> Client {
    server().expect("it runs").begin_at(&address.url, sql).await
}

async fn commit(open: &Client) {
    open.batch_execute("COMMIT").await.expect("the server runs");
}

/// The connections of a process are cut before each message that it sends or gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_at_any_message_of_a_batch_loses_and_doubles_nothing() {
    let Some(address) = cluster().await else { return };
    let server = server().expect("it runs");
    let watcher = read(&address).await;
    let mut cuts = 0;
    for cut in 0..60_u32 {
        let relay = Relay::start(server.socket()).await;
        let one = lead(&relay.address(&address), "one").await;
        let number = u128::from(cut) + 1;
        let name = format!("t{number}");
        relay.cut_at(cut);
        let accepted = one.accept(new(number, &name, &name), vec![]).await;
        let moved = one.advance(step(number, Phase::Sending, vec![Entry::Charge])).await;
        cuts += u32::from(relay.has_cut());
        let stored = watcher.task(id(number)).await.expect("read");
        let version = stored.map(|record| record.version);
        match (&accepted, &moved, version) {
            (Ok(Acceptance::Fresh { .. }), Ok(Advanced::Written), Some(1)) => {}
            // A write without an answer has happened or not; the engine reads the task again.
            (Ok(Acceptance::Fresh { .. }), Err(StoreError::Unavailable(_)), Some(_)) => {}
            (Err(StoreError::Unavailable(_)), Ok(Advanced::Written), Some(1)) => {}
            (Err(StoreError::Unavailable(_)), Ok(Advanced::Fenced), None) => {}
            (Err(StoreError::Unavailable(_)), Err(StoreError::Unavailable(_)), _) => {}
            _ => panic!("cut {cut}: {accepted:?}, {moved:?}, {version:?}"),
        }
        let name = format!("u{number}");
        let next = one.accept(new(1_000 + number, &name, &name), vec![]).await;
        assert!(matches!(next, Ok(Acceptance::Fresh { .. })), "cut {cut}: {next:?}");
    }
    assert!(cuts > 20, "{cuts}");
}

#[tokio::test]
async fn a_cool_down_that_begins_while_an_acceptance_waits_for_the_target_is_kept() {
    let Some((_, one)) = lead_anew().await else { return };
    let shared: Arc<dyn Store> = one.clone();
    let mut number = 0;
    for round in 0..40 {
        number += 1;
        let key = format!("k{number}");
        let first = one.accept(new(number, &key, "t"), vec![]).await.expect("the server runs");
        let Acceptance::Fresh { .. } = first else { panic!("round {round}: {first:?}") };
        number += 1;
        let settled = AT.plus(Duration::from_secs(30 + number as u64));
        let key = format!("k{number}");
        // In either order, nothing starts before the target has settled.
        let (_, next) = tokio::join!(
            end(&shared, number - 1, TaskStatus::Success, settled),
            one.accept(new(number, &key, "t"), vec![])
        );
        match next.expect("the server runs") {
            Acceptance::Fresh { wake_at } => {
                assert_eq!(wake_at, settled, "round {round}");
                end(&shared, number, TaskStatus::Success, settled).await;
            }
            Acceptance::Busy { id: holder, .. } => assert_eq!(holder, id(number - 1)),
            Acceptance::Hit(hit) => panic!("round {round}: {hit:?}"),
        }
    }
}

#[tokio::test]
async fn a_commit_that_only_a_restarted_server_has_is_not_acknowledged() {
    let Some((_folder, mut pair, address)) = synchronous_pair().await else { return };
    let one = lead(&address, "one").await;
    one.accept(new(1, "k1", "t1"), vec![]).await.expect("the standby has it");
    pair.cut_replication();
    let writer = Arc::clone(&one);
    let accepting = tokio::spawn(async move { writer.accept(new(2, "k2", "t2"), vec![]).await });
    wait_for_rows(&pair, "FROM pg_stat_activity WHERE wait_event = 'SyncRep'").await;
    pair.restart_immediately().await.expect("the server starts again");
    assert_eq!(pair.query("SELECT count(*) FROM task").await.expect("the server runs"), "2", "it is visible");
    assert_unavailable(&one.task(id(2)).await, "");
    assert!(!accepting.is_finished(), "nobody knows its fate");
    pair.fail_over().await.expect("the standby takes over");
    assert_eq!(pair.query("SELECT count(*) FROM task").await.expect("the server runs"), "1", "it is lost");
}

#[tokio::test]
async fn an_acceptance_that_lands_late_is_answered_and_one_that_was_not_sent_in_time_is_withdrawn() {
    let Some((address, one)) = lead_anew().await else { return };
    // The first one goes on once the row is there.
    let slow = "CREATE TABLE goes_on (one integer);
        CREATE FUNCTION wait_long() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            WHILE NOT EXISTS (SELECT FROM goes_on) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON task FOR EACH ROW EXECUTE FUNCTION wait_long()";
    commit(&begin(&address, slow).await).await;
    let sending = Arc::clone(&one);
    let sent = tokio::spawn(async move { sending.accept(new(1, "k1", "t1"), vec![]).await });
    let begun = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while server().expect("it runs").count(&address.url, begun).await == 0 {
        tokio::task::yield_now().await;
    }
    assert_unavailable(&one.accept(new(2, "k2", "t2"), vec![]).await, "");
    commit(&begin(&address, "INSERT INTO goes_on VALUES (1)").await).await;
    assert_eq!(sent.await.expect("no panic"), Ok(Acceptance::Fresh { wake_at: AT }));
    one.accept(new(3, "k3", "t3"), vec![]).await.expect("the server runs");
    assert_eq!(one.task(id(2)).await, Ok(None));
}

#[tokio::test]
async fn a_page_of_the_ledger_ends_before_a_transaction_that_may_still_add_to_it() {
    let Some((_, one)) = lead_anew().await else { return };
    for number in [1, 2] {
        let name = format!("t{number}");
        one.accept(new(number, &name, &name), vec![]).await.expect("the server runs");
    }
    let open = server().expect("it runs").begin().await;
    one.advance(step(1, Phase::Sending, vec![Entry::Charge])).await.expect("the server runs");
    assert_eq!(one.ledger(0, 9).await, Ok(vec![]), "an older transaction is open");
    drop(open);
    one.advance(step(2, Phase::Sending, vec![Entry::Charge])).await.expect("the server runs");
    let rows = ledger(&(one.clone() as Arc<dyn Store>), 2).await;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [id(1), id(2)]);
    assert_eq!(one.ledger(rows[0].number, 9).await, Ok(vec![rows[1].clone()]));
}

#[tokio::test]
async fn a_day_has_its_partition_before_its_first_task_ends_and_a_day_without_one_keeps_none_back() {
    let Some((address, one)) = lead_anew().await else { return };
    let count = async |sql: &str| server().expect("it runs").count(&address.url, sql).await;
    let days = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'ended'::regclass";
    assert_eq!(count(days).await, 16, "15 days and the rest");
    let now = Clock::system().now();
    let today = Record { id: TaskId::new(now, [1; 10]), ..new(1, "k", "t") };
    one.accept(today.clone(), vec![]).await.expect("the server runs");
    let done = Advance { id: today.id, ..step(1, Phase::Done(TaskStatus::Success), vec![Entry::Release(AT)]) };
    assert_eq!(one.advance(done).await, Ok(Advanced::Written));
    assert_eq!(count("SELECT count(*) FROM ended_default").await, 0);
    // Rows in the default partition keep their day from a partition, and no other day.
    let name = |day: u64| format!("ended_{:06}", now.0 / 86_400_000 + day);
    for day in [0, 5] {
        count(&format!("DROP TABLE {}", name(day))).await;
    }
    let again = Record { id: TaskId::new(now, [2; 10]), ..new(2, "l", "u") };
    one.accept(again.clone(), vec![]).await.expect("the server runs");
    let done = Advance { id: again.id, ..step(2, Phase::Done(TaskStatus::Success), vec![Entry::Release(AT)]) };
    assert_eq!(one.advance(done).await, Ok(Advanced::Written));
    one.purge(AT, 9).await.expect_err("today has no partition of its own");
    assert_eq!(count(&format!("SELECT count(*) FROM {}", name(5))).await, 0);
}

/// Of the same process for all connections, or of another one for each statement.
#[tokio::test]
async fn a_pooler_that_shares_sessions_is_refused() {
    let Some(mut address) = cluster().await else { return };
    // The function takes the place of that of the server.
    address.url += "%2Cpg_catalog";
    for process in ["SELECT 7", "SELECT (random() * 1e9)::integer"] {
        let sql =
            format!("CREATE OR REPLACE FUNCTION pg_backend_pid() RETURNS integer LANGUAGE sql VOLATILE AS '{process}'");
        server().expect("it runs").count(&address.url, &sql).await;
        let refused = try_to_claim(&address, run("one", KEY)).await.map(drop).expect_err("a pooler").to_string();
        assert!(refused.contains("session pooling"), "{process}: {refused}");
    }
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused_with_the_statement_that_makes_one() {
    let Some(known) = cluster().await else { return };
    let count = async |sql: String| server().expect("it runs").count(&known.url, &sql).await;
    let at = |name: &str| server().expect("it runs").url().replace("/postgres?", &format!("/{name}?"));
    for encoding in ["LATIN1", "SQL_ASCII", "EUC_JP"] {
        let name = encoding.to_lowercase();
        count(format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")).await;
        let address = Address::from(at(&name));
        let init = Postgres::init(&address, KEY).await.expect_err(encoding);
        let start = try_to_claim(&address, run("one", KEY)).await.map(drop).expect_err(encoding);
        assert_eq!(init, start, "a start says the same");
        let (why, remedy) = init
            .to_string()
            .split_once("made with ")
            .map(|(why, how)| (why.to_owned(), how.to_owned()))
            .expect("a remedy");
        assert!(why.contains(&format!("`{name}` has the encoding {encoding}, and UTF8 is needed")), "{why}");
        count(remedy.replace(" name ", &format!(" {name}_better "))).await;
        // The session speaks UTF8 whatever the URL asks for.
        let url = at(&format!("{name}_better")) + "&options=-cclient_encoding%3DLATIN1";
        let better = Address::from(url);
        Postgres::init(&better, KEY).await.expect("the remedy helps");
        let one = lead(&better, "one").await;
        let named = application("a", "\u{1f4f1} \u{645}\u{648}\u{628}\u{627}\u{6cc}\u{644}");
        one.put_application(named.clone(), vec![]).await.expect("the server runs");
        assert_eq!(one.directory().await.expect("read").0, [named]);
    }
}

#[tokio::test]
async fn an_account_with_the_granted_rights_leads_and_changes_nothing_that_has_happened() {
    let Some(owner) = cluster().await else { return };
    let count = async |sql: &str| server().expect("it runs").count(&owner.url, sql).await;
    count("CREATE ROLE granted LOGIN").await;
    let url = owner.url.replace("tests@", "granted@");
    let account = Address::from(url);
    let refused = try_to_claim(&account, run("one", KEY)).await.map(drop).expect_err("it has no rights");
    assert!(refused.to_string().contains("store grant"), "{refused}");
    Postgres::grant(&owner, "granted").await.expect("the owner may");
    let one = lead(&account, "one").await;
    one.accept(new(1, "k", "t"), vec![]).await.expect("the server runs");
    let done = step(1, Phase::Done(TaskStatus::Success), vec![Entry::Charge, Entry::Release(AT)]);
    assert_eq!(one.advance(done).await, Ok(Advanced::Written));
    assert_eq!(count("SELECT count(*) FROM ledger JOIN ended ON ended.id = task").await, 1);
    let today = Clock::system().now().0 / 86_400_000;
    count(&format!("DROP TABLE ended_{:06}", today + 5)).await;
    count(&format!("SELECT 1::bigint FROM make_day('event', {})", today - 40)).await;
    one.purge(Timestamp((today - 7) * 86_400_000), 9).await.expect("the server runs");
    assert_eq!(count(&format!("SELECT count(*) FROM ended_{:06}", today + 5)).await, 0);
    let old = format!("SELECT count(*) FROM pg_class WHERE relname = 'event_{:06}'", today - 40);
    assert_eq!(count(&old).await, 0);
    assert_eq!(one.examine(ServerCheck::Rights).await, Ok(vec![]));
    count("CREATE ROLE other LOGIN").await;
    let refused = Postgres::grant(&account, "other").await.expect_err("it owns nothing");
    assert!(refused.to_string().contains("SELECT on cluster") && refused.to_string().contains("`tests`"), "{refused}");
    let (client, connection) = tokio_postgres::connect(&account.url, NoTls).await.expect("the server runs");
    tokio::spawn(connection);
    for (sql, why) in [
        ("DELETE FROM ledger", "permission denied"),
        ("UPDATE ledger SET at = 0", "permission denied"),
        ("UPDATE ended SET status = 'success'", "permission denied"),
        ("DELETE FROM event", "permission denied"),
        ("DROP TABLE ledger", "must be owner"),
        (&format!("SELECT drop_day('ended', {})", today - 5), "not old enough"),
        ("SELECT drop_day('ledger', 0)", "not old enough"),
        ("SELECT make_day('ledger', 0)", "has no partitions"),
    ] {
        let refused = client.batch_execute(sql).await.expect_err(sql);
        let refused = refused.as_db_error().expect("the server refuses it").message().to_owned();
        assert!(refused.contains(why), "{sql}: {refused}");
    }
}
