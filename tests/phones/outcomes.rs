//! The ends of writes: each state with its evidence, its refund, and its next step.

use crate::harness::writes::{describe_task, entries, ledger, phone, power, proxy};
use crate::harness::{Key, Server, Tenant, both_sides, cast, serve};
use cloudphone::platforms::simulator::Sim;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::BoxFuture;
use toolwarrant::contract::PermissionSet;
use toolwarrant::tasks::{Executor, Facts, Leave, Provability, Reading, Sent, Verdict};

pub(crate) fn ends() -> [(&'static str, &'static str, Value); 5] {
    [
        ("success", "set_proxy", proxy(1, "one")),
        ("success_unverified", "clear_proxy", json!({"device_id": phone(10)})),
        ("failed", "set_proxy", proxy(14, "two")),
        ("failed_silent", "set_proxy", proxy(13, "three")),
        ("timeout", "set_power", power(4, "boot")),
    ]
}

async fn all_end(status: &str, writes: &[(&str, Value)]) -> String {
    let (server, key, _) = cast().await;
    let mut transcript = String::new();
    for (tool, arguments) in writes {
        let task = end(&server, &key, tool, arguments).await;
        assert_eq!((&task["status"], &task["terminal"]), (&json!(status), &json!(true)), "{tool} {arguments}: {task}");
        assert_eq!(task["refund"]["units"] == 1, status == "failed_silent", "{task}");
        assert!(task["evidence"]["checked_at"].as_str() <= task["finished_at"].as_str(), "{task}");
        writeln!(transcript, "{tool} {arguments}\n{}", describe_task(task)).expect("text");
    }
    let refunds = if status == "failed_silent" { writes.len() } else { 0 };
    assert_eq!(entries(&server, "refund").await, refunds);
    transcript
}

async fn end(server: &Server, key: &Key, tool: &str, arguments: &Value) -> Value {
    let accepted = server.call(key, tool, arguments.clone()).await.expect("accepted");
    server.end(key, &accepted["task_id"]).await
}

#[tokio::test]
async fn each_end_has_its_evidence_and_failed_silent_alone_its_refund() {
    let clear = |number| ("clear_proxy", json!({"device_id": phone(number)}));
    let set = |number, key| ("set_proxy", proxy(number, key));
    let restart = |number| ("set_power", power(number, "restart"));
    let boot = |number| ("set_power", power(number, "boot"));
    let mut transcript = String::new();
    for (name, status, writes) in [
        ("success", "success", vec![set(1, "a"), restart(5), boot(2), set(15, "b"), set(17, "c")]),
        ("success_unverified", "success_unverified", vec![clear(10)]),
        ("failed", "failed", vec![set(14, "a"), clear(14)]),
        ("never_sent", "failed", vec![set(23, "b")]),
        ("failed_silent", "failed_silent", vec![set(13, "a"), restart(13), set(19, "b")]),
        ("timeout", "timeout", vec![set(20, "a"), boot(4)]),
    ] {
        transcript += &format!("== {name}\n{}", all_end(status, &writes).await);
    }
    insta::assert_snapshot!(transcript);
}

#[tokio::test]
async fn each_end_is_one_terminal_result_until_which_the_same_write_is_the_same_task() {
    let (server, key, _) = cast().await;
    let mut ended = Vec::new();
    for (status, tool, arguments) in ends() {
        let refunds = entries(&server, "refund").await;
        let first = server.call(&key, tool, arguments.clone()).await.expect("accepted");
        let repeat = server.call(&key, tool, arguments.clone()).await.expect("a hit");
        assert_eq!((&repeat["task_id"], &repeat["idempotent_hit"]), (&first["task_id"], &json!(true)), "{status}");
        assert_eq!(first["idempotent_hit"], false, "{status}");
        let poll = json!({"task_id": first["task_id"], "wait_seconds": 0});
        let mut seen = vec![(first["status"].clone(), first["terminal"].clone())];
        while seen.last().is_some_and(|(_, terminal)| terminal != true) {
            server.clock.advance(Duration::from_secs(1));
            let task = server.call(&key, "get_task", poll.clone()).await.expect("a task");
            seen.push((task["status"].clone(), task["terminal"].clone()));
        }
        seen.dedup();
        assert_eq!(seen, [(json!("dispatched"), json!(false)), (json!(status), json!(true))]);
        let answer = server.rpc(&key, "tools/call", json!({"name": "get_task", "arguments": poll})).await;
        assert_eq!((&answer["result"]["isError"], answer.get("error")), (&json!(false), None), "{status}: {answer}");
        let task = crate::harness::outcome(&answer).expect("a result");
        assert_eq!((&task["status"], task.get("code")), (&json!(status), None));
        let refunded = entries(&server, "refund").await - refunds;
        assert_eq!(refunded, usize::from(status == "failed_silent"), "{status}");
        ended.push((tool, arguments, first["task_id"].clone()));
    }
    let rows = ledger(&server).await;
    let refund = rows.iter().find(|row| row.kind == "refund").expect("a refund");
    let charge = rows.iter().find(|row| row.kind == "charge" && row.id == refund.id);
    assert_eq!(charge.map(|charge| &charge.application), Some(&refund.application), "to whom the write was charged");
    for (tool, arguments, task_id) in ended {
        let anew = server.call(&key, tool, arguments).await.expect("accepted");
        assert_eq!((&anew["status"], &anew["idempotent_hit"]), (&json!("dispatched"), &json!(false)));
        assert_ne!(anew["task_id"], task_id);
    }
}

