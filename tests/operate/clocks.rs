//! A wrong clock of the machine, or a clock that is set: the rights that end, and those that stay
//! ended.

use crate::harness::program::{Program, json_of, says};
use crate::harness::signed::Signed;
use crate::harness::writes::open_database;
use crate::harness::{Key, Tenant, both_sides, mute_phones, outcome};
use cloudphone::phones::contract::Contract;
use cloudphone::phones::devices::Phones;
use cloudphone::platforms::simulator::Sim;
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant::contract::PermissionSet;
use toolwarrant::{Clock, Service, Setup};
use toolwarrant_core::registry::NewKey;
use toolwarrant_tasks::store::TaskStore;
use toolwarrant_testing::{START, TestServer, serve_by, start_on, test_origin};

const DAY: i64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn a_step_of_the_clock_ends_what_it_ends_and_brings_nothing_back_and_moves_no_deadline() {
    let mut seen = String::new();
    for (name, step) in
        [("a day ahead", DAY), ("400 days ahead", 400 * DAY), ("a day back", -DAY), ("400 days back", -400 * DAY)]
    {
        let (server, keys) = mute_phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
        let id = server.registry.find("app-0").await.expect("the application").id;
        let expiring = server.clock.now().plus(Duration::from_hours(1));
        let key = server.registry.issue_key(&id, Some(expiring), &test_origin()).await;
        let NewKey { key_id, secret, .. } = key.expect("a key");
        let short = Key { id: key_id, secret: secret.expose().clone() };
        let lasting = &keys[0][0];
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let task = server.call(lasting, "set_power", json!({"device_id": "phone-0000001", "action": "boot"})).await;
        let asked = json!({"task_id": task.expect("accepted")["task_id"], "wait_seconds": 0});
        let ask = async |moment: &str, seen: &mut String| {
            let short = server.send(&short, ping.clone()).await.0;
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_task", "arguments": asked}});
            let task = outcome(&server.send(lasting, body.to_string()).await.1).expect("a task");
            let _ = writeln!(seen, "{moment:>26}: a key for an hour {short}, the task {}", task["status"]);
        };
        let _ = writeln!(seen, "{name}");
        ask("before", &mut seen).await;
        server.clock.shift_wall(step);
        ask("after the step", &mut seen).await;
        server.clock.shift_wall(-step);
        ask("put right", &mut seen).await;
        server.clock.advance(Duration::from_hours(1));
        server.clock.shift_wall(step);
        let short = server.send(&short, ping.clone()).await.0;
        let _ = writeln!(seen, "{:>26}: a key for an hour {short}", "an hour on, the step again");
    }
    insta::assert_snapshot!(seen);
}

#[tokio::test]
async fn a_start_does_not_go_back_behind_the_time_of_the_last_run_until_the_operator_says_so() {
    let mut program = Program::start(&[]).await;
    let key = Key::read(&json_of(&program.data, "key create demo --expires 1").await).expect("a key");
    assert_eq!(program.status(&key).await, 200);
    says(&program.data, "clock accept", 1, "stop the server first").await;
    program.stop().await;
    // The last run recorded a time two days ahead.
    let database = open_database(&program.data);
    let moved = database.execute("UPDATE clock SET seen = seen + 2 * 24 * 60 * 60 * 1000", []);
    assert_eq!(moved, Ok(1), "a stop has recorded the time");
    drop(database);
    let mut program = program.again(&[]).await;
    assert_eq!(program.status(&key).await, 401, "it ended in the last run");
    program.stop().await;
    says(&program.data, "clock accept", 0, "continues from the machine's clock").await;
    let mut program = program.again(&[]).await;
    assert_eq!(program.status(&key).await, 200);
    program.stop().await;
}

fn twelve_phones(setup: Setup<'_, ()>) -> Service<Contract<Phones>> {
    let (handlers, executor) = both_sides(Arc::new(Sim::new(1, 12, setup.clock.clone(), &[1; 32])), &setup.clock);
    Service::with_executor(handlers, executor)
}

async fn statuses(server: &TestServer, requests: &[Signed]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(request.send(server.address).await.status);
    }
    statuses
}

/// At the end, the clock of the machine shows the time of signing.
#[tokio::test]
async fn no_signed_request_is_taken_again_after_the_clock_ran_ahead_and_was_put_right() {
    for jump in [600_000, DAY / 12, DAY - 2 * DAY / 24, DAY + DAY / 24] {
        let lead = Duration::from_millis(jump.unsigned_abs());
        let start = if jump < DAY { START } else { Clock::system().wall().minus(lead) };
        // The clock of the machine is `wall_ahead` milliseconds ahead of `at`. A start trusts a
        // clock that is ahead by up to a day.
        let clock = |(at, wall_ahead): (i64, i64)| {
            if at > DAY {
                return Clock::since(start);
            }
            let clock = Clock::manual(start.plus(Duration::from_millis(at.unsigned_abs())));
            clock.shift_wall(wall_ahead);
            clock
        };
        let (ahead, put_right) = ((jump, 0), if jump < DAY { (jump, -jump) } else { (0, 0) });
        // The clocks of the run that takes the requests, of a run between, and of the last run; the
        // time from the last begin to the time of signing.
        let cases = [
            ("ahead at a start", ahead, None, put_right, jump),
            ("ahead at a start, two starts ago", ahead, Some(put_right), put_right, jump),
            ("ahead while it runs", (0, jump), None, (0, 0), jump),
            ("ahead at a later start", (0, 0), Some(ahead), put_right, 0),
            ("set back at a start", put_right, None, put_right, 0),
        ];
        for (case, first, between, last, later) in cases {
            for killed in [false, true] {
                let (case, folder) =
                    (format!("{case} by {jump} ms, killed: {killed}"), TempDir::new().expect("a folder"));
                let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
                let path = || folder.path().to_owned();
                let (server, keys) = serve_by(clock(first), twelve_phones, tenants, path()).await;
                let key = Key { id: keys[0][0].id.clone(), secret: keys[0][0].secret.clone() };
                let signed = |method, target| Signed::at(server.clock.wall().0 / 1000, &key, method, target);
                let requests = [
                    signed("GET", "/v1/devices"),
                    signed("POST", "/v1/devices/phone-0000001/sessions"),
                    signed("POST", "/v1/devices/phone-0000001/power").body(json!({"action": "restart"})),
                ];
                assert_eq!(statuses(&server, &requests).await, [200, 201, 202], "{case}");
                let end = async |server: TestServer| if killed { server.store.clone() } else { server.stop().await };
                let mut store = end(server).await;
                if let Some(between) = between {
                    let server = start_on(store, clock(between), twelve_phones, path()).await;
                    server.clock.advance(Duration::from_mins(20));
                    server.store.purge_marks(server.clock.earliest(), 1_000).await.expect("purged");
                    store = end(server).await;
                }
                let server = start_on(store, clock(last), twelve_phones, path()).await;
                server.clock.advance(Duration::from_millis(later.unsigned_abs()));
                server.store.purge_marks(server.clock.earliest(), 1_000).await.expect("purged");
                let repeated = statuses(&server, &requests).await;
                assert!([401, 503].contains(&repeated[0]), "{case}: {repeated:?}");
                assert_eq!(repeated[1..], [401, 401], "{case}");
            }
        }
    }
}