#[tokio::test]
async fn dispatched_does_not_mean_that_the_write_took_effect() {
    let (server, key, _) = cast().await;
    let shown = async || server.call(&key, "get_device", json!({"device_id": phone(13)})).await.expect("a device");
    let accepted = server.call(&key, "set_proxy", proxy(13, "k")).await.expect("accepted");
    assert_eq!((&accepted["status"], &shown().await["proxy"]), (&json!("dispatched"), &Value::Null));
    server.end(&key, &accepted["task_id"]).await;
    assert_eq!(shown().await["proxy"], Value::Null, "this phone swallows what it is told");
}

#[tokio::test]
async fn clear_proxy_has_no_address_to_compare_and_ends_as_success_unverified_or_timeout() {
    let (server, key, _) = cast().await;
    for (number, status) in [(1, "success_unverified"), (10, "success_unverified"), (16, "timeout"), (17, "timeout")] {
        let task = end(&server, &key, "clear_proxy", &json!({"device_id": phone(number)})).await;
        assert_eq!((&task["status"], &task["evidence"]["checked"]), (&json!(status), &json!("upstream_answer")));
    }
}

#[tokio::test]
async fn a_second_refund_within_a_day_is_counted_and_an_ended_task_is_forgotten_after_seven_days() {
    const DAY: Duration = Duration::from_hours(24);
    let (server, key, _) = cast().await;
    let counted = || server.engine.counts().repeated_refunds.get();
    let mut tasks = Vec::new();
    for (days, count) in [(0, 0), (0, 1), (2, 1)] {
        server.clock.advance(DAY * days);
        let task = end(&server, &key, "set_power", &power(13, "restart")).await;
        assert_eq!((&task["status"], counted()), (&json!("failed_silent"), count), "after {days} days");
        tasks.push(json!({"task_id": task["task_id"], "wait_seconds": 0}));
    }
    let found = async |task: usize| server.call(&key, "get_task", tasks[task].clone()).await.is_ok();
    server.clock.advance(DAY * 5 - Duration::from_mins(2));
    assert!(found(0).await && found(2).await);
    server.clock.advance(Duration::from_mins(10));
    // The engine deletes old tasks beside the calls.
    while found(0).await {
        server.clock.advance(Duration::from_secs(1));
    }
    assert!(found(2).await);
    assert_eq!(entries(&server, "refund").await, 3, "the ledger stays");
}

/// Sends have their effect, and panic. Readings can prove as much as this.
struct Panics(Provability);

impl Executor for Panics {
    fn facts(&self, _: &toolwarrant::tasks::Write) -> Facts {
        Facts { provability: self.0, ..Facts::default() }
    }

    fn send<'a>(&'a self, _: &'a toolwarrant::tasks::Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async { panic!("this executor is a bug") })
    }

    fn probe<'a>(&'a self, _: &'a toolwarrant::tasks::Write) -> BoxFuture<'a, Reading> {
        Box::pin(async { Reading { verdict: Verdict::Present, expected: "it".into(), observed: "it".into() } })
    }
}

async fn end_of_restart(provability: Provability) -> Value {
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let parts = |clock: &toolwarrant::Clock| {
        let sim = Arc::new(Sim::new(1, 12, clock.clone(), &[1; 32]));
        (both_sides(sim, clock).0, Arc::new(Panics(provability)) as Arc<dyn Executor>)
    };
    let (server, keys) = serve(parts, tenants).await;
    end(&server, &keys[0][0], "set_power", &power(1, "restart")).await
}

#[tokio::test]
async fn an_executor_that_panics_holds_no_task_up() {
    let task = end_of_restart(Provability::Both).await;
    let reported = &task["evidence"]["reported"];
    assert_eq!((&task["status"], reported), (&json!("success"), &json!("no_answer")), "what it left open is verified");
}

#[tokio::test]
async fn the_advice_after_a_restart_that_nobody_read_is_that_of_its_probe() {
    let task = end_of_restart(Provability::Nothing("it is dark")).await;
    let ends = [&task["status"], &task["evidence"]["checked"]];
    assert_eq!(ends, [&json!("timeout"), &json!("upstream_answer")], "{task}");
    assert!(task["next_step"].to_string().contains("Do not repeat the restart"), "{task}");
}
